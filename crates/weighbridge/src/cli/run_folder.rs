//! `-r`, `--run-folder`: accepted before and after the name of a command, for those commands that use it.

use clap::{ArgMatches, Command};

use super::UsageError;

const COMMANDS: [(&str, &str); 8] = [
    ("run", "Run folder, as with --into"),
    ("plan", "Run folder whose results of contention benches are not measured again"),
    ("summary", "Run folder, if the arguments are contention benches"),
    ("format", "Run folder, if the arguments are contention benches"),
    ("study", "Run folder, if the arguments are contention benches"),
    ("solve", "Run folder, if the arguments are contention benches"),
    ("pack", "Run folder, if the arguments are contention benches"),
    ("merge", "New run folder for the merged results"),
];

const ID: &str = "run_folder";

/// Describes the option in the help of the commands that use it, and hides it in that of the others.
pub(super) fn describe(program: Command) -> Command {
    let Some(option) = program.get_arguments().find(|arg| arg.get_id() == ID).cloned() else { return program };
    let describe = |command: Command| {
        let option = option.clone();
        let option = match COMMANDS.iter().find(|(name, _)| *name == command.get_name()) {
            Some((_, help)) => option.help(*help),
            None => option.hide(true),
        };
        command.arg(option)
    };
    program.mut_subcommands(describe)
}

pub(super) fn refuse_where_unused(matches: &ArgMatches) -> Result<(), UsageError> {
    let Some(name) = matches.subcommand_name().filter(|_| matches.contains_id(ID)) else { return Ok(()) };
    let names = COMMANDS.map(|(name, _)| name);
    if names.contains(&name) {
        return Ok(());
    }
    let what = format!("--run-folder has no effect on `{name}`: expected one of {}", names.join(", "));
    Err(UsageError { what, help: "remove -r".to_owned() })
}

//! Groups of commands in the help of the program.

use std::fmt::Write;

use clap::Command;

/// The groups and their commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Measure", &["run", "plan", "list", "peers", "doctor"]),
    ("Read results", &["summary", "format", "report", "study", "solve", "import"]),
    ("Archive", &["pack", "unpack", "snapshot"]),
    ("Compare", &["compare", "ab", "calibrate", "bisect", "model", "analyze", "nearest", "strip"]),
    ("Machines", &["tune", "profile", "clean"]),
    ("Network", &["net"]),
    ("Contention", &["deps", "hashd", "merge"]),
    ("Other", &["exec", "schema", "completions", "man", "help"]),
];

pub(super) fn group_commands(program: Command) -> Command {
    let styles = program.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut groups = String::new();
    for (title, names) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(groups, "{header}{title}:{header:#}");
        for name in names {
            let about = program.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let about = about.as_deref().unwrap_or("Print the help of a command");
            let _ = writeln!(groups, "  {literal}{name:11}{literal:#}  {about}");
        }
        groups.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    program.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_visible_command_is_in_one_group() {
        let program = Cli::command();
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
        let mut visible: Vec<&str> = visible.chain(["help"]).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn each_command_fits_on_a_line_of_100_columns() {
        let program = Cli::command();
        let length = |command: &Command| command.get_about().map_or(0, |about| about.to_string().chars().count());
        let long = program.get_subcommands().filter(|command| !command.is_hide_set() && length(command) > 85);
        assert_eq!(long.map(Command::get_name).collect::<Vec<_>>(), [""; 0]);
    }
}

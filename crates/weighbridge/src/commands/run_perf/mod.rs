//! run-perf's programs: each command line of theirs is translated into commands of this program, which are shown and
//! then run.
//!
//! There is no second way of doing anything: what is shown is what is run. Start with [`Translation`]; each program has
//! a file of its own.

mod analyze;
mod build;
mod compare;
mod diff;
mod profile;
mod ram_disk;
mod run;
mod strip;
mod test;
mod tools;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use wb_model::secrets::mask_arguments;

use super::current_program;
use crate::cli::run_perf::{AnalyzePerfArgs, ComparePerfArgs, DiffPerfArgs, RunPerfArgs, StripRunPerfArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// The names of run-perf's programs, which are subcommands and, as names of links to this program, programs.
pub(crate) const PROGRAMS: [&str; 5] = ["run-perf", "compare-perf", "analyze-perf", "diff-perf", "strip-run-perf"];

/// The options whose values are the user's own and may have passwords and tokens in them.
const SECRET_OPTIONS: [&str; 5] =
    ["--provisioner", "--metadata", "--force-params", "--host-setup-script", "--worker-setup-script"];

/// The commands of this program that a command line of run-perf's stands for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Translation {
    /// The words of each after the program's name, in the order in which they are run.
    commands: Vec<Vec<String>>,
    /// Differences from run-perf, a sentence each.
    notes: Vec<String>,
}

impl Translation {
    /// One command and no note.
    fn single(command: Vec<String>) -> Self {
        Self { commands: vec![command], notes: Vec::new() }
    }

    /// The commands as they can be typed into a shell, with what may be a secret masked.
    fn command_line(&self) -> String {
        let line = |words: &Vec<String>| {
            let mut shown = vec!["weighbridge".to_owned()];
            let mut option = "";
            for word in words {
                let may_be_secret = SECRET_OPTIONS.contains(&option);
                shown.extend(if may_be_secret { mask_arguments([word]) } else { vec![word.clone()] });
                option = word;
            }
            shell_words::join(shown)
        };
        self.commands.iter().map(line).collect::<Vec<_>>().join(" && ")
    }

    /// Shows the commands and runs them, the last in place of this process. The first that fails is the last.
    fn execute(self, console: &Console) -> Result<Exit, Error> {
        if !console.quiet {
            self.notes.iter().for_each(|note| crate::console::tell!("note: {note}"));
            crate::console::tell!("note: equivalent command: {}", self.command_line());
        }
        let program = current_program()?;
        let command = |words: &[String]| {
            let mut command = Command::new(&program);
            command.args(console.forwarded_arguments()).args(words);
            command
        };
        let failed = |source| Error::File { path: program.display().to_string(), source };
        let Some((last, before)) = self.commands.split_last() else { return Ok(Exit::Success) };
        for words in before {
            let status = command(words).status().map_err(failed)?;
            if !status.success() {
                // Without a status it was ended by a signal.
                return Ok(status
                    .code()
                    .and_then(|code| u8::try_from(code).ok())
                    .map_or(Exit::Interrupted, Exit::Code));
            }
        }
        // This process goes on as that command, and comes back only where it cannot.
        Err(failed(command(last).exec()))
    }
}

/// The words of a command line, whose first names the program: of a symbolic link by the name of one of run-perf's
/// programs the name becomes the subcommand.
pub(crate) fn rewrite_program_name(words: Vec<OsString>) -> Vec<OsString> {
    let name_of = |path: &Path| path.file_name().map(OsStr::to_owned);
    let called = words.first().and_then(|first| name_of(Path::new(first)));
    // The agent of a copy by such a name is started by that name, too.
    let own = std::env::current_exe().ok().as_deref().and_then(name_of);
    match called {
        Some(name) if PROGRAMS.iter().any(|program| name == *program) && own.as_ref() != Some(&name) => {
            [OsString::from("weighbridge"), name].into_iter().chain(words.into_iter().skip(1)).collect()
        }
        _ => words,
    }
}

/// `run-perf`
pub(crate) fn run(args: &RunPerfArgs, console: &Console) -> Result<Exit, Error> {
    run::translate(args)?.execute(console)
}

/// `compare-perf`
pub(crate) fn compare(args: &ComparePerfArgs, console: &Console) -> Result<Exit, Error> {
    compare::translate(args)?.execute(console)
}

/// `analyze-perf`
pub(crate) fn analyze(args: &AnalyzePerfArgs, console: &Console) -> Result<Exit, Error> {
    analyze::translate(args)?.execute(console)
}

/// `diff-perf`, whose exit status is its answer: what goes wrong is 255.
pub(crate) fn diff(args: &DiffPerfArgs, console: &Console) -> Result<Exit, Error> {
    let carried_out = diff::translate(args).and_then(|translation| translation.execute(console));
    carried_out.or_else(|error| {
        error.report(console);
        Ok(Exit::Code(u8::MAX))
    })
}

/// `strip-run-perf`
pub(crate) fn strip(args: &StripRunPerfArgs, console: &Console) -> Result<Exit, Error> {
    strip::translate(args).execute(console)
}

/// An option and its value as words, where there is a value.
fn option_words(name: &str, value: Option<impl ToString>) -> impl Iterator<Item = String> {
    value.into_iter().flat_map(move |value| [name.to_owned(), value.to_string()])
}

/// An option as a word, where it is set.
fn flag_word(name: &str, is_set: bool) -> Option<String> {
    is_set.then(|| name.to_owned())
}

/// A path as a word.
fn path_word(path: &Path) -> String {
    path.display().to_string()
}

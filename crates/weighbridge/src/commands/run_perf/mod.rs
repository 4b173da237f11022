//! Translates command lines of run-perf's programs into commands of this program, prints them and runs them.
//!
//! There is no second implementation: the printed commands are those that are run. Start with [`Translation`]; each
//! program has its own file. `wb_run_perf` translates the tests, profiles, tools and builds in them.

mod analyze;
mod compare;
mod diff;
mod run;
mod strip;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use wb_model::secrets::mask_arguments;
use wb_session::program::current_program;

use crate::cli::run_perf::{AnalyzePerfArgs, ComparePerfArgs, DiffPerfArgs, PROGRAMS, RunPerfArgs, StripRunPerfArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// The commands of this program that are equivalent to a command line of run-perf.
#[derive(Debug, Default, PartialEq, Eq)]
struct Translation {
    /// The arguments of each command after the program's name, in execution order.
    commands: Vec<Vec<String>>,
    /// Differences from run-perf, one sentence each.
    notes: Vec<String>,
}

impl Translation {
    fn single(command: Vec<String>) -> Self {
        Self { commands: vec![command], notes: Vec::new() }
    }

    /// The commands as a shell command line, with possible secrets masked.
    fn command_line(&self) -> String {
        let line = |words: &Vec<String>| {
            let program = "weighbridge".to_owned();
            shell_words::join([program].into_iter().chain(mask_arguments(words)))
        };
        self.commands.iter().map(line).collect::<Vec<_>>().join(" && ")
    }

    /// Prints and runs the commands, the last in place of this process. Stops at the first failure.
    fn execute(self, console: &Console) -> Result<Exit, Error> {
        refuse_other_encodings()?;
        if !console.quiet {
            self.notes.iter().for_each(|note| crate::console::message!("note: {note}"));
            crate::console::message!("note: equivalent command: {}", self.command_line());
        }
        let program = current_program()?;
        let command = |words: &[String]| {
            let mut command = Command::new(&program);
            command.args(console.forwarded_arguments()).args(words);
            command
        };
        let failed = Error::file("run", &program);
        let Some((last, before)) = self.commands.split_last() else { return Ok(Exit::Success) };
        for words in before {
            let status = command(words).status().map_err(failed)?;
            if !status.success() {
                // Without an exit code, it was killed by a signal.
                return Ok(status
                    .code()
                    .and_then(|code| u8::try_from(code).ok())
                    .map_or(Exit::Interrupted, Exit::Code));
            }
        }
        // `exec` replaces this process and returns only on failure.
        // So passwords typed for run-perf appear in no list of processes.
        Err(failed(command(last).exec()))
    }
}

/// Refuses arguments that are not UTF-8: translated commands are text, and would name other files.
fn refuse_other_encodings() -> Result<(), Error> {
    match std::env::args_os().find(|word| word.to_str().is_none()) {
        Some(word) => Err(Error::Usage {
            what: format!("invalid argument `{}`: expected text in UTF-8", word.display()),
            help: "the commands of weighbridge itself accept any path".to_owned(),
        }),
        None => Ok(()),
    }
}

/// Makes the program's name a subcommand if it is one of run-perf's, for symbolic links to this program.
pub(crate) fn rewrite_program_name(words: Vec<OsString>) -> Vec<OsString> {
    let name_of = |path: &Path| path.file_name().map(OsStr::to_owned);
    let invoked_as = words.first().and_then(|first| name_of(Path::new(first)));
    // Not if the executable itself has that name: its agent is started under this name as well.
    let executable = std::env::current_exe().ok().as_deref().and_then(name_of);
    match invoked_as {
        Some(name) if PROGRAMS.iter().any(|program| name == *program) && executable.as_ref() != Some(&name) => {
            [OsString::from("weighbridge"), name].into_iter().chain(words.into_iter().skip(1)).collect()
        }
        _ => words,
    }
}

pub(crate) fn run(args: &RunPerfArgs, console: &Console) -> Result<Exit, Error> {
    run::translate(args)?.execute(console)
}

pub(crate) fn compare(args: &ComparePerfArgs, console: &Console) -> Result<Exit, Error> {
    compare::translate(args)?.execute(console)
}

pub(crate) fn analyze(args: &AnalyzePerfArgs, console: &Console) -> Result<Exit, Error> {
    analyze::translate(args)?.execute(console)
}

/// `diff-perf`, whose exit status is the index; an error is 255.
pub(crate) fn diff(args: &DiffPerfArgs, console: &Console) -> Result<Exit, Error> {
    let result = diff::translate(args).and_then(|translation| translation.execute(console));
    result.or_else(|error| {
        error.report(console);
        Ok(Exit::Code(u8::MAX))
    })
}

pub(crate) fn strip(args: &StripRunPerfArgs, console: &Console) -> Result<Exit, Error> {
    strip::translate(args).execute(console)
}

/// Joins the fault of the remaining builds with notes on the builds that were skipped.
fn with_skipped(what: &str, notes: &[String]) -> String {
    std::iter::once(what).chain(notes.iter().map(String::as_str)).collect::<Vec<_>>().join("; ")
}

fn option_words(name: &str, value: Option<impl ToString>) -> impl Iterator<Item = String> {
    value.into_iter().flat_map(move |value| [name.to_owned(), value.to_string()])
}

fn flag_word(name: &str, is_set: bool) -> Option<String> {
    is_set.then(|| name.to_owned())
}

fn path_word(path: &Path) -> String {
    path.display().to_string()
}

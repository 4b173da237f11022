//! Exit statuses, the same for every command.

use std::ffi::OsString;
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is fine.
    Success,
    /// A mistake in the arguments, or something that went wrong inside.
    Error,
    /// Something got worse.
    Regression,
    /// Something could not be measured or compared as asked.
    Incomplete,
    /// There was nothing to do.
    NothingToDo,
    /// The user ended it.
    Interrupted,
    /// An answer that was asked for as exit status.
    Code(u8),
}

impl Exit {
    /// The status that says it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Error => 1,
            Self::Regression => 2,
            Self::Incomplete => 3,
            Self::NothingToDo => 4,
            Self::Interrupted => 130,
            Self::Code(index) => index,
        }
    }
}

/// What each says.
pub(crate) const MEANINGS: [(Exit, &str); 6] = [
    (Exit::Success, "fine"),
    (Exit::Error, "error"),
    (Exit::Regression, "something got worse"),
    (Exit::Incomplete, "something could not be measured as asked"),
    (Exit::NothingToDo, "nothing to do"),
    (Exit::Interrupted, "interrupted"),
];

/// All of them in a line.
pub(crate) fn describe_all() -> String {
    let all = MEANINGS.map(|(exit, meaning)| format!("{} {meaning}", exit.code()));
    format!("exit status: {}", all.join(", "))
}

/// Tells a mistake in the arguments, or the help that was asked for.
pub(crate) fn report_argument_error(error: &clap::Error, words: &[OsString]) -> ExitCode {
    // Where even this cannot be printed, nobody is there to read it.
    let _ = error.print();
    // Of `nearest` 1 is an answer.
    let is_index =
        words.iter().any(|word| word == "--exit-index") || words.get(1).is_some_and(|word| word == "diff-perf");
    match error.use_stderr() {
        true if is_index => Exit::Code(u8::MAX).into(),
        true => Exit::Error.into(),
        false => Exit::Success.into(),
    }
}

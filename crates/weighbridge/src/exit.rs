//! Exit statuses, the same for every command.

use std::ffi::OsString;
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is fine.
    Fine,
    /// A mistake in the arguments, or something that went wrong inside.
    Error,
    /// Something got worse.
    Regression,
    /// Something could not be measured or compared as asked.
    FellShort,
    /// There was nothing to do.
    Nothing,
    /// The user ended it.
    Interrupted,
    /// An answer that was asked for as exit status.
    Index(u8),
}

impl Exit {
    /// The status that says it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Error => 1,
            Self::Regression => 2,
            Self::FellShort => 3,
            Self::Nothing => 4,
            Self::Interrupted => 130,
            Self::Index(index) => index,
        }
    }
}

/// What each says.
pub(crate) const MEANINGS: [(Exit, &str); 6] = [
    (Exit::Fine, "fine"),
    (Exit::Error, "error"),
    (Exit::Regression, "something got worse"),
    (Exit::FellShort, "something could not be measured as asked"),
    (Exit::Nothing, "nothing to do"),
    (Exit::Interrupted, "interrupted"),
];

/// All of them in a line.
pub(crate) fn meanings() -> String {
    let all = MEANINGS.map(|(exit, meaning)| format!("{} {meaning}", exit.code()));
    format!("exit status: {}", all.join(", "))
}

/// Tells a mistake in the arguments, or the help that was asked for.
pub(crate) fn arguments(error: &clap::Error, words: &[OsString]) -> ExitCode {
    // Where even this cannot be printed, nobody is there to read it.
    let _ = error.print();
    // Of `nearest` 1 is an answer.
    let is_index =
        words.iter().any(|word| word == "--exit-index") || words.get(1).is_some_and(|word| word == "diff-perf");
    match error.use_stderr() {
        true if is_index => Exit::Index(u8::MAX).into(),
        true => Exit::Error.into(),
        false => Exit::Fine.into(),
    }
}

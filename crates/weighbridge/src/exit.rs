//! Exit statuses, the same for every command.

use std::ffi::OsString;
use std::process::ExitCode;

use wb_session::SessionStatus;

use crate::cli::{ParseError, UsageError};
use crate::error::print_error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// A usage error or an internal error.
    Error,
    Regression,
    /// Something could not be measured or compared as requested.
    Incomplete,
    NothingToDo,
    Interrupted,
    /// A status chosen by the command: the index of `nearest --exit-index`, or what `git bisect run` expects.
    Code(u8),
}

impl Exit {
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

impl From<SessionStatus> for Exit {
    fn from(status: SessionStatus) -> Self {
        match status {
            SessionStatus::Complete => Self::Success,
            SessionStatus::Incomplete => Self::Incomplete,
            SessionStatus::Interrupted => Self::Interrupted,
        }
    }
}

pub(crate) const MEANINGS: [(Exit, &str); 6] = [
    (Exit::Success, "success"),
    (Exit::Error, "error"),
    (Exit::Regression, "regression"),
    (Exit::Incomplete, "something could not be measured or compared as requested"),
    (Exit::NothingToDo, "nothing to do"),
    (Exit::Interrupted, "interrupted"),
];

pub(crate) fn describe_all() -> String {
    let all = MEANINGS.map(|(exit, meaning)| format!("{} {meaning}", exit.code()));
    format!("exit status: {}", all.join(", "))
}

/// Prints an error in the command line or the requested help, and returns the exit status.
pub(crate) fn report_parse_error(error: &ParseError, words: &[OsString]) -> ExitCode {
    // With `nearest --exit-index`, exit status 1 is a valid index.
    let is_index =
        words.iter().any(|word| word == "--exit-index") || words.get(1).is_some_and(|word| word == "diff-perf");
    let failure = if is_index { Exit::Code(u8::MAX) } else { Exit::Error };
    match error {
        ParseError::Output(output) => {
            // If this cannot be printed, there is nowhere to report it.
            let _ = output.print();
            if output.use_stderr() { failure.into() } else { Exit::Success.into() }
        }
        ParseError::Usage(UsageError { what, help }) => {
            print_error(what, "", Some(help));
            failure.into()
        }
    }
}

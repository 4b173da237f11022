//! Exit statuses, the same for every command.

use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All is fine.
    Fine = 0,
    /// A mistake in the arguments, or something that went wrong inside.
    Error = 1,
    /// Something could not be measured or compared as asked.
    FellShort = 3,
    /// There was nothing to do.
    Nothing = 4,
    /// The user ended it.
    Interrupted = 130,
}

/// What each says.
pub(crate) const MEANINGS: [(Exit, &str); 5] = [
    (Exit::Fine, "fine"),
    (Exit::Error, "error"),
    (Exit::FellShort, "something could not be measured as asked"),
    (Exit::Nothing, "nothing to do"),
    (Exit::Interrupted, "interrupted"),
];

/// All of them in a line.
pub(crate) fn meanings() -> String {
    let all = MEANINGS.map(|(exit, meaning)| format!("{} {meaning}", exit as u8));
    format!("exit status: {}", all.join(", "))
}

/// Tells a mistake in the arguments, or the help that was asked for.
pub(crate) fn arguments(error: &clap::Error) -> ExitCode {
    // Where even this cannot be printed, nobody is there to read it.
    let _ = error.print();
    if error.use_stderr() { Exit::Error.into() } else { Exit::Fine.into() }
}

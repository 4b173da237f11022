//! Secrets that the user declares: read from where they are kept, never from the command line, which others see.

use wb_model::secrets::{SHORTEST, declare};
use wb_plan::Plan;

/// Why a secret cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    /// There is no such variable.
    #[error("--secret-from: there is no variable `{name}`")]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// The file cannot be read.
    #[error("--secret-from: {path}: {source}")]
    File {
        /// Its path.
        path: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// There is nothing in it that could be masked.
    #[error("--secret-from {from}: no line of it has {SHORTEST} characters")]
    TooShort {
        /// The file or variable.
        from: String,
    },
    /// It would be part of a name, by which everything is found again.
    #[error("a declared secret is a part of the name of a cell of `{test}`")]
    InName {
        /// The test.
        test: String,
    },
}

impl SecretError {
    /// The way out.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::NoVariable { .. } | Self::File { .. } => "FILE, or env:NAME for a variable, is expected",
            Self::TooShort { .. } => "shorter ones would be masked all over, as parts of other words",
            Self::InName { .. } => "pass it by a file or a variable: what cells are called by is kept as it is",
        }
    }
}

/// Declares what is in these files and variables, each line of them.
pub(crate) fn declare_all(from: &[String]) -> Result<(), SecretError> {
    for from in from {
        let text = match from.strip_prefix("env:") {
            Some(name) => std::env::var(name).map_err(|_| SecretError::NoVariable { name: name.to_owned() })?,
            None => std::fs::read(from)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|source| SecretError::File { path: from.clone(), source })?,
        };
        // A key has several lines, and programs may say one of them.
        if text.lines().filter(|line| declare(line).is_ok()).count() == 0 {
            return Err(SecretError::TooShort { from: from.clone() });
        }
    }
    Ok(())
}

/// Refuses a plan with a declared secret in the name of a cell.
pub(crate) fn refuse_in_names(plan: &Plan) -> Result<(), SecretError> {
    let has = |cell: &&wb_plan::Cell| wb_model::secrets::has_declared(&cell.id.to_string());
    let found = plan.cells.iter().find(has);
    found.map_or(Ok(()), |cell| Err(SecretError::InName { test: cell.id.test.to_string() }))
}

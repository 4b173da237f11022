//! Errors in model files of both kinds.

use std::path::PathBuf;

/// Why a model cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The content is not a valid model.
    #[error("invalid model {}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        source: ParseModelError,
    },
    #[error("model {} does not match any check of these builds", path.display())]
    OtherChecks {
        path: PathBuf,
        /// A check of the model.
        of_model: String,
        /// A check of the builds; empty without any.
        of_builds: String,
    },
}

impl ModelError {
    /// What to do instead.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io { .. } | Self::File { .. } => None,
            Self::OtherChecks { of_model, of_builds, .. } => {
                Some(format!("the model has `{of_model}`, the builds have `{of_builds}`"))
            }
        }
    }
}

/// Text that is not a valid model.
#[derive(Debug, thiserror::Error)]
pub enum ParseModelError {
    /// The text is not JSON, or not an object.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("the model has no checks")]
    Empty,
    #[error("unsupported format `{format}` of version {version}: expected `weighbridge-noise` of version 1")]
    Format {
        /// The format of the file.
        format: String,
        /// The version of the file.
        version: String,
    },
    #[error("unsupported version {0}: expected 1, 2 or none")]
    Version(u32),
    /// An invalid entry of a check.
    #[error("`{id}`: {reason}")]
    Entry {
        /// The identifier of the check.
        id: String,
        reason: String,
    },
}

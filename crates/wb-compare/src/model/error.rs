//! Errors in model files of both kinds.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("cannot read `{}`: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("invalid model {}: {source}", path.display())]
    File { path: PathBuf, source: ParseModelError },
    #[error("model {} does not match any check of these builds", path.display())]
    OtherChecks {
        path: PathBuf,
        of_model: String,
        /// Empty without any.
        of_builds: String,
    },
}

impl ModelError {
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io { .. } | Self::File { .. } => None,
            Self::OtherChecks { of_model, of_builds, .. } => {
                Some(format!("the model has `{of_model}`, the builds have `{of_builds}`"))
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ParseModelError {
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("the model has no checks")]
    Empty,
    #[error("unsupported format `{format}` of version {version}: expected `weighbridge-noise` of version 1")]
    Format { format: String, version: String },
    #[error("unsupported version {0}: expected 1, 2 or none")]
    Version(u32),
    #[error("`{id}`: {reason}")]
    Entry { id: String, reason: String },
}

//! Warnings about results that do not prevent reading the rest.

use std::fmt;
use std::path::PathBuf;

use crate::metadata::MetadataError;

/// A warning about a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub path: PathBuf,
    pub kind: WarningKind,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WarningKind {
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("is malformed: {0}")]
    Malformed(String),
    #[error("has {0} iterations without name, data or parameters")]
    Incomplete(usize),
    #[error("has no value over all clients for {first} ({metrics} such metrics)")]
    NoAggregate {
        metrics: usize,
        /// `ITERATION/CLASS/METRIC`.
        first: String,
    },
    /// Duplicate metrics, of which the last one is used.
    #[error("has {first} more than once ({metrics} such metrics)")]
    Repeated { metrics: usize, first: String },
    /// Results of a Weighbridge run that are older than its records, because the run was killed or modified.
    #[error("has results that are older than its records")]
    Outdated,
    /// Samples of a Weighbridge run whose files were modified.
    #[error("`{cell}` has {reason}")]
    Damaged {
        cell: String,
        /// The number of samples, and one of the files.
        reason: String,
    },
    #[error("has `{cell}`, which may be each of {}", candidates.iter().map(|cell| format!("`{cell}`")).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        cell: String,
        /// Cells of the other run.
        candidates: Vec<String>,
    },
    #[error(transparent)]
    Metadata(MetadataError),
}

impl WarningKind {
    pub(crate) fn unreadable(error: impl fmt::Display) -> Self {
        Self::Unreadable(error.to_string())
    }

    /// The consequence when the rest is read.
    fn consequence(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::Malformed(_) => "it is left out",
            Self::Incomplete(_) | Self::NoAggregate { .. } => "they are left out",
            Self::Repeated { .. } => "the last of each counts",
            Self::Outdated => "they are recomputed here, and `weighbridge study` writes them",
            Self::Damaged { .. } => "they do not count, and the cell has an error",
            Self::Ambiguous { .. } => {
                "it is paired with none: give each a name of its own where it is measured (hyperfine's --command-name), or \
                 compare files with the same cells"
            }
            Self::Metadata(_) => "",
        }
    }

    pub(crate) fn malformed(error: impl fmt::Display) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.consequence() {
            "" => write!(f, "{}", self.message()),
            consequence => write!(f, "{}; {consequence}", self.message()),
        }
    }
}

impl Warning {
    pub fn is_damage(&self) -> bool {
        matches!(self.kind, WarningKind::Damaged { .. })
    }

    /// The message without its consequence, for callers that stop there.
    pub fn message(&self) -> String {
        format!("{}: {}", self.path.display(), self.kind)
    }
}

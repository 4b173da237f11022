//! What is odd about results without keeping the rest from being read.

use std::fmt;
use std::path::PathBuf;

use crate::metadata::MetadataError;

/// Something odd about a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Which.
    pub path: PathBuf,
    /// What is odd about it.
    pub kind: WarningKind,
}

/// What is odd.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WarningKind {
    /// It cannot be read, and is left out.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// It is no result in pbench's format, and is left out.
    #[error("is malformed: {0}")]
    Malformed(String),
    /// Iterations without name, parameters or data; they are left out.
    #[error("has iterations without name, data or parameters: {0}")]
    Incomplete(usize),
    /// Metrics without a value over all clients; they are left out.
    #[error("has no value over all clients for {first} ({metrics} such metrics)")]
    NoAggregate {
        /// How many.
        metrics: usize,
        /// The first of them: `ITERATION/CLASS/METRIC`.
        first: String,
    },
    /// Metrics that are there more than once; the last of each counts.
    #[error("has {first} more than once ({metrics} such metrics)")]
    Repeated {
        /// How many.
        metrics: usize,
        /// The first of them.
        first: String,
    },
    /// Results of a run of this program that are older than its records: the run was ended from outside, or changed.
    #[error("has results that are older than its records")]
    Outdated,
    /// Samples of a run of this program whose files are not as they were written.
    #[error("`{cell}` has {why}")]
    Damaged {
        /// Their cell.
        cell: String,
        /// How many there are, and one of the files.
        why: String,
    },
    /// A line of the metadata that says nothing.
    #[error(transparent)]
    Metadata(MetadataError),
}

impl WarningKind {
    pub(crate) fn unreadable(error: impl fmt::Display) -> Self {
        Self::Unreadable(error.to_string())
    }

    /// What is made of it where the rest is read.
    fn consequence(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::Malformed(_) => "it is left out",
            Self::Incomplete(_) | Self::NoAggregate { .. } => "they are left out",
            Self::Repeated { .. } => "the last of each counts",
            Self::Outdated => "it is studied anew here, and `weighbridge study` writes its results",
            Self::Damaged { .. } => "they do not count, and the cell has an error",
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
    /// Whether records are not as they were written.
    pub fn is_damage(&self) -> bool {
        matches!(self.kind, WarningKind::Damaged { .. })
    }

    /// What is wrong, without what was made of it: for where nothing was.
    pub fn message(&self) -> String {
        format!("{}: {}", self.path.display(), self.kind)
    }
}

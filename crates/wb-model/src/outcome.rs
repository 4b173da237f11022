//! What can come of measuring, at three levels: an attempt, a value, a cell.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Nanos, WorkerName};

/// What happened to one try at a sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum AttemptOutcome {
    /// It ran to its end.
    Completed,
    /// It was ended at its limit.
    Timeout {
        /// The limit.
        after: Nanos,
    },
    /// A process of it failed.
    Crashed {
        /// Which one, and how: `fio: exit status 1: …`.
        status: String,
    },
    /// It was never started.
    Refused {
        /// Why.
        reason: String,
    },
    /// The user ended it.
    Cancelled,
    /// The worker went away.
    Lost {
        /// Which one.
        worker: WorkerName,
        /// How that showed; nothing in what older versions recorded.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

impl AttemptOutcome {
    /// Whether it ran to its end.
    pub fn is_completed(&self) -> bool {
        *self == Self::Completed
    }
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => write!(f, "completed"),
            Self::Timeout { after } => write!(f, "timeout after {after}"),
            Self::Crashed { status } => write!(f, "crashed ({status})"),
            Self::Refused { reason } => write!(f, "refused ({reason})"),
            Self::Cancelled => write!(f, "cancelled"),
            Self::Lost { worker, reason: why } if why.is_empty() => write!(f, "lost ({worker})"),
            Self::Lost { worker, reason: why } => write!(f, "lost ({worker}: {why})"),
        }
    }
}

/// What an attempt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Brings the system to its working state and calibrates the work; recorded, never counted.
    WarmUp,
    /// Counted.
    Sample,
}

/// The question that a value did not stand up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Did the declared work happen?
    Work,
    /// Is the answer of the computation right?
    Answer,
    /// Is the value possible at all?
    Possible,
    /// Did state carry over from one sample to the next?
    State,
    /// Did the time depend on the work?
    Effort,
    /// Could the output be read, in the unit that was expected?
    Output,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Work => "work",
            Self::Answer => "answer",
            Self::Possible => "possible",
            Self::State => "state",
            Self::Effort => "effort",
            Self::Output => "output",
        })
    }
}

/// Whether the values of a completed attempt count. Invalid ones are kept and shown, and enter no statistic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "validity", rename_all = "kebab-case")]
pub enum Validity {
    /// They do.
    Valid,
    /// They do not.
    Invalid {
        /// The question they did not stand up to.
        gate: Gate,
        /// The figures that say so.
        figures: String,
    },
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid => write!(f, "valid"),
            Self::Invalid { gate, figures } => write!(f, "invalid ({gate}: {figures})"),
        }
    }
}

/// What is known of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum CellOutcome {
    /// Its rule was met.
    Measured,
    /// A limit came before its rule was met.
    NotConverged {
        /// Relative half-width of the interval that was reached, in percent.
        percent: f64,
    },
    /// Fewer valid samples than the rule's minimum.
    Partial {
        /// Valid samples there are.
        valid: usize,
        /// Samples that the rule wants at least.
        required: usize,
    },
    /// No valid sample.
    Failed {
        /// Why the last attempt gave none.
        reason: String,
    },
    /// It cannot be measured here.
    Unsupported {
        /// Why.
        reason: String,
    },
}

impl CellOutcome {
    /// The outcome as one word, for columns and filters.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::NotConverged { .. } => "not-converged",
            Self::Partial { .. } => "partial",
            Self::Failed { .. } => "failed",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// Whether something could not be measured as asked.
    pub fn is_incomplete(&self) -> bool {
        matches!(self, Self::Partial { .. } | Self::Failed { .. } | Self::Unsupported { .. })
    }
}

impl fmt::Display for CellOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured => write!(f, "measured"),
            Self::NotConverged { percent } => write!(f, "not converged, ±{percent:.1} %"),
            Self::Partial { valid, required: wanted } => write!(f, "partial ({valid} of {wanted})"),
            Self::Failed { reason } => write!(f, "failed ({reason})"),
            Self::Unsupported { reason } => write!(f, "unsupported ({reason})"),
        }
    }
}

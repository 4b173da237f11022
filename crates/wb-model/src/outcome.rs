//! Outcomes of measurements at three levels: attempt, value, cell.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MetricKey, Nanos, WorkerName};

/// Outcome of an attempt at a sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum AttemptOutcome {
    /// It completed.
    Completed,
    /// It was terminated at its time limit.
    Timeout {
        /// The limit.
        after: Nanos,
    },
    /// A process of it failed.
    Crashed {
        /// The process and its failure: `fio: exit status 1: …`.
        status: String,
    },
    /// It failed by the account of another program, whose results were imported.
    Failed {
        /// What that program says of it.
        reason: String,
    },
    /// It was refused and never started.
    Refused {
        /// The reason.
        reason: String,
    },
    /// The user cancelled it.
    Cancelled,
    /// The worker was lost.
    Lost {
        /// The worker.
        worker: WorkerName,
        /// The reason; empty in records of older versions.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

impl AttemptOutcome {
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
            Self::Failed { reason } => f.write_str(reason),
            Self::Refused { reason } => write!(f, "refused ({reason})"),
            Self::Cancelled => write!(f, "cancelled"),
            Self::Lost { worker, reason } if reason.is_empty() => write!(f, "lost ({worker})"),
            Self::Lost { worker, reason } => write!(f, "lost ({worker}: {reason})"),
        }
    }
}

/// What an attempt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptPurpose {
    /// Warms up the system and calibrates the work; recorded, never counted.
    WarmUp,
    /// Takes a counted sample.
    Sample,
}

/// Plausibility check that a value failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Did the declared work happen?
    Work,
    /// Is the answer of the computation right?
    Answer,
    /// Is the value plausible: can the machine reach it?
    Plausibility,
    /// Did state carry over from one sample to the next?
    State,
    /// Did the time depend on the work?
    Effort,
    /// Could the output be read, in the unit that was expected?
    Output,
}

impl Gate {
    pub const ALL: [Self; 6] = [Self::Work, Self::Answer, Self::Plausibility, Self::State, Self::Effort, Self::Output];
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Work => "work",
            Self::Answer => "answer",
            Self::Plausibility => "plausibility",
            Self::State => "state",
            Self::Effort => "effort",
            Self::Output => "output",
        })
    }
}

/// Whether the values of a completed attempt are valid. Invalid values are kept and shown, but excluded from
/// statistics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "validity", rename_all = "kebab-case")]
pub enum Validity {
    /// The values are valid.
    Valid,
    /// The values are invalid.
    Invalid {
        /// The failed check.
        gate: Gate,
        /// The figures that failed it.
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

/// Outcome of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum CellOutcome {
    /// Its rule was met.
    Measured,
    /// A limit was reached before its rule was met.
    NotConverged {
        /// Relative half-width of the confidence interval reached, in percent; the largest, of several primary metrics.
        percent: f64,
        /// The primary metrics that did not converge; absent if the cell has only one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        metrics: Vec<MetricPrecision>,
    },
    /// Fewer valid samples than the rule's minimum.
    Partial {
        /// Number of valid samples.
        valid: usize,
        /// Minimum number of samples of the rule.
        required: usize,
    },
    /// No valid sample.
    Failed {
        /// Reason of the last failure.
        reason: String,
    },
    /// It cannot be measured here.
    Unsupported {
        /// The reason.
        reason: String,
    },
}

/// The precision that a metric has reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricPrecision {
    /// The metric: `latency/p99`.
    pub metric: MetricKey,
    /// Relative half-width of the confidence interval reached, in percent.
    pub percent: f64,
}

impl CellOutcome {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::NotConverged { .. } => "not-converged",
            Self::Partial { .. } => "partial",
            Self::Failed { .. } => "failed",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// Whether something could not be measured as requested.
    pub fn is_incomplete(&self) -> bool {
        matches!(self, Self::Partial { .. } | Self::Failed { .. } | Self::Unsupported { .. })
    }
}

impl fmt::Display for CellOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured => write!(f, "measured"),
            Self::NotConverged { percent, metrics } if metrics.is_empty() => {
                write!(f, "not converged, ±{percent:.1} %")
            }
            Self::NotConverged { metrics, .. } => {
                let reached =
                    metrics.iter().map(|MetricPrecision { metric, percent }| format!("{metric} ±{percent:.1} %"));
                write!(f, "not converged: {}", reached.collect::<Vec<_>>().join(", "))
            }
            Self::Partial { valid, required } => write!(f, "partial ({valid} of {required})"),
            Self::Failed { reason } => write!(f, "failed ({reason})"),
            Self::Unsupported { reason } => write!(f, "unsupported ({reason})"),
        }
    }
}

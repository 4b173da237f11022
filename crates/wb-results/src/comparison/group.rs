//! The results of groups: averages of related primary means.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfidenceInterval, FinalVerdict, Status};

/// The result of a group of primary means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckGroupResult {
    /// Their common identifier, with stars for differing parts.
    pub id: String,
    /// The number of members with a score.
    pub members: usize,
    /// The average score in percent, with run-perf's signs.
    pub score: f64,
    /// The average that the status is of, in percent, positive if better; `None` if no member has a better direction.
    #[serde(default)]
    pub improvement: Option<f64>,
    /// Whether both averages are geometric means of ratios. The improvement is of speed then: times, and whatever else is
    /// better if lower, are inverted.
    #[serde(default)]
    pub is_geometric: bool,
    /// The median of the members' improvements, in percent.
    #[serde(default)]
    pub median: Option<f64>,
    /// The member that the average follows, if there are three or more: its part is larger than those of all others together.
    #[serde(default)]
    pub dominant: Option<DominantMember>,
    /// The maximum deviation from zero.
    pub tolerance: f64,
    /// The status by the tolerance method.
    pub status: Status,
    /// Whether it is part of the exit code, which is the case if tolerances decide all of its members.
    pub decides: bool,
    /// The verdict: by the status if tolerances decide all of its members, otherwise by the interval.
    #[serde(default = "inconclusive")]
    pub final_verdict: FinalVerdict,
    /// The confidence interval of the ratio of the average speeds of both sides, with the noise between runs, which all
    /// checks of a run are taken to share. `None` if tolerances decide, if the noise of single samples is unknown, if a run
    /// lacks a member, or if a value is not above zero.
    #[serde(default)]
    pub interval: Option<ConfidenceInterval>,
    /// Whether the interval has no noise between runs: runs are taken not to differ, and there is one of each side.
    #[serde(default)]
    pub without_run_noise: bool,
    /// The number of members with a score that differ notably themselves.
    #[serde(default)]
    pub notable_members: usize,
    /// The number of the other members, without a score, that differ notably or could not be compared: of what became zero there
    /// is no part in a geometric mean.
    #[serde(default)]
    pub notable_without_score: usize,
}

fn inconclusive() -> FinalVerdict {
    FinalVerdict::Inconclusive
}

/// A check that an average follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DominantMember {
    /// Its identifier.
    pub id: String,
    /// Its improvement, in percent.
    pub improvement: f64,
    /// The average improvement of the others.
    pub average_without: f64,
}

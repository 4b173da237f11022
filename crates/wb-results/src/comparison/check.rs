//! The results of checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Direction, Unit};

use super::{ComparisonMethod, FinalVerdict, Statistic, StatisticalSummary};

/// The result of a check: a statistic of a metric of a case, in all builds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// `PROFILE/TEST/SERIAL:./CASE/CLASS/METRIC.STATISTIC`, in run-perf's syntax.
    pub id: String,
    /// The names of both sides, if they are parts of one run: `threads=1` and `threads=2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<[String; 2]>,
    /// The cell of the reference, `PROFILE/TEST/SERIAL:CASE`, if it is another one of the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_cell: Option<String>,
    /// The statistic, which is the last part of the identifier.
    pub statistic: Statistic,
    /// Whether it is a primary metric of its case.
    pub primary: bool,
    /// The better direction.
    pub direction: Direction,
    /// The unit of the values: `%` for standard deviations; `None` if declared by no build.
    #[serde(default)]
    pub value_unit: Option<Unit>,
    /// The value in the first build; `None` if it has no valid value.
    pub before: Option<f64>,
    /// The value in the last build; `None` if it has no valid value.
    pub after: Option<f64>,
    /// The values in all builds, including the first and the last.
    pub values: Vec<Option<f64>>,
    /// The difference in percent without any model (of a standard deviation in percentage points, positive if it
    /// decreased); `None` if a side has no valid value or it is infinite.
    pub difference: Option<f64>,
    /// The score in percent, with run-perf's sign.
    pub score: Option<f64>,
    /// The scores of every build after the first.
    pub scores: Vec<Option<f64>>,
    /// The maximum deviation of the score from zero, in percent.
    pub tolerance: f64,
    /// The verdict by the tolerance method.
    pub status: FinalVerdict,
    /// The same of every build after the first; `None` if neither side has the check.
    pub statuses: Vec<Option<FinalVerdict>>,
    /// The components of the score: each part's name, difference in percent (`None` if infinite), and weight.
    pub score_parts: Vec<(String, Option<f64>, f64)>,
    /// The result of the statistical method, for means.
    #[serde(flatten)]
    pub statistics: Option<StatisticalSummary>,
    /// The method that decided.
    pub decided_by: ComparisonMethod,
    /// The final verdict.
    pub final_verdict: FinalVerdict,
    /// Why there is no verdict, if known: the error that explains a missing value, or too few samples; of a metric that both
    /// sides declare with different directions or classes, the way out.
    pub reason: Option<String>,
    /// Parameters that differ between the sides.
    pub differences: Vec<ParamDifference>,
    /// The folders of the runs of the first build and of the last that do not have it, although others of the build do.
    #[serde(default, skip_serializing_if = "are_complete")]
    pub lacking: [Vec<String>; 2],
    /// Whether it fails the comparison (exit code 2): worse, or what was asked to fail.
    #[serde(default)]
    pub fails: bool,
    /// What was found about the samples of the first build and of the last: trends, modes, dependence and the like.
    #[serde(default)]
    pub findings: [Vec<String>; 2],
}

fn are_complete(lacking: &[Vec<String>; 2]) -> bool {
    lacking.iter().all(Vec::is_empty)
}

impl CheckResult {
    /// Whether it decides, and the last build does not have it in all of its runs.
    pub fn is_partly_missing(&self) -> bool {
        self.primary && !self.lacking[1].is_empty()
    }
}

/// A parameter that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ParamDifference {
    /// The parameter.
    pub name: String,
    /// The value in the first build; `None` if it has no such parameter.
    pub before: Option<String>,
    /// The value in the last build.
    pub after: Option<String>,
}

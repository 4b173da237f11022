//! Parts of one run as the sides of a comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A comparison of parts of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WithinRunSummary {
    /// The run.
    pub run: String,
    /// What its parts differ in: `worker`, `id`, or a parameter.
    pub by: String,
    /// The part that the others are compared with: `threads=1`.
    pub reference: String,
    /// The other parts, in the order of the plan.
    pub judged: Vec<String>,
    /// Cells that were not compared, because no other differs from them in this alone.
    pub unmatched: Vec<String>,
}

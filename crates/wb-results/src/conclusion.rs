//! What follows from several cells together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Unit;
use wb_stats::Interval;

/// A result derived from several cells together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// The cells that it is derived from, `PROFILE/TEST/SERIAL`, with `@WORKER` if it is of one of several workers.
    pub cells: String,
    /// Its name.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its confidence interval, from those of the medians that it is derived from; absent if one of them has none, or if
    /// the figure is not derived from medians.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Its unit.
    pub unit: Unit,
    /// How it is derived, in a sentence, with the figures it is derived from.
    pub explanation: String,
}

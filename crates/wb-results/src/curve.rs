//! Curves measured within samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Unit;

/// Curves of one quantity, measured within the samples of one cell and drawn as one chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveSet {
    /// The title: `bandwidth over block size`.
    pub title: String,
    /// The quantity of the x axis and its unit. If that is `B`, the axis is logarithmic to base 2.
    pub x: (String, Unit),
    /// The measured quantity and its unit.
    pub y: (String, Unit),
    /// The lines in the chart, each with an entry in the legend.
    pub lines: Vec<SummaryCurve>,
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryCurve {
    /// Its name in the legend.
    pub name: String,
    /// Its points, by ascending x.
    pub points: Vec<SummaryPoint>,
}

/// One point of a line: the median over the counted samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryPoint {
    /// The value on the x axis.
    pub x: f64,
    /// The median, on the y axis.
    pub y: f64,
    /// The ends of the 95 % confidence interval of the median; absent if there are too few samples.
    pub interval: Option<(f64, f64)>,
    /// The range of the middle 80 % of the samples, from p10 to p90; absent for a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<(f64, f64)>,
}

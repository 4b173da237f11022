//! Series with their fitted lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Point, Polyline};

/// Values over the vrate, and the line that is fitted to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedSeries {
    /// The values that the line is fitted to, by vrate.
    pub points: Vec<Point>,
    /// Values that it is not fitted to.
    pub rejected: Vec<Point>,
    /// The line; `None` without values.
    pub line: Option<Polyline>,
    /// The error of the line for all values: the root of the summed squares, by their number.
    pub error: f64,
}

impl FittedSeries {
    /// The value of the line at a vrate; `None` without a line.
    pub fn at(&self, vrate: f64) -> Option<f64> {
        self.line.as_ref().map(|line| line.eval(vrate))
    }
}

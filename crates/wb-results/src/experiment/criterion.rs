//! When an experiment reports a difference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Direction, MetricKey, Unit};

use crate::comparison::NegligibleRatios;

/// The metric that decides an experiment, and how large and how certain a difference must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// The test as given on the command line, such as `himeno:grid=M`.
    pub test: String,
    /// The first primary metric, `CLASS/METRIC`. Every primary one decides: see the cases.
    #[schemars(with = "String")]
    pub metric: MetricKey,
    /// Other primary metrics, which decide nothing: if an older version recorded the run.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub other_metrics: Vec<MetricKey>,
    /// The unit of the metric's values.
    pub unit: Unit,
    /// Which direction of change is better.
    pub direction: Direction,
    /// The smallest relevant difference, in percent: if the whole confidence interval of the ratio is closer to 1, the
    /// verdict is `equivalent`.
    pub threshold: f64,
    /// The ratios that do not matter by the threshold, both ends included: for 5 % from 1/1.05 to 1.05, which is −4.76 % to
    /// +5 %. `None` if an older version recorded the run.
    #[serde(default)]
    pub negligible: Option<NegligibleRatios>,
    /// The error rate, in percent: the share of identical variants among those reported as different; of a single
    /// comparison, and of the sides of a calibration, the probability that they are.
    pub error_rate: f64,
}

impl Criterion {
    pub fn compared_metric(&self) -> ComparedMetric {
        ComparedMetric { metric: self.metric.clone(), unit: self.unit.clone(), direction: self.direction }
    }
}

/// A metric by which variants are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedMetric {
    /// The metric, `CLASS/METRIC`.
    #[schemars(with = "String")]
    pub metric: MetricKey,
    /// The unit of its values.
    pub unit: Unit,
    /// Which direction of change is better.
    pub direction: Direction,
}

//! Sampling settings: number, length and order of samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_stats::SamplingRule;

/// The order in which the cells of a profile are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamplingOrder {
    /// In rounds, each taking one sample of every unfinished cell in a random order: drift hits all alike.
    #[default]
    Interleaved,
    /// One cell after the other.
    Sequential,
}

/// The sampling settings of a plan; the table `[sampling]` of a plan file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Sampling {
    /// Minimum time of a sample, to which its work is calibrated.
    pub min_time: Nanos,
    /// Number of warm-up samples, which are recorded and excluded.
    pub warm_up: u32,
    /// Minimum number of samples of a cell.
    #[schemars(range(min = 1))]
    pub min_samples: usize,
    /// Maximum number of samples of a cell, not counting retaken disturbed samples.
    #[schemars(range(min = 1))]
    pub max_samples: usize,
    /// Target precision: the half-width of the median's interval, in percent of the median, at which a cell is done.
    pub precision: f64,
    /// Maximum total time of a cell's samples. The default is ten minutes, which ends no cell before its minimum number
    /// of samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Nanos>,
    /// The order in which cells are sampled.
    pub order: SamplingOrder,
    /// Seed of every random choice; generated and recorded if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Maximum number of disturbed samples of a cell that are taken again.
    pub retakes: usize,
    /// Maximum number of attempts at one sample before its cell is given up.
    #[schemars(range(min = 1))]
    pub attempts: u32,
    /// Maximum time of one attempt; the default is ten times its estimate plus one minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Nanos>,
    /// Maximum number of cells that stay prepared between samples at the same time.
    #[schemars(range(min = 1))]
    pub max_prepared: usize,
    /// Interval between two telemetry readings.
    pub telemetry_interval: Nanos,
    /// Maximum total standard output of declarative tests that a run records; the rest is cut.
    pub max_stdout: Bytes,
}

const SECOND: u64 = 1_000_000_000;

impl Default for Sampling {
    fn default() -> Self {
        Self {
            min_time: Nanos(5 * SECOND),
            warm_up: 1,
            min_samples: 6,
            max_samples: 30,
            precision: 2.0,
            budget: None,
            order: SamplingOrder::Interleaved,
            seed: None,
            retakes: 6,
            attempts: 3,
            limit: None,
            max_prepared: 8,
            telemetry_interval: Nanos(SECOND),
            max_stdout: Bytes(1 << 30),
        }
    }
}

impl Sampling {
    /// The stopping rule for cells whose test requests none of its own.
    pub fn rule(&self) -> SamplingRule {
        SamplingRule::Precision {
            percent: self.precision,
            min_samples: self.min_samples,
            max_samples: self.max_samples.max(self.min_samples),
        }
    }

    /// The maximum total time of a cell's attempts; the default budget only applies once it has `enough` samples.
    pub fn budget(&self, enough: bool) -> Option<Nanos> {
        // The default is soft, because fewer samples than the minimum could not be used. An explicit one is hard; the
        // plan shows how many samples it allows.
        self.budget.or(enough.then_some(Nanos(600 * SECOND)))
    }

    /// The maximum time of one attempt that is estimated to take `estimate`.
    pub fn limit(&self, estimate: Nanos) -> Nanos {
        self.limit.unwrap_or(Nanos(estimate.0.saturating_mul(10).saturating_add(60 * SECOND)))
    }

    pub fn validate(&self) -> Option<InvalidSampling> {
        let zero = [
            ("min-time", self.min_time.0 == 0),
            ("min-samples", self.min_samples == 0),
            ("max-samples", self.max_samples == 0),
            ("budget", self.budget == Some(Nanos(0))),
            ("attempts", self.attempts == 0),
            ("limit", self.limit == Some(Nanos(0))),
            ("max-prepared", self.max_prepared == 0),
            ("telemetry-interval", self.telemetry_interval.0 == 0),
        ];
        if let Some((key, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Some(InvalidSampling {
                keys: vec![key],
                message: format!("invalid `{key}` 0: expected a value greater than 0"),
            });
        }
        if self.max_samples < self.min_samples {
            let message =
                format!("`max-samples` ({}) is less than `min-samples` ({})", self.max_samples, self.min_samples);
            return Some(InvalidSampling { keys: vec!["max-samples", "min-samples"], message });
        }
        if !(self.precision > 0.0 && self.precision.is_finite()) {
            let message = format!("invalid `precision` {}: expected a positive percentage", self.precision);
            return Some(InvalidSampling { keys: vec!["precision"], message });
        }
        None
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSampling {
    /// The keys in error; some of them may not have been written.
    pub keys: Vec<&'static str>,
    pub message: String,
}

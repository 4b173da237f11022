//! How many samples are taken, how long each is, and in which order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_stats::SamplingRule;

/// In which order the cells of a profile are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamplingOrder {
    /// In rounds, each taking one sample of every unfinished cell in a random order: drift hits all alike.
    #[default]
    Interleaved,
    /// Each cell to its end before the next.
    Sequential,
}

/// How a plan samples. In a plan file it is the table `[sampling]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Sampling {
    /// A sample's work is calibrated to take at least this long.
    pub min_time: Nanos,
    /// Samples before the counted ones; recorded and excluded.
    pub warm_up: u32,
    /// No cell is done with fewer samples.
    #[schemars(range(min = 1))]
    pub min_samples: usize,
    /// No more samples are taken, but for retaken disturbed ones.
    #[schemars(range(min = 1))]
    pub max_samples: usize,
    /// A cell is done when half the interval of its median is within so many percent of it.
    pub precision: f64,
    /// A cell's samples take no longer than this in all. Without, ten minutes, which end no cell before its fewest
    /// samples are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Nanos>,
    /// In which order cells are sampled.
    pub order: SamplingOrder,
    /// Decides every random choice; drawn and recorded where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many disturbed samples of a cell are taken again.
    pub retakes: usize,
    /// How often one sample is tried before its cell is given up.
    #[schemars(range(min = 1))]
    pub attempts: u32,
    /// One attempt takes no longer than this; default: ten times its estimate and a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Nanos>,
    /// How many cells whose preparation outlives a sample are alive at once.
    #[schemars(range(min = 1))]
    pub max_prepared: usize,
    /// Time between two readings of the telemetry.
    pub telemetry_interval: Nanos,
    /// How much standard output of declarative tests a run records in all; what is more is cut.
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
    /// The rule for cells whose test asks for none of its own.
    pub fn rule(&self) -> SamplingRule {
        SamplingRule::Precision {
            percent: self.precision,
            min_samples: self.min_samples,
            max_samples: self.max_samples.max(self.min_samples),
        }
    }

    /// How long a cell's attempts may take in all, once it has `enough` samples or none of them.
    pub fn budget(&self, enough: bool) -> Option<Nanos> {
        self.budget.or(enough.then_some(Nanos(600 * SECOND)))
    }

    /// How long one attempt may take that is estimated to take `estimate`.
    pub fn limit(&self, estimate: Nanos) -> Nanos {
        self.limit.unwrap_or(Nanos(estimate.0.saturating_mul(10).saturating_add(60 * SECOND)))
    }

    /// What is wrong with it, if anything.
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
            return Some(InvalidSampling { keys: vec![key], message: format!("`{key}` must be more than 0") });
        }
        if self.max_samples < self.min_samples {
            let what = format!("max-samples ({}) is below min-samples ({})", self.max_samples, self.min_samples);
            return Some(InvalidSampling { keys: vec!["max-samples", "min-samples"], message: what });
        }
        if !(self.precision > 0.0 && self.precision.is_finite()) {
            let what = format!("`precision` must be a positive number of percent, not {}", self.precision);
            return Some(InvalidSampling { keys: vec!["precision"], message: what });
        }
        None
    }
}

/// What is wrong with a [`Sampling`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSampling {
    /// The keys that say it; not all of them need be written.
    pub keys: Vec<&'static str>,
    /// What it is.
    pub message: String,
}

//! What `protection` found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use super::{Distribution, IoLatencies, MemHog, MemHogTune};

/// Scenarios of protection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProtectionAnswer {
    /// The scenarios, in order.
    pub scenarios: Vec<ScenarioAnswer>,
    /// All scenarios `mem-hog` together, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combined: Option<HogAnswer>,
}

/// A scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "scenario", rename_all = "kebab-case")]
pub enum ScenarioAnswer {
    /// `mem-hog`.
    MemHog {
        /// What was run.
        scenario_properties: MemHog,
        /// What was found.
        answer: HogAnswer,
    },
    /// `mem-hog-tune`.
    MemHogTune(HogTuneAnswer),
}

/// hashd beside a memory hog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HogAnswer {
    /// Rate of hashd alone that isolation relates to, in requests per second.
    pub base_rps: f64,
    /// Latency of hashd alone, in nanoseconds: mean.
    pub base_latency: f64,
    /// Its standard deviation.
    pub base_latency_stdev: f64,
    /// Isolation: the rate relative to that of hashd alone, at most 1, each second.
    pub isolation: Distribution,
    /// Latency impact: how much longer requests took than with hashd alone, relative to that, each second.
    pub latency_impact: Distribution,
    /// Work conservation: used / (used + what was left unused or lost although it was needed); `None` without io.cost.
    pub work_conservation: Option<f64>,
    /// Latencies of I/O.
    pub latency: IoLatencies,
    /// Mean vrate, in percent, and its standard deviation; `None` without io.cost.
    pub vrate: Option<(f64, f64)>,
    /// Why repetitions failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Part of the reports that is missing.
    pub missing: f64,
}

/// The largest footprint that is protected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HogTuneAnswer {
    /// What was run.
    pub properties: MemHogTune,
    /// The footprint; `None` if none is protected.
    pub size: Option<Bytes>,
    /// The measurement with it, or, if none is protected, with the last footprint beside which a hog ran for its whole time.
    pub hog: Option<HogAnswer>,
    /// Why footprints failed that have no measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

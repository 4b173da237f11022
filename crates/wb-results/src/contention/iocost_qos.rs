//! What `iocost-qos` found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Distribution, HogAnswer, HogTuneAnswer, IoLatencies, IocostParameters, Percentile, QosOverride, Series,
    StorageAnswer,
};

/// Part of the seconds in which the vrate may be outside its bounds: it takes the kernel a moment to apply them.
const VRATE_OUTSIDE_MAX: f64 = 0.1;

/// Settings of io.cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QosAnswer {
    /// The parameters that the settings change.
    pub base: IocostParameters,
    /// The memory profile, in GiB.
    pub mem_profile: Option<u32>,
    /// Percentile of the isolation that decides.
    pub isol_pct: Percentile,
    /// What it has to reach.
    pub isol_thr: f64,
    /// The settings; the first is without io.cost.
    pub stages: Vec<QosStageAnswer>,
}

/// A setting of io.cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QosStageAnswer {
    /// The changes; `None`: io.cost is disabled.
    pub change: Option<QosOverride>,
    /// What was found; `None` if it was left out.
    pub found: Option<Box<QosFigures>>,
}

/// Footprint and isolation under a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QosFigures {
    /// The footprint that the device supports.
    pub storage: StorageAnswer,
    /// The footprint that is protected; `None` if that could not be measured.
    pub protection: Option<HogTuneAnswer>,
    /// Adjusted memory offloading factor: protected footprint / memory.
    pub amof: Option<f64>,
    /// Distribution of the vrate, in percent; `None` without io.cost.
    pub vrate: Option<Distribution>,
    /// Part of the seconds with I/O in which the vrate was outside the bounds of the setting.
    #[serde(default)]
    pub vrate_outside: f64,
    /// Latencies of I/O in both measurements.
    pub latency: IoLatencies,
    /// Part of the reports that is missing.
    pub missing: f64,
}

impl QosFigures {
    /// Whether they were measured under their setting.
    pub fn is_valid(&self) -> bool {
        self.vrate_outside <= VRATE_OUTSIDE_MAX
    }

    /// The measurement of the protected footprint, or of the last one that failed.
    pub fn hog(&self) -> Option<&HogAnswer> {
        self.protection.as_ref()?.hog.as_ref()
    }

    pub fn value(&self, series: Series, isol_pct: Percentile) -> Option<f64> {
        match series {
            Series::Mof => Some(self.storage.mof),
            Series::Amof => self.amof,
            Series::AmofDelta => self.amof.map(|amof| self.storage.mof - amof),
            Series::Isol => self.hog()?.isolation.get(isol_pct),
            Series::IsolPct(percentile) => self.hog()?.isolation.get(percentile),
            // Without protection, nothing is isolated.
            Series::IsolMean => Some(self.hog().map_or(0.0, |hog| hog.isolation.mean)),
            Series::LatImp => self.hog().map(|hog| hog.latency_impact.mean),
            Series::WorkCsv => self.hog()?.work_conservation,
            Series::Missing => Some(self.missing),
            Series::Latency(kind, percentile, time) => self.storage.latency.get(kind)?.get(percentile, time),
        }
    }
}

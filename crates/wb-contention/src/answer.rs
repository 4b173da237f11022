//! Results of benches.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use crate::distribution::Distribution;
use crate::latency_table::LatencyTable;
use crate::parameters::{HashdParameters, IocostParameters};
use crate::solve::{FittedSeries, SolvedQos};
use crate::spec::{BenchSpec, LatencyKind, MemHog, MemHogTune, Solution};
use crate::stage::Instance;
use crate::system::{MemoryProfile, SystemInfo, Versions};
use crate::{Bench, Percentile, QosOverride, Series};

/// `result.json` of a bench. It depends on nothing but what was measured: no time of day is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchResult {
    /// The instance.
    pub instance: Instance,
    /// Its specification.
    pub spec: BenchSpec,
    /// The machine, at the beginning.
    pub system: SystemInfo,
    /// The versions that measured.
    pub versions: Versions,
    /// What was found.
    pub answer: Answer,
}

/// What a bench found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "bench", rename_all = "kebab-case")]
pub enum Answer {
    /// Of `storage`.
    Storage(StorageAnswer),
    /// Of `iocost-params`.
    IocostParams(IocostParameters),
    /// Of `hashd-params`.
    HashdParams(HashdParameters),
    /// Of `iocost-qos`.
    IocostQos(QosAnswer),
    /// Of `iocost-tune`.
    IocostTune(TuneAnswer),
    /// Of `protection`.
    Protection(ProtectionAnswer),
}

/// The footprint that a device supports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageAnswer {
    /// Memory offloading factor: footprint / memory.
    pub mof: f64,
    /// Whether it is a lower bound only: the largest footprint that could be tried was supported.
    #[serde(default)]
    pub is_lower_bound: bool,
    /// The memory.
    pub memory: MemoryProfile,
    /// The parameters of hashd.
    pub hashd: HashdParameters,
    /// Memory that hashd used, in bytes: mean over the loops.
    pub usage: f64,
    /// Its standard deviation.
    pub usage_stdev: f64,
    /// Footprint, in bytes: mean over the loops.
    pub size: f64,
    /// Its standard deviation.
    pub size_stdev: f64,
    /// Number of loops.
    pub loops: u64,
    /// I/O with the final footprints.
    pub final_io: IoRates,
    /// I/O over the whole measurement.
    pub all_io: IoRates,
    /// Latencies of I/O over the whole measurement.
    pub latency: IoLatencies,
    /// Part of the reports that is missing.
    pub missing: f64,
    /// What the machine used; `None` in results of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceUse>,
}

/// What the machine used over the seconds of a measurement, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    /// Over all of it.
    pub all: BTreeMap<String, Distribution>,
    /// With the final footprints.
    pub last: BTreeMap<String, Distribution>,
}

/// Mean I/O rates, in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IoRates {
    /// Reads.
    pub read: f64,
    /// Writes.
    pub write: f64,
}

/// Latencies of I/O; what never occurred is `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IoLatencies {
    /// Reads.
    pub read: Option<LatencyTable>,
    /// Writes.
    pub write: Option<LatencyTable>,
    /// Requests that completed, but that the kernel did not count: they are in neither table.
    #[serde(default)]
    pub uncounted: u64,
    /// Requests in both tables.
    #[serde(default)]
    pub counted: u64,
}

impl IoLatencies {
    /// The part of the requests that is in neither table.
    pub fn uncounted_part(&self) -> f64 {
        self.uncounted as f64 / (self.uncounted + self.counted).max(1) as f64
    }

    /// The table of one kind of request.
    pub fn get(&self, kind: LatencyKind) -> Option<&LatencyTable> {
        match kind {
            LatencyKind::Read => self.read.as_ref(),
            LatencyKind::Write => self.write.as_ref(),
        }
    }
}

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

/// Solutions from the results of `iocost-qos`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TuneAnswer {
    /// The parameters that the settings change.
    pub base: IocostParameters,
    /// The memory profile, in GiB.
    pub mem_profile: Option<u32>,
    /// Percentile of the isolation that decides.
    pub isol_pct: Percentile,
    /// What it has to reach.
    pub isol_thr: f64,
    /// The specification of the `iocost-qos`, for `merge`.
    pub qos_spec: BenchSpec,
    /// The series over the vrate.
    pub series: BTreeMap<Series, FittedSeries>,
    /// The solutions, in order.
    pub solutions: Vec<SolutionAnswer>,
    /// Remarks for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A solution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SolutionAnswer {
    /// What was to be solved.
    pub solution: Solution,
    /// The settings; `None` if there are none.
    pub solved: Option<SolvedQos>,
}

impl Answer {
    /// The bench.
    pub fn bench(&self) -> Bench {
        match self {
            Self::Storage(_) => Bench::Storage,
            Self::IocostParams(_) => Bench::IocostParams,
            Self::HashdParams(_) => Bench::HashdParams,
            Self::IocostQos(_) => Bench::IocostQos,
            Self::IocostTune(_) => Bench::IocostTune,
            Self::Protection(_) => Bench::Protection,
        }
    }
}

/// Part of the seconds in which the vrate may be outside its bounds: it takes the kernel a moment to apply them.
const VRATE_OUTSIDE_MAX: f64 = 0.1;

impl QosFigures {
    /// Whether they were measured under their setting.
    pub fn is_valid(&self) -> bool {
        self.vrate_outside <= VRATE_OUTSIDE_MAX
    }

    /// The measurement of the protected footprint, or of the last one that failed.
    pub fn hog(&self) -> Option<&HogAnswer> {
        self.protection.as_ref()?.hog.as_ref()
    }

    /// The value of a series.
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

//! Results of benches.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::benches::iocost_qos::answer::{QosAnswer, QosFigures, QosStageAnswer};
pub use crate::benches::iocost_tune::answer::{SolutionAnswer, TuneAnswer};
pub use crate::benches::protection::answer::{HogAnswer, HogTuneAnswer, ProtectionAnswer, ScenarioAnswer};
pub use crate::benches::storage::answer::StorageAnswer;

use crate::Bench;
use crate::distribution::Distribution;
use crate::latency_table::LatencyTable;
use crate::parameters::{HashdParameters, IocostParameters};
use crate::spec::{BenchSpec, LatencyKind};
use crate::stage::Instance;
use crate::system::{SystemInfo, Versions};

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

    pub fn get(&self, kind: LatencyKind) -> Option<&LatencyTable> {
        match kind {
            LatencyKind::Read => self.read.as_ref(),
            LatencyKind::Write => self.write.as_ref(),
        }
    }
}

impl Answer {
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

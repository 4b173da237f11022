//! The result of a bench.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Bench, HashdParameters, Instance, IocostParameters, ProtectionAnswer, QosAnswer, SpecText, StorageAnswer,
    SystemInfo, TuneAnswer, Versions,
};

/// `result.json` of a bench. It depends on nothing but what was measured: no time of day is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchResult {
    /// The instance.
    pub instance: Instance,
    /// Its specification.
    pub spec: SpecText,
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

//! Contention benches and their versions.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A contention bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bench {
    /// How much memory a storage device can stand in for.
    Storage,
    /// Parameters of the kernel's io.cost for a device.
    IocostParams,
    /// Parameters with which hashd loads the machine fully.
    HashdParams,
    /// Footprint and isolation under several QoS settings of io.cost.
    IocostQos,
    /// QoS settings that follow from the results of `iocost-qos`.
    IocostTune,
    /// How well hashd is protected from a memory hog.
    Protection,
}

impl Bench {
    pub const ALL: [Self; 6] =
        [Self::Storage, Self::IocostParams, Self::HashdParams, Self::IocostQos, Self::IocostTune, Self::Protection];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::IocostParams => "iocost-params",
            Self::HashdParams => "hashd-params",
            Self::IocostQos => "iocost-qos",
            Self::IocostTune => "iocost-tune",
            Self::Protection => "protection",
        }
    }

    pub const fn summary(self) -> &'static str {
        match self {
            Self::Storage => "how much memory a storage device can stand in for",
            Self::IocostParams => "parameters of io.cost for a storage device",
            Self::HashdParams => "rate and footprint with which hashd loads the machine fully",
            Self::IocostQos => "memory offloading and isolation under several QoS settings of io.cost",
            Self::IocostTune => "QoS settings of io.cost that follow from the results of iocost-qos",
            Self::Protection => "how well hashd is protected from a memory hog",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bench| bench.name() == name)
    }

    /// Whether `text` is a specification of a bench, valid or not, rather than of a test: it begins with a bench's
    /// name.
    pub fn is_named_by(text: &str) -> bool {
        text.split(':').next().and_then(Self::from_name).is_some()
    }

    /// Increased whenever the bench measures differently: results of two versions are neither reused nor merged.
    pub const fn version(self) -> u32 {
        match self {
            Self::Storage | Self::IocostParams | Self::HashdParams => 1,
            // 2: hogs that compete with nobody do not count, and `isol-pct` is 05 by default.
            Self::IocostQos | Self::IocostTune | Self::Protection => 2,
        }
    }
}

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Versions of the program, as far as they matter for results, and of a bench.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// Major and minor version of the program.
    pub program: String,
    /// See [`Bench::version`].
    pub bench: u32,
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (bench version {})", self.program, self.bench)
    }
}

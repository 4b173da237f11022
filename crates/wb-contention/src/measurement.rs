//! What a stage returns: periods and figures that the study needs besides the raw reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;
use wb_results::contention::{HashdParameters, IocostParameters, MemoryProfile};

/// The result of a stage, as its runner returns it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Measurement {
    /// Of `iocost-params`.
    IocostParams(IocostParameters),
    /// Of `hashd-params`.
    HashdParams(HashdParameters),
    /// Of `storage`.
    Storage(StorageMeasurement),
    /// Of the scenario `mem-hog`.
    MemHog(MemHogMeasurement),
    /// Of the scenario `mem-hog-tune`.
    MemHogTune(MemHogTuneMeasurement),
}

/// A period in seconds since the epoch, both ends included, for which there are reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Period {
    /// The first second.
    pub first: u64,
    /// The last second.
    pub last: u64,
}

impl Period {
    pub fn seconds(self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }

    pub fn contains(self, second: u64) -> bool {
        (self.first..=self.last).contains(&second)
    }
}

/// Footprints that a device supported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageMeasurement {
    /// The whole measurement.
    pub period: Period,
    /// The part of each loop in which hashd ran with the final footprint.
    pub final_periods: Vec<Period>,
    /// The memory that was there.
    pub memory: MemoryProfile,
    /// The parameters of hashd at the last footprint.
    pub hashd: HashdParameters,
    /// Memory that hashd used in each loop.
    pub usages: Vec<Bytes>,
    /// Footprint of each loop.
    pub sizes: Vec<Bytes>,
    /// The largest footprint that could be tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Bytes>,
}

/// hashd beside a memory hog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemHogMeasurement {
    /// hashd alone at the same load.
    pub base_period: Period,
    /// The rate to which isolation relates: the maximum rate times the load.
    pub base_rps: f64,
    /// The repetitions, each from the start of the hog to its end.
    pub runs: Vec<HogRun>,
    /// The memory that was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryProfile>,
}

/// A repetition with a memory hog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HogRun {
    /// From the start of the hog to its end.
    pub period: Period,
    /// Why it ended before its time, and how many seconds of it are missing; these count as without any isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<(String, u64)>,
}

/// The largest footprint of hashd that is protected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemHogTuneMeasurement {
    /// The footprint and its measurement; `None` if no footprint of the range is protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<FootprintProbe>,
    /// If no footprint is protected, the last one beside which a hog ran for its whole time: how much is lacking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failed: Option<FootprintProbe>,
    /// Why footprints failed that have no measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// A footprint beside which a hog ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FootprintProbe {
    /// The footprint.
    pub size: Bytes,
    /// The measurement with it.
    pub run: MemHogMeasurement,
}

impl MemHogTuneMeasurement {
    /// The measurement with the protected footprint, or else with the last one that is not protected.
    pub fn shown(&self) -> Option<&FootprintProbe> {
        self.protected.as_ref().or(self.last_failed.as_ref())
    }
}

impl StorageMeasurement {
    pub fn mean_size(&self) -> Bytes {
        mean(&self.sizes)
    }

    pub fn mean_usage(&self) -> Bytes {
        mean(&self.usages)
    }

    /// The parameters of hashd with the mean footprint.
    pub fn hashd_at_footprint(&self) -> HashdParameters {
        HashdParameters { mem_size: self.mean_size(), ..self.hashd }
    }
}

fn mean(sizes: &[Bytes]) -> Bytes {
    let sum: u128 = sizes.iter().map(|size| u128::from(size.0)).sum();
    Bytes((sum / sizes.len().max(1) as u128) as u64)
}

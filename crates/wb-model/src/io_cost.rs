//! Parameters of the kernel's I/O cost controller (`io.cost.model`, `io.cost.qos` of cgroup v2).
//!
//! Source: the kernel's Documentation/admin-guide/cgroup-v2.rst, section IO.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Linear cost model of a block device: what it can do at most
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IocostModel {
    /// Sequential reads, in bytes per second
    pub rbps: u64,
    /// Sequential reads of 4 KiB, in operations per second
    pub rseqiops: u64,
    /// Random reads of 4 KiB, in operations per second
    pub rrandiops: u64,
    /// Sequential writes, in bytes per second
    pub wbps: u64,
    /// Sequential writes of 4 KiB, in operations per second
    pub wseqiops: u64,
    /// Random writes of 4 KiB, in operations per second
    pub wrandiops: u64,
}

/// Latency targets of a block device, and limits of the rate at which its model is applied
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IocostQos {
    /// Percentile of the read latency that is controlled; 0 for none
    pub rpct: f64,
    /// Its target in microseconds
    pub rlat: u64,
    /// Percentile of the write latency that is controlled; 0 for none
    pub wpct: f64,
    /// Its target in microseconds
    pub wlat: u64,
    /// Minimum of the rate, in percent of the model
    pub min: f64,
    /// Maximum of the rate, in percent of the model
    pub max: f64,
}

impl IocostModel {
    /// The parameters, in the order of [`Self::from_array`].
    pub fn to_array(self) -> [u64; 6] {
        [self.rbps, self.rseqiops, self.rrandiops, self.wbps, self.wseqiops, self.wrandiops]
    }

    /// A model of parameters in the order of its fields.
    pub fn from_array([rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops]: [u64; 6]) -> Self {
        Self { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops }
    }

    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self::from_array(self.to_array().map(|parameter| (parameter as f64 * factor).round() as u64))
    }
}

impl IocostQos {
    /// With two decimals, as the kernel keeps them.
    #[must_use]
    pub fn rounded(self) -> Self {
        let [rpct, wpct, min, max] = [self.rpct, self.wpct, self.min, self.max].map(round_hundredths);
        Self { rpct, wpct, min, max, ..self }
    }
}

/// Two decimals, to which the controller's percentages are exact.
pub fn round_hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

impl fmt::Display for IocostModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops } = self;
        write!(f, "rbps={rbps} rseqiops={rseqiops} rrandiops={rrandiops} ")?;
        write!(f, "wbps={wbps} wseqiops={wseqiops} wrandiops={wrandiops}")
    }
}

impl fmt::Display for IocostQos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rpct, rlat, wpct, wlat, min, max } = self;
        write!(f, "rpct={rpct:.2} rlat={rlat} wpct={wpct:.2} wlat={wlat} min={min:.2} max={max:.2}")
    }
}

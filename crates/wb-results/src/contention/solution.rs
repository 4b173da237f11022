//! Solutions of `iocost-tune`: what they aim at, and the settings that meet it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{IocostModel, IocostQos};

use super::{LatencyKind, Percentile, Series};

/// A solution to compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Solution {
    /// Its name.
    pub name: String,
    /// What it aims at.
    pub target: Target,
}

/// What a solution aims at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A range of the vrate, lowered by latencies.
    Vrate {
        /// Lowest vrate, in percent.
        min: f64,
        /// Highest vrate, in percent.
        max: f64,
        /// Percentile of read latencies that lowers it.
        rpct: Option<Percentile>,
        /// Percentile of write latencies that lowers it.
        wpct: Option<Percentile>,
    },
    /// The lowest vrate with the largest footprint.
    MofMax,
    /// The lowest vrate with the largest footprint that is protected.
    AmofMax,
    /// The highest vrate with a footprint that is protected.
    AmofMaxVrate,
    /// The highest vrate with the smallest difference between both footprints.
    Isolation,
    /// The highest vrate with the largest footprint that is protected, from [`Self::Isolation`] to
    /// [`Self::AmofMaxVrate`].
    IsolatedBandwidth,
    /// The vrates of a part of the slope of a latency.
    Latency {
        /// The latency.
        kind: LatencyKind,
        /// Its percentile.
        percentile: Percentile,
        /// Begin of the part, from 0.
        low: f64,
        /// Its end, up to 1.
        high: f64,
    },
}

impl Target {
    /// Vrates from three quarters of the model, lowered by p99 latencies.
    pub const NAIVE: Self =
        Self::Vrate { min: 75.0, max: 100.0, rpct: Some(Percentile::P99), wpct: Some(Percentile::P99) };
}

impl fmt::Display for Target {
    /// As in a specification.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percentile = |percentile: Option<Percentile>| percentile.map_or("0".to_owned(), |one| one.to_string());
        match *self {
            Self::Vrate { min, max, rpct, wpct } => {
                write!(f, "vrate={min}-{max},rpct={},wpct={}", percentile(rpct), percentile(wpct))
            }
            Self::MofMax => f.write_str("mof=max"),
            Self::AmofMax => f.write_str("amof=max"),
            Self::AmofMaxVrate => f.write_str("amof=max-vrate"),
            Self::Isolation => f.write_str("isolation"),
            Self::IsolatedBandwidth => f.write_str("isolated-bandwidth"),
            Self::Latency { kind, percentile, low, high } => write!(f, "{}{percentile}={low}-{high}", kind.prefix()),
        }
    }
}

/// Settings of io.cost that meet a target, and what to expect of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SolvedQos {
    /// The scaled model: with it, the highest vrate is 100 %.
    pub model: IocostModel,
    /// The quality of service.
    pub qos: IocostQos,
    /// By how much the model was scaled.
    pub scale: f64,
    /// Memory offloading factor (MOF).
    pub mof: Option<f64>,
    /// MOF of the footprint that can be protected (adjusted MOF).
    pub amof: Option<f64>,
    /// Difference between both.
    pub amof_delta: Option<f64>,
    /// Isolation at the percentile that protection is judged by.
    pub isolation: Option<f64>,
    /// Latencies, in nanoseconds.
    pub latencies: BTreeMap<Series, f64>,
}

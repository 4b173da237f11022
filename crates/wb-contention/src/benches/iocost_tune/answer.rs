//! What `iocost-tune` found.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::properties::Solution;
use super::solve::{FittedSeries, SolvedQos};
use crate::parameters::IocostParameters;
use crate::spec::BenchSpec;
use crate::{Percentile, Series};

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

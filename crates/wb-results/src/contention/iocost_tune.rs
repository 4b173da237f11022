//! What `iocost-tune` found.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FittedSeries, IocostParameters, Percentile, Series, Solution, SolvedQos, SpecText, at_profile};

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
    pub qos_spec: SpecText,
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

impl TuneAnswer {
    /// The name of a series in tables and charts: `MOF@16`, `isol-01`.
    pub fn series_label(&self, series: Series) -> String {
        let profile = at_profile(self.mem_profile);
        match series {
            Series::Mof => format!("MOF{profile}"),
            Series::Amof => format!("aMOF{profile}"),
            Series::AmofDelta => format!("aMOF-delta{profile}"),
            Series::Isol => format!("isol-{}", self.isol_pct),
            other => other.to_string(),
        }
    }
}

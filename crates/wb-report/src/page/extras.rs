//! Additional content of a page besides the study.

use std::collections::BTreeMap;

use wb_model::Unit;
use wb_results::experiment::Experiment;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunExtras {
    /// By the sample's folder relative to the run's.
    pub telemetry: BTreeMap<String, Vec<TelemetrySeries>>,
    /// The result of `ab` or `calibrate`, if the run is of one.
    pub experiment: Option<Experiment>,
    pub commands: Vec<ReproduceCommand>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySeries {
    /// Such as `CPU of the workload`.
    pub name: String,
    pub unit: Unit,
    /// Pairs of seconds since the sample's start, ascending, and the value.
    pub points: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReproduceCommand {
    pub purpose: String,
    pub line: String,
}

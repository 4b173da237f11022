//! What a page shows beside the study.

use std::collections::BTreeMap;

use wb_compare::experiment::Experiment;
use wb_model::Unit;

/// What lies in the run folder beside the study, or is known to the caller.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunExtras {
    /// What was watched during a sample, by the sample's folder relative to the run's.
    pub telemetry: BTreeMap<String, Vec<TelemetrySeries>>,
    /// What was held against what, where the run is of `ab` or `calibrate`.
    pub experiment: Option<Experiment>,
    /// Commands that repeat or re-read the run.
    pub commands: Vec<ReproduceCommand>,
}

/// How one thing went during a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySeries {
    /// What: `CPU of the workload`.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Seconds since the sample's start, ascending, and the value then.
    pub points: Vec<(f64, f64)>,
}

/// A command and what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReproduceCommand {
    /// What it does.
    pub purpose: String,
    /// As one types it.
    pub line: String,
}

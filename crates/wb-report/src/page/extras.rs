//! What a page shows beside the study.

use std::collections::BTreeMap;

use wb_compare::variants::Held;
use wb_model::Unit;

/// What lies in the run folder beside the study, or is known to the caller.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extras {
    /// What was watched during a sample, by the sample's folder relative to the run's.
    pub telemetry: BTreeMap<String, Vec<Series>>,
    /// What was held against what, where the run is of `ab` or `calibrate`.
    pub held: Option<Held>,
    /// Commands that repeat or re-read the run.
    pub reproduce: Vec<Command>,
}

/// How one thing went during a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What: `CPU of the workload`.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Seconds since the sample's start, ascending, and the value then.
    pub points: Vec<(f64, f64)>,
}

/// A command and what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub what: String,
    /// As one types it.
    pub line: String,
}

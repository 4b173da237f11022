//! page
use std::collections::BTreeMap;
use wb_model::Unit;
/// How one thing went during a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What: `CPU of the workload`.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Seconds since the sample's start, and the value then.
    pub points: Vec<(f64, f64)>,
}
/// A command
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// a
    pub what: String,
    /// b
    pub line: String,
}
/// What a page shows beside the study.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extras {
    /// a
    pub telemetry: BTreeMap<String, Vec<Series>>,
    /// b
    pub reproduce: Vec<Command>,
}

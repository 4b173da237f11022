//! Telemetry: system counters read at the start and end of a sample and in between, and the disturbances from outside
//! the workload that they show.
//!
//! Start with [`TelemetryReading`] (the counters), [`TelemetryReader`] (reads them cheaply) and [`disturbance`]
//! (interprets them).

pub mod disturbance;
mod parse;
mod reader;
mod reading;
mod sources;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use disturbance::{Disturbance, DisturbanceMark, PressureScope, TelemetryFinding, Thresholds};
pub use parse::total_cpu_times;
pub use reader::TelemetryReader;
pub use reading::{
    CpuReading, CpuTimes, DiskCounters, Memory, NetworkCounters, PressureResource, StallTimes, SystemPressure,
    TelemetryReading, VmEvents, WorkloadUsage,
};

/// The readings of a sample.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Telemetry {
    /// Reading at the start.
    pub start: TelemetryReading,
    /// Reading at the end.
    pub end: TelemetryReading,
    /// Readings in between, in chronological order.
    #[serde(default)]
    pub series: Vec<TelemetryReading>,
}

impl Telemetry {
    pub fn disturbance(&self, thresholds: &Thresholds) -> Disturbance {
        disturbance::compute(&self.start, &self.end, thresholds)
    }

    /// All readings, in chronological order.
    pub fn readings(&self) -> impl Iterator<Item = &TelemetryReading> {
        [&self.start].into_iter().chain(&self.series).chain([&self.end])
    }
}

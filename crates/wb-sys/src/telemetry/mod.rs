//! What the system did meanwhile: counters read at the edges of a sample and between, and what in them
//! came from elsewhere than the workload.
//!
//! Start with [`Reading`] (what is read), [`Reader`] (how, cheaply) and [`disturbance`] (what it means).

pub mod disturbance;
mod parse;
mod reader;
mod reading;
mod sources;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use disturbance::{Disturbance, DisturbanceMark, PressureScope, TelemetryFinding, Thresholds};
pub use reader::TelemetryReader;
pub use reading::{
    CpuReading, CpuTimes, DiskCounters, Memory, NetworkCounters, PressureResource, StallTimes, SystemPressure,
    TelemetryReading, VmEvents, WorkloadUsage,
};

/// What was read from the start of a sample to its end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Telemetry {
    /// The reading at the start.
    pub start: TelemetryReading,
    /// The reading at the end.
    pub end: TelemetryReading,
    /// The readings between, in the order of time.
    #[serde(default)]
    pub series: Vec<TelemetryReading>,
}

impl Telemetry {
    /// What disturbed the workload, by these thresholds.
    pub fn disturbance(&self, thresholds: &Thresholds) -> Disturbance {
        disturbance::between(&self.start, &self.end, thresholds)
    }

    /// Every reading, in the order of time.
    pub fn readings(&self) -> impl Iterator<Item = &TelemetryReading> {
        [&self.start].into_iter().chain(&self.series).chain([&self.end])
    }
}

//! The results of one run as evaluated from its samples.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Sha256, System, with_worker};

use crate::{CellResult, Conclusion};

/// The evaluation of a whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// What was measured, where and when.
    pub run: RunInfo,
    /// The results of its cells, in plan order.
    pub cells: Vec<CellResult>,
    /// Conclusions from several cells together, such as a scaling factor or a cache level.
    pub conclusions: Vec<Conclusion>,
    /// Changes of system settings and software during the run.
    pub environment_changes: Vec<EnvironmentChange>,
}

/// The run: what was measured, where and when. It consists of invocations of the program: the first one and those
/// that resumed or extended the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The run folder's name.
    pub name: String,
    /// The plan's name, or the tests as given on the command line.
    pub plan: String,
    /// Start time of the first invocation, in UTC, in RFC 3339 format: for display only, since the clock may be set
    /// meanwhile.
    pub started: String,
    /// Total elapsed time of all invocations, in seconds; the time between invocations is not included.
    pub seconds: f64,
    /// The time in which machines were prepared for them, in seconds: connecting, provisioning, setup scripts, reboots,
    /// profiles and guests. It is not part of the elapsed time.
    #[serde(default)]
    pub preparation_seconds: f64,
    /// Why nothing is measured: how far the preparation of the machines came. Absent once there are cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<String>,
    /// The part of that time during which processes of the workload ran, including their start, calibration and checks,
    /// in seconds.
    pub workload_seconds: f64,
    /// The part of the workload time that was measured, in seconds; all of it for tests that cannot separate
    /// measurement from preparation.
    pub measured_seconds: f64,
    /// The program's version.
    pub version: String,
    /// Properties of the machines, in display order: names and values (`("CPU", "…")`, `("kernel", "…")`) if there is
    /// one machine; otherwise one row for each set of workers with the same properties: their names, and those properties
    /// in one line.
    pub properties: Vec<(String, String)>,
    /// The host names of the machines that took part in the last invocation.
    #[serde(default)]
    pub machines: Vec<String>,
    /// The hardware and software of each machine that took part in any invocation.
    #[serde(default)]
    pub systems: Vec<System>,
    /// The user's metadata of the run.
    pub metadata: BTreeMap<String, String>,
    /// What was imported from each file; empty if the run has measured everything itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<ImportedSource>,
    /// The number of lines of the journal without a checksum, which earlier versions of the program wrote: a flipped bit
    /// in one of them may go unnoticed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unchecked_lines: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl RunInfo {
    /// The note on lines of the journal without a checksum, if there are any.
    pub fn checksum_note(&self) -> Option<String> {
        let lines = Some(self.unchecked_lines).filter(|lines| *lines > 0)?;
        let lines = wb_model::pluralize(lines, "line");
        Some(format!(
            "{lines} of the journal without a checksum, from an earlier version: a flipped bit may go unnoticed"
        ))
    }
}

/// A file whose results were imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSource {
    /// The name of its copy in the run; its hash if there is no copy.
    pub file: String,
    /// The program that wrote it, with its version if the file has it: `fio-3.33`.
    pub program: String,
    /// The number of cells with samples of it.
    pub cells: usize,
    /// The number of its samples.
    pub samples: usize,
    /// The number of metrics in these samples.
    pub metrics: usize,
}

/// A change of a system setting or of software, during an invocation or between two invocations of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentChange {
    /// The name of the worker; absent for the first (or only) worker of the run, as in all recorded environments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// What changed: `sysctl/vm.swappiness`.
    pub path: String,
    /// The value before; absent if there was none.
    pub before: Option<String>,
    /// The value after; absent if there is none.
    pub after: Option<String>,
}

impl EnvironmentChange {
    /// The path with the worker: `sysctl/vm.swappiness@vm2`.
    pub fn path_with_worker(&self) -> String {
        with_worker(&self.path, self.worker.as_ref())
    }
}

/// The contents of a `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SerialResult {
    /// The hash of the records that these results were derived from: of the journal, of `definition.json` and of the
    /// test's own definition. It differs from that of the current records once these have changed. Absent in
    /// preliminary results during a run, and in results of another definition than the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records_sha256: Option<Sha256>,
    /// The cells of one serial.
    pub cells: Vec<CellResult>,
}

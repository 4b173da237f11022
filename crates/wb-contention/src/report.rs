//! Per-second reports of a stage: one file for each second, named after it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;
use wb_record::{RecordError, files};

use crate::measurement::Period;

/// What the machine did in one second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerSecondReport {
    /// Seconds since the epoch.
    pub second: u64,
    /// hashd, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hashd: Option<HashdStats>,
    /// Reads of the device.
    pub read: IoStats,
    /// Writes of the device.
    pub write: IoStats,
    /// io.cost, if it was enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<IocostStats>,
    /// Requests that completed, but that the kernel did not count in a histogram.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// What the machine used, and the kernel's statistics, by name: shares of 1, bytes, counters per second.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// hashd at the end of one second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HashdStats {
    /// Requests completed since its start: a cumulative count.
    pub done: u64,
    /// The latency that it keeps at its target (by default the 95th percentile of its requests), in seconds.
    pub latency: f64,
    /// Its resident memory.
    pub memory: Bytes,
}

/// I/O of a device in one direction in one second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IoStats {
    /// Bytes transferred.
    pub bytes: u64,
    /// Completion latencies: the midpoint of a bucket in nanoseconds, and the number of its requests, in
    /// ascending order.
    pub latencies: Vec<(u64, u64)>,
}

/// io.cost in one second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IocostStats {
    /// The vrate, in percent.
    pub vrate: f64,
    /// Device time that was used, in seconds of the device at the rate of its model (a vrate of 100 %).
    pub usage: f64,
    /// Device time that was left unused, in the same seconds.
    pub unused: f64,
    /// Device time that the memory hog was charged for but did not use, in the same seconds; 0 without a memory hog.
    pub lost: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFolder(PathBuf);

/// The reports of a period.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reports {
    pub seconds: Vec<PerSecondReport>,
    /// Seconds of the period for which there is no report.
    pub missing: u64,
    /// Files that cannot be parsed, such as those truncated by a crash of the machine. They also count as missing.
    pub damaged: Vec<PathBuf>,
}

impl ReportFolder {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, report: &PerSecondReport) -> Result<(), RecordError> {
        fs::create_dir_all(&self.0).map_err(RecordError::io("create", &self.0))?;
        files::write_json(&self.file(report.second), report)
    }

    /// Reads the reports of a period. Missing ones are counted, and damaged ones listed.
    pub fn read(&self, period: Period) -> Result<Reports, RecordError> {
        let mut reports = Reports::default();
        for second in self.timestamps()?.into_iter().filter(|second| period.contains(*second)) {
            let path = self.file(second);
            let Some(text) = files::read(&self.0, &path)? else { continue };
            match serde_json::from_slice(&text) {
                Ok(report) => reports.seconds.push(report),
                Err(_) => reports.damaged.push(path),
            }
        }
        reports.missing = period.seconds().saturating_sub(reports.seconds.len() as u64);
        Ok(reports)
    }

    /// Seconds for which there is a file, ascending; empty without a folder.
    fn timestamps(&self) -> Result<Vec<u64>, RecordError> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(RecordError::io("read", &self.0)(error)),
        };
        let mut seconds = Vec::new();
        for entry in entries {
            let name = entry.map_err(RecordError::io("read", &self.0))?.file_name();
            // Other files are those of a writer that was killed before it renamed them.
            seconds.extend(name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<u64>().ok()));
        }
        seconds.sort_unstable();
        Ok(seconds)
    }

    fn file(&self, second: u64) -> PathBuf {
        self.0.join(format!("{second}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_and_absent_reports_are_missing() {
        let folder = tempfile::tempdir().unwrap();
        let reports = ReportFolder::at(folder.path().join("r"));
        let period = Period { first: 10, last: 14 };
        assert_eq!(reports.read(period).unwrap().missing, 5);
        for second in [9, 10, 12, 13] {
            let report = PerSecondReport {
                second,
                hashd: None,
                read: IoStats::default(),
                write: IoStats { bytes: 1, latencies: vec![(5000, 1)] },
                cost: None,
                uncounted: 0,
                resources: BTreeMap::new(),
            };
            reports.write(&report).unwrap();
        }
        let cut = reports.file(13);
        let text = fs::read(&cut).unwrap();
        fs::write(&cut, &text[..text.len() / 2]).unwrap();
        let read = reports.read(period).unwrap();
        assert_eq!(read.seconds.iter().map(|report| report.second).collect::<Vec<_>>(), [10, 12]);
        assert_eq!((read.missing, read.damaged), (3, vec![cut]));
    }
}

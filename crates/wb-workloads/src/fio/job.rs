//! Options of fio, and the job file generated from them.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};

pub const HISTOGRAM_LOG_PREFIX: &str = "hist";

/// Access pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TestType {
    /// Sequential reads
    #[default]
    Read,
    /// Sequential writes
    Write,
    /// Sequential reads and writes
    Rw,
    /// Random reads
    RandRead,
    /// Random writes
    RandWrite,
    /// Random reads and writes
    RandRw,
}

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Read,
    Write,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl TestType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Rw => "rw",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::RandRw => "randrw",
        }
    }

    pub fn operations(self) -> &'static [Operation] {
        match self {
            Self::Read | Self::RandRead => &[Operation::Read],
            Self::Write | Self::RandWrite => &[Operation::Write],
            Self::Rw | Self::RandRw => &[Operation::Read, Operation::Write],
        }
    }

    pub fn writes(self) -> bool {
        self.operations().contains(&Operation::Write)
    }
}

/// Order of jobs on several targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobMode {
    /// All at the same time
    #[default]
    Concurrent,
    /// One after the other
    Serial,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FioJob {
    pub test_type: TestType,
    pub block_size: Bytes,
    /// Size of the used part of each target.
    pub file_size: Bytes,
    /// Whether the page cache is bypassed.
    pub direct: bool,
    /// Whether writes complete only when the data is on the storage (O_SYNC).
    pub sync: bool,
    /// Writes after each of which fsync is called; 0: never.
    pub fsync: u32,
    /// The same for fdatasync.
    pub fdatasync: u32,
    /// For each job and kind of operation; 0: no limit.
    pub rate_iops: u32,
    pub runtime: Nanos,
    /// Warm-up before the measured time.
    pub ramptime: Nanos,
    /// Order of jobs on several targets.
    pub mode: JobMode,
    pub ioengine: String,
    /// Operations in flight per job.
    pub iodepth: u32,
    /// Jobs per target.
    pub numjobs: u32,
    /// Maximum interval of the histograms over time.
    pub histogram_interval: Nanos,
    /// Options by which the engine connects to a server; empty if it opens the targets itself.
    pub connection: Vec<(&'static str, String)>,
    /// Paths of files and devices.
    pub targets: Vec<String>,
}

fn milliseconds(time: Nanos) -> u64 {
    time.0 / 1_000_000
}

impl FioJob {
    /// Interval of the histograms over time, in milliseconds: at most a tenth of the measured time.
    pub fn histogram_interval_ms(&self) -> u64 {
        milliseconds(self.histogram_interval).min(milliseconds(self.runtime) / 10).max(1)
    }

    pub fn jobs(&self) -> usize {
        self.targets.len() * self.numjobs as usize
    }

    pub fn has_syncs(&self) -> bool {
        self.test_type.writes() && (self.fsync > 0 || self.fdatasync > 0)
    }

    /// Whether a server opens the targets instead of fio.
    pub fn has_server(&self) -> bool {
        !self.connection.is_empty()
    }

    pub fn estimate(&self) -> Nanos {
        const START: u64 = 500_000_000;
        let rounds = match self.mode {
            JobMode::Concurrent => 1,
            JobMode::Serial => self.targets.len().max(1) as u64,
        };
        Nanos(rounds.saturating_mul(self.runtime.0.saturating_add(self.ramptime.0)).saturating_add(START))
    }

    /// Options of the job file, without those of a target.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let flag = |on: bool| u8::from(on).to_string();
        let mut options = vec![
            ("rw", self.test_type.name().to_owned()),
            ("bs", self.block_size.0.to_string()),
            ("size", self.file_size.0.to_string()),
            ("ioengine", self.ioengine.clone()),
            ("iodepth", self.iodepth.to_string()),
            ("numjobs", self.numjobs.to_string()),
            ("direct", flag(self.direct)),
            ("sync", flag(self.sync)),
            ("runtime", format!("{}ms", milliseconds(self.runtime))),
            ("ramp_time", format!("{}ms", milliseconds(self.ramptime))),
            ("time_based", "1".to_owned()),
        ];
        let counts = [("fsync", self.fsync), ("fdatasync", self.fdatasync), ("rate_iops", self.rate_iops)];
        options
            .extend(counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name, count.to_string())));
        options.extend(self.connection.iter().cloned());
        options.extend(self.histogram_options());
        options
    }

    pub fn histogram_options(&self) -> [(&'static str, String); 2] {
        [
            ("write_hist_log", HISTOGRAM_LOG_PREFIX.to_owned()),
            ("log_hist_msec", self.histogram_interval_ms().to_string()),
        ]
    }

    /// Renders the job file. Targets exist and are complete: fio neither creates nor extends them.
    pub fn render(&self) -> String {
        let mut text = String::from("[global]\n");
        let fixed = [("allow_file_create", "0"), ("fallocate", "none")].map(|(name, value)| (name, value.to_owned()));
        let fixed = fixed.into_iter().filter(|_| !self.has_server());
        for (name, value) in self.options().into_iter().chain(fixed) {
            let _ = writeln!(text, "{name}={value}");
        }
        for (number, target) in self.targets.iter().enumerate() {
            let _ = write!(text, "\n[job-{}]\nfilename={}\n", number + 1, escape_path(target));
            if self.mode == JobMode::Serial {
                text.push_str("stonewall\n");
            }
        }
        text
    }
}

/// Escapes a path for a job file, where a colon separates paths.
pub fn escape_path(path: &str) -> String {
    path.replace(':', "\\:")
}

/// First character that a path in a job file cannot contain, if any.
pub fn find_unsupported_char(path: &str) -> Option<char> {
    path.chars().find(|c| matches!(c, ';' | '#' | '$' | '\\') || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::super::params::FioParams;
    use super::*;

    #[test]
    fn a_job_file_has_all_parameters() {
        let params: FioParams = serde_json::from_str(
            r#"{"test-types": "randrw", "block-sizes": "64k", "rate-iops": 100, "job-mode": "serial", "runtime": "1s", "ramptime": 0}"#,
        )
        .unwrap();
        let text = params.job(vec!["/a:b".to_owned(), "/c".to_owned()]).render();
        assert_eq!(
            text,
            "[global]\nrw=randrw\nbs=65536\nsize=4294967296\nioengine=libaio\niodepth=32\nnumjobs=1\ndirect=1\nsync=0\n\
             runtime=1000ms\nramp_time=0ms\ntime_based=1\nrate_iops=100\nwrite_hist_log=hist\nlog_hist_msec=100\n\
             allow_file_create=0\nfallocate=none\n\n[job-1]\nfilename=/a\\:b\nstonewall\n\n[job-2]\nfilename=/c\nstonewall\n"
        );
    }

    #[test]
    fn histograms_have_at_least_ten_intervals() {
        let interval = |runtime: u64| {
            FioParams { runtime: Nanos(runtime * 1_000_000), ..FioParams::default() }
                .job(Vec::new())
                .histogram_interval_ms()
        };
        assert_eq!([interval(180_000), interval(1000), interval(5)], [10_000, 100, 1]);
    }
}

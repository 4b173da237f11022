//! The parameters of `fio`: pbench-fio's names and defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_stats::Rule;

use super::job::{Job, JobMode, TestType};
use super::sysinfo::Collector;

/// How an fio cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Params {
    /// What is done; `rw` and `randrw` are half reads, half writes
    #[schemars(extend(
        "x-axis" = true,
        "x-aliases" = ["rw", "test-type"],
        "x-resolved" = "read, and randread"
    ))]
    pub test_types: Option<TestType>,
    /// Bytes per operation, `4k` where pbench has `4`
    #[schemars(extend("x-axis" = true, "x-aliases" = ["bs", "block-size"], "x-resolved" = "4k, 64k, and 1m"))]
    pub block_sizes: Option<Bytes>,
    /// Whether the page cache is bypassed (O_DIRECT)
    pub direct: bool,
    /// Whether a write is done only when it is on the storage (O_SYNC)
    pub sync: bool,
    /// Operations per second of each job at most, reads and writes each; 0: no limit
    pub rate_iops: u32,
    /// Measured time of a sample
    pub runtime: Nanos,
    /// Time before it that does not count
    pub ramptime: Nanos,
    /// Size of each file, and how much of a block device is used
    #[schemars(extend("x-aliases" = ["size"]))]
    pub file_size: Bytes,
    /// Files, folders, or block devices; in a folder, and where nothing is yet, a private file that is removed
    /// after; empty: a private file on a disk of the worker
    #[schemars(extend("x-aliases" = ["target"]))]
    pub targets: Vec<String>,
    /// Whether what is on the targets may be overwritten; a block device needs it
    pub allow_destroy: bool,
    /// Whether several targets are used at the same time or one after the other
    pub job_mode: JobMode,
    /// How operations are given to the kernel: libaio, io_uring, psync, or any other that this fio has
    pub ioengine: String,
    /// Operations in flight per job
    #[schemars(range(min = 1))]
    pub iodepth: u32,
    /// Jobs per target
    #[schemars(range(min = 1))]
    pub numjobs: u32,
    /// A label of one's own
    pub config: String,
    /// pbench's label of the tools around a sample; which tools those are, `tools` of a plan says
    pub tool_group: String,
    /// A job file of one's own on this machine, in which `$target` and `$@` stand for what the parameters say
    pub job_file: String,
    /// SHA-256 of the job file
    #[schemars(extend("x-resolved" = "from the job file"))]
    pub job_file_sha256: Option<String>,
    /// A program on the worker that is run before each sample
    pub pre_iteration_script: String,
    /// Samples in a set, as pbench takes them
    #[schemars(range(min = 1), extend("x-resolved" = SET))]
    pub samples: Option<u32>,
    /// The largest standard deviation of a set, in percent of its mean
    #[schemars(range(min = 0), extend("x-resolved" = SPREAD))]
    pub max_stddev: Option<f64>,
    /// Sets that may spread more before it is given up
    #[schemars(range(min = 1), extend("x-resolved" = FAILURES))]
    pub max_failures: Option<u32>,
    /// Interval of the latency histograms over time; at most a tenth of the runtime
    pub histogram_interval_sec: Nanos,
    /// What is collected of the worker: default is all but sos, all is everything
    pub sysinfo: Vec<Collector>,
}

/// How the number of samples is decided, in words.
pub const SET: &str = "the plan's sampling; 3 when max-stddev or max-failures is given";
/// How the spread is decided, in words.
pub const SPREAD: &str = "the plan's sampling; 5 when samples or max-failures is given";
/// How the failures are decided, in words.
pub const FAILURES: &str = "the plan's sampling; 6 when samples or max-stddev is given";

impl Default for Params {
    fn default() -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            test_types: None,
            block_sizes: None,
            direct: true,
            sync: false,
            rate_iops: 0,
            runtime: Nanos(180 * SECOND),
            ramptime: Nanos(10 * SECOND),
            file_size: Bytes(4096 << 20),
            targets: Vec::new(),
            allow_destroy: false,
            job_mode: JobMode::Concurrent,
            ioengine: "libaio".to_owned(),
            iodepth: 32,
            numjobs: 1,
            config: String::new(),
            tool_group: "default".to_owned(),
            job_file: String::new(),
            job_file_sha256: None,
            pre_iteration_script: String::new(),
            samples: None,
            max_stddev: None,
            max_failures: None,
            histogram_interval_sec: Nanos(10 * SECOND),
            sysinfo: vec![Collector::Default],
        }
    }
}

impl Params {
    /// What is done.
    pub fn test_type(&self) -> TestType {
        self.test_types.unwrap_or_default()
    }

    /// The sampling rule that pbench's parameters ask for, where one of them is given.
    pub fn rule(&self) -> Option<Rule> {
        pbench_rule(self.samples, self.max_stddev, self.max_failures)
    }

    /// What fio is told to do on these paths.
    pub fn job(&self, targets: Vec<String>) -> Job {
        Job {
            test_type: self.test_type(),
            block_size: self.block_sizes.unwrap_or(Bytes(4096)),
            file_size: self.file_size,
            direct: self.direct,
            sync: self.sync,
            rate_iops: self.rate_iops,
            runtime: self.runtime,
            ramptime: self.ramptime,
            mode: self.job_mode,
            ioengine: self.ioengine.clone(),
            iodepth: self.iodepth,
            numjobs: self.numjobs,
            histogram_interval: self.histogram_interval_sec,
            uri: None,
            targets,
        }
    }
}

/// pbench's sampling rule, if one of its parameters is given; its defaults hold for the others.
pub fn pbench_rule(samples: Option<u32>, max_stddev: Option<f64>, max_failures: Option<u32>) -> Option<Rule> {
    let given = samples.is_some() || max_stddev.is_some() || max_failures.is_some();
    given.then(|| Rule::MaxStddev {
        samples: samples.unwrap_or(3) as usize,
        max_stddev_percent: max_stddev.unwrap_or(5.0),
        max_failures: max_failures.unwrap_or(6) as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plans_sampling_holds_unless_one_of_pbenchs_parameters_is_given() {
        assert_eq!(pbench_rule(None, None, None), None);
        assert_eq!(
            pbench_rule(None, Some(2.0), None),
            Some(Rule::MaxStddev { samples: 3, max_stddev_percent: 2.0, max_failures: 6 })
        );
        let params: Params = serde_json::from_str(r#"{"samples": 5}"#).unwrap();
        assert_eq!(params.rule(), Some(Rule::MaxStddev { samples: 5, max_stddev_percent: 5.0, max_failures: 6 }));
    }
}

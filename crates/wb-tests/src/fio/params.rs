//! The parameters of `fio`: pbench-fio's names and defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_stats::SamplingRule;

use super::job::{FioJob, JobMode, TestType};
use super::sysinfo::Collector;

/// How an fio cell is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Params {
    /// What is done; `rw` and `randrw` are half reads, half writes
    #[schemars(extend(
        "x-axis" = true,
        "x-aliases" = ["rw", "test-type", "type"],
        "x-resolved" = "read, and randread"
    ))]
    pub test_types: Option<TestType>,
    /// Bytes per operation, `4k` where pbench has `4`
    #[schemars(extend("minimum" = 512, "x-axis" = true, "x-aliases" = ["bs", "block-size"], "x-resolved" = "4k, 64k, and 1m"))]
    pub block_sizes: Option<Bytes>,
    /// Whether the page cache is bypassed (O_DIRECT)
    pub direct: bool,
    /// Whether a write is done only when it is on the storage (O_SYNC)
    pub sync: bool,
    /// Operations per second of each job at most, reads and writes each; 0: no limit
    pub rate_iops: u32,
    /// Measured time of a sample, 10ms at least
    #[schemars(extend("minimum" = 10_000_000))]
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
    /// Tools around every sample: a group of the plan's [tool-groups]
    pub tool_group: String,
    /// A job file of one's own on this machine, in which `$target` and `$@` stand for what the parameters say
    pub job_file: String,
    /// SHA-256 of the job file
    #[schemars(extend("x-resolved" = "from the job file"))]
    pub job_file_sha256: Option<String>,
    /// A program on the worker that is run before each sample
    pub pre_iteration_script: String,
    /// pbench's rule: a set of so many samples counts when it spreads little enough, else another is taken, and the
    /// last one counts; 0: the plan's rule, which goes on until the median is known well enough
    pub samples: u32,
    /// A set that spreads less counts: the standard deviation in percent of the mean
    #[schemars(range(min = 0))]
    pub max_stddev: f64,
    /// After so many sets that spread more it is given up
    #[schemars(range(min = 1))]
    pub max_failures: u32,
    /// Interval of the latency histograms over time; at most a tenth of the runtime
    pub histogram_interval_sec: Nanos,
    /// What is collected of the worker: default is all but sos, all is everything
    pub sysinfo: Vec<Collector>,
}

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
            samples: 3,
            max_stddev: 5.0,
            max_failures: 6,
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

    /// pbench's sampling rule, unless the plan's is asked for.
    pub fn rule(&self) -> Option<SamplingRule> {
        pbench_rule(self.samples, self.max_stddev, self.max_failures)
    }

    /// What fio is told to do on these paths.
    pub fn job(&self, targets: Vec<String>) -> FioJob {
        FioJob {
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
            connection: Vec::new(),
            targets,
        }
    }
}

/// pbench's sampling rule; none without samples.
pub fn pbench_rule(samples: u32, max_stddev: f64, max_failures: u32) -> Option<SamplingRule> {
    (samples > 0).then_some(SamplingRule::MaxStddev {
        samples: samples as usize,
        max_stddev_percent: max_stddev,
        max_failures: max_failures as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pbenchs_rule_holds_unless_the_plans_is_asked_for() {
        let rule = |json: &str| serde_json::from_str::<Params>(json).unwrap().rule();
        let pbench = |samples, max_stddev_percent| {
            Some(SamplingRule::MaxStddev { samples, max_stddev_percent, max_failures: 6 })
        };
        assert_eq!(rule("{}"), pbench(3, 5.0));
        assert_eq!(rule(r#"{"samples": 5, "max-stddev": 2}"#), pbench(5, 2.0));
        assert_eq!(rule(r#"{"samples": 0}"#), None);
    }
}

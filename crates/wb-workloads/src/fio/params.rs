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
pub struct FioParams {
    /// Access pattern; `rw` and `randrw` are half reads, half writes
    #[schemars(extend(
        "x-axis" = true,
        "x-aliases" = ["rw", "test-type", "type"],
        "x-default" = "read and randread"
    ))]
    pub test_types: Option<TestType>,
    /// Bytes per operation; pbench's `4` is written `4k`
    #[schemars(extend("minimum" = 512, "x-axis" = true, "x-aliases" = ["bs", "block-size"], "x-default" = "4k, 64k, and 1m"))]
    pub block_sizes: Option<Bytes>,
    /// Whether the page cache is bypassed (O_DIRECT)
    pub direct: bool,
    /// Whether a write completes only when the data is on the storage (O_SYNC)
    pub sync: bool,
    /// Writes of a job after each of which it calls fsync, whose latencies are metrics; 0: never
    pub fsync: u32,
    /// Writes of a job after each of which it calls fdatasync, whose latencies are metrics; 0: never
    pub fdatasync: u32,
    /// Maximum operations per second of each job, separately for reads and for writes; 0: no limit
    pub rate_iops: u32,
    /// Duration of the measurement of a sample, at least 10ms
    #[schemars(extend("minimum" = 10_000_000))]
    pub runtime: Nanos,
    /// Warm-up time of a sample, before the measurement
    pub ramptime: Nanos,
    /// Size of each file, or of the part of a block device that is used
    #[schemars(extend("x-aliases" = ["size"]))]
    pub file_size: Bytes,
    /// Files, folders, or block devices; a folder or a path that does not exist: a scratch file there, removed
    /// afterwards; empty: a scratch file on a disk of the worker
    #[schemars(extend("x-aliases" = ["target"]))]
    pub targets: Vec<String>,
    /// Allow the data on the targets to be overwritten; required for block devices
    pub allow_destroy: bool,
    /// Whether several targets are used at the same time or one after the other
    pub job_mode: JobMode,
    /// I/O engine: libaio, io_uring, psync, or any other of this fio
    pub ioengine: String,
    /// Operations in flight per job
    #[schemars(range(min = 1))]
    pub iodepth: u32,
    /// Jobs per target
    #[schemars(range(min = 1))]
    pub numjobs: u32,
    /// Free-form label
    pub config: String,
    /// Monitoring commands that run during every sample: name of a group under [tool-groups] in the plan file
    pub tool_group: String,
    /// Job file on this machine to use instead of a generated one; `$target` and `$@` are replaced by parameters, and other
    /// parameters have the values that the file sets
    pub job_file: String,
    /// SHA-256 of the job file
    #[schemars(extend("x-default" = "from the job file"))]
    pub job_file_sha256: Option<String>,
    /// Program on the worker to run before each sample
    pub pre_iteration_script: String,
    /// Samples per set. As in pbench, a set whose standard deviation reaches max-stddev is repeated, and only the last
    /// set counts. With 0 the plan's rule applies instead: sample until the median is as precise as the plan requires
    pub samples: u32,
    /// Standard deviation at which a set is repeated, as a percentage of its mean
    #[schemars(range(min = 0))]
    pub max_stddev: f64,
    /// Maximum number of sets; if all reach max-stddev, the cell has not converged, and the last set counts
    #[schemars(range(min = 1))]
    pub max_failures: u32,
    /// Interval of the latency histograms over time; reduced to a tenth of the runtime if that is shorter
    pub histogram_interval_sec: Nanos,
    /// System information to collect from the worker: a list of collectors, `all`, or `none`; `default` is all except
    /// `sos`, which takes minutes
    pub sysinfo: Vec<Collector>,
}

impl Default for FioParams {
    fn default() -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            test_types: None,
            block_sizes: None,
            direct: true,
            sync: false,
            fsync: 0,
            fdatasync: 0,
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

impl FioParams {
    pub fn test_type(&self) -> TestType {
        self.test_types.unwrap_or_default()
    }

    /// pbench's sampling rule; none if `samples` is 0, which requests that of the plan.
    pub fn rule(&self) -> Option<SamplingRule> {
        pbench_rule(self.samples, self.max_stddev, self.max_failures)
    }

    pub fn has_syncs(&self) -> bool {
        self.fsync > 0 || self.fdatasync > 0
    }

    pub fn job(&self, targets: Vec<String>) -> FioJob {
        FioJob {
            test_type: self.test_type(),
            block_size: self.block_sizes.unwrap_or(Bytes(4096)),
            file_size: self.file_size,
            direct: self.direct,
            sync: self.sync,
            fsync: self.fsync,
            fdatasync: self.fdatasync,
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

/// pbench's sampling rule; none if `samples` is 0.
pub fn pbench_rule(samples: u32, max_stddev: f64, max_failures: u32) -> Option<SamplingRule> {
    // The default of fio and uperf: users of pbench's tools expect its rule. With 0 the plan's rule applies.
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
    fn pbenchs_rule_applies_unless_samples_is_0() {
        let rule = |json: &str| serde_json::from_str::<FioParams>(json).unwrap().rule();
        let pbench = |samples, max_stddev_percent| {
            Some(SamplingRule::MaxStddev { samples, max_stddev_percent, max_failures: 6 })
        };
        assert_eq!(rule("{}"), pbench(3, 5.0));
        assert_eq!(rule(r#"{"samples": 5, "max-stddev": 2}"#), pbench(5, 2.0));
        assert_eq!(rule(r#"{"samples": 0}"#), None);
    }
}

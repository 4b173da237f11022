//! Common parameters of export tests: those of `fio` that do not depend on the engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_stats::SamplingRule;

use crate::fio::job::{FioJob, JobMode, TestType};
use crate::fio::params::pbench_rule;
use crate::fio::sysinfo::Collector;

/// How an export is measured
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct ExportParams {
    /// Access pattern; `rw` and `randrw` are half reads, half writes
    #[schemars(extend(
        "x-axis" = true,
        "x-aliases" = ["rw", "test-type", "type"],
        "x-resolved" = "read, and randread"
    ))]
    pub test_types: Option<TestType>,
    /// Bytes per operation; pbench's `4` is written `4k`
    #[schemars(extend("minimum" = 512, "x-axis" = true, "x-aliases" = ["bs", "block-size"], "x-resolved" = "4k, 64k, and 1m"))]
    pub block_sizes: Option<Bytes>,
    /// Maximum operations per second of each job, for reads and for writes; 0: no limit
    pub rate_iops: u32,
    /// Measured time of a sample, at least 10ms
    #[schemars(extend("minimum" = 10_000_000))]
    pub runtime: Nanos,
    /// Warm-up time before the measured time
    pub ramptime: Nanos,
    /// Size of the private image, or of the part of another target that is used
    #[schemars(extend("x-aliases" = ["size"]))]
    pub file_size: Bytes,
    /// Free-form label
    pub config: String,
    /// Tools that run during every sample: a group of the plan's [tool-groups]
    pub tool_group: String,
    /// Program on the worker to run before each sample
    pub pre_iteration_script: String,
    /// Samples per set, by pbench's rule: a set whose spread exceeds max-stddev is repeated, and the last set counts;
    /// 0: the plan's rule, which stops when the median is precise enough
    pub samples: u32,
    /// Maximum standard deviation of a set, in percent of the mean
    #[schemars(range(min = 0))]
    pub max_stddev: f64,
    /// Number of sets that exceed max-stddev after which no further set is taken
    #[schemars(range(min = 1))]
    pub max_failures: u32,
    /// Interval of the latency histograms over time; at most a tenth of the runtime
    pub histogram_interval_sec: Nanos,
    /// System information to collect from the worker; default: all but sos, all: everything
    pub sysinfo: Vec<Collector>,
}

impl Default for ExportParams {
    fn default() -> Self {
        let fio = crate::fio::params::Params::default();
        Self {
            test_types: fio.test_types,
            block_sizes: fio.block_sizes,
            rate_iops: fio.rate_iops,
            runtime: fio.runtime,
            ramptime: fio.ramptime,
            file_size: Bytes(256 << 20),
            config: fio.config,
            tool_group: fio.tool_group,
            pre_iteration_script: fio.pre_iteration_script,
            samples: fio.samples,
            max_stddev: fio.max_stddev,
            max_failures: fio.max_failures,
            histogram_interval_sec: fio.histogram_interval_sec,
            sysinfo: fio.sysinfo,
        }
    }
}

impl ExportParams {
    /// See [`crate::fio::params::Params::rule`].
    pub fn rule(&self) -> Option<SamplingRule> {
        pbench_rule(self.samples, self.max_stddev, self.max_failures)
    }

    /// One job with one operation in flight, with an engine and its connection options.
    pub fn job(&self, engine: &str, connection: Vec<(&'static str, String)>) -> FioJob {
        FioJob {
            test_type: self.test_types.unwrap_or_default(),
            block_size: self.block_sizes.unwrap_or(Bytes(4096)),
            file_size: self.file_size,
            direct: false,
            sync: false,
            rate_iops: self.rate_iops,
            runtime: self.runtime,
            ramptime: self.ramptime,
            mode: JobMode::Concurrent,
            ioengine: engine.to_owned(),
            iodepth: 1,
            numjobs: 1,
            histogram_interval: self.histogram_interval_sec,
            connection,
            // Required by fio, but not used by these engines.
            targets: vec!["export".to_owned()],
        }
    }
}

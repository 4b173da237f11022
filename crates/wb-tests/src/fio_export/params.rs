//! The parameters that all tests of exports have: those of `fio` that do not depend on the engine.

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
    /// Operations per second of each job at most, reads and writes each; 0: no limit
    pub rate_iops: u32,
    /// Measured time of a sample, 10ms at least
    #[schemars(extend("minimum" = 10_000_000))]
    pub runtime: Nanos,
    /// Time before it that does not count
    pub ramptime: Nanos,
    /// Size of the private image, and how much of another target is used
    #[schemars(extend("x-aliases" = ["size"]))]
    pub file_size: Bytes,
    /// A label of one's own
    pub config: String,
    /// Tools around every sample: a group of the plan's [tool-groups]
    pub tool_group: String,
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

    /// One job with one operation in flight, through this engine by these options.
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
            // A name that fio wants and such engines do not use.
            targets: vec!["export".to_owned()],
        }
    }
}

//! Common parameters of export tests, in which a server on the worker exports a file or device (NBD, vhost-user-blk) and
//! an engine of fio connects to it: the parameters of the test `fio` that do not depend on the engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos};
use wb_stats::SamplingRule;

use crate::fio::job::{FioJob, JobMode, TestType};
use crate::fio::params::pbench_rule;
use crate::fio::sysinfo::Collector;

// The extensions of the schema (`x-axis`, `x-aliases`, `x-default`) are described at [`wb_model::Param::from_schema`].
/// Parameters of all tests that measure an export
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct ExportParams {
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
    /// Maximum operations per second of each job, separately for reads and for writes; 0: no limit
    pub rate_iops: u32,
    /// Duration of the measurement of a sample, at least 10ms
    #[schemars(extend("minimum" = 10_000_000))]
    pub runtime: Nanos,
    /// Warm-up time of a sample, before the measurement
    pub ramptime: Nanos,
    /// Size of the scratch image that is created and exported; of a target given by the user, the bytes used from its
    /// start
    #[schemars(extend("x-aliases" = ["size"]))]
    pub file_size: Bytes,
    /// Free-form label
    pub config: String,
    /// Monitoring commands that run during every sample: name of a group under [tool-groups] in the plan file
    pub tool_group: String,
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

impl Default for ExportParams {
    fn default() -> Self {
        let fio = crate::fio::params::FioParams::default();
        Self {
            test_types: fio.test_types,
            block_sizes: fio.block_sizes,
            rate_iops: fio.rate_iops,
            runtime: fio.runtime,
            ramptime: fio.ramptime,
            // Less than the 4 GiB of the test `fio`: the scratch image is written whole before it is measured.
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
    /// pbench's sampling rule; none if `samples` is 0, which requests that of the plan.
    pub fn rule(&self) -> Option<SamplingRule> {
        pbench_rule(self.samples, self.max_stddev, self.max_failures)
    }

    /// One buffered job with one operation in flight. The plan sets access pattern and block size of a cell; they
    /// default here to fio's own.
    pub fn job(&self, ioengine: &str, connection: Vec<(&'static str, String)>) -> FioJob {
        FioJob {
            test_type: self.test_types.unwrap_or_default(),
            block_size: self.block_sizes.unwrap_or(Bytes(4096)),
            file_size: self.file_size,
            direct: false,
            sync: false,
            fsync: 0,
            fdatasync: 0,
            rate_iops: self.rate_iops,
            runtime: self.runtime,
            ramptime: self.ramptime,
            mode: JobMode::Concurrent,
            ioengine: ioengine.to_owned(),
            iodepth: 1,
            numjobs: 1,
            histogram_interval: self.histogram_interval_sec,
            connection,
            // A file name that fio requires, and that engines with a connection ignore.
            targets: vec!["export".to_owned()],
        }
    }
}

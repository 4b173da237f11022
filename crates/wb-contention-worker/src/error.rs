//! Why a measurement of contention failed.

use wb_agent::WorkerError;
use wb_model::{Bytes, Quantity};

use super::requirements::RequirementReport;

#[derive(Debug, thiserror::Error)]
pub enum ContentionError {
    /// The worker refused a request, or is lost.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(
        "no cgroup v2 with controllers: cgroup v1 has them, or they are disabled; boot with `systemd.unified_cgroup_hierarchy=1` or `cgroup_no_v1=all`"
    )]
    NoControllers,
    #[error("requirements are not met: {}", .0.describe_missed())]
    MissedRequirements(RequirementReport),
    #[error("required even with --force: {}", .0.join("; "))]
    Indispensable(Vec<String>),
    #[error("cannot determine the block device of `{path}`: {reason}")]
    NoDevice {
        /// A folder, or the name of a device.
        path: String,
        reason: String,
    },
    #[error("no space left in `{path}` for {}", binary(.required))]
    NoSpace { path: String, required: Bytes },
    /// The machine, or its part that remains for the workload, is too small for a memory profile.
    #[error("the memory profile of {profile} GiB needs {}, and {} are available: use a smaller one", binary(.share), binary(.available))]
    TooLittleMemory {
        /// In GiB.
        profile: u32,
        share: Bytes,
        available: Bytes,
    },
    #[error("`{program}` was killed because memory ran out in {group}")]
    OutOfMemory { program: String, group: String },
    #[error("`{program}` failed: {reason}")]
    Process {
        program: String,
        /// Exit status and error output.
        reason: String,
    },
    #[error("invalid output of `{program}`: {reason}")]
    Output { program: String, reason: String },
    #[error("{what} was changed by another program during the measurement")]
    ForeignChange { what: String },
    #[error(
        "the memory hog competed with nobody: swap usage stayed zero; it needs more time, a higher speed or a smaller memory profile"
    )]
    NoContention,
    #[error("hashd reached {reached:.1} of {target:.1} requests per second within {seconds} s")]
    Unstable { reached: f64, target: f64, seconds: u64 },
}

impl ContentionError {
    /// The workload failed, rather than the machine.
    pub fn concerns_workload(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::Process { .. } | Self::Output { .. } | Self::Unstable { .. })
    }

    pub(super) fn output(program: &str, reason: impl std::fmt::Display) -> Self {
        Self::Output { program: program.to_owned(), reason: reason.to_string() }
    }
}

fn binary(bytes: &Bytes) -> Quantity<'static> {
    Quantity { value: bytes.0 as f64, unit: "B" }
}

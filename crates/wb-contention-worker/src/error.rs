//! Why a measurement of contention failed.

use wb_agent::WorkerError;
use wb_model::{Bytes, Quantity};

use super::requirements::RequirementReport;

/// Why a measurement of contention failed.
#[derive(Debug, thiserror::Error)]
pub enum ContentionError {
    /// The worker refused something, or is lost.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(
        "no cgroup v2 with controllers: cgroup v1 has them, or they are disabled; boot with `systemd.unified_cgroup_hierarchy=1` or `cgroup_no_v1=all`"
    )]
    NoControllers,
    #[error("requirements are not met: {}", .0.describe_missed())]
    MissedRequirements(RequirementReport),
    /// Requirements are not met that `force` cannot replace.
    #[error("required even with --force: {}", .0.join("; "))]
    Indispensable(Vec<String>),
    #[error("cannot determine the block device of `{path}`: {reason}")]
    NoDevice {
        /// The folder or the name of the device.
        path: String,
        reason: String,
    },
    /// A folder has not enough space.
    #[error("no space left in `{path}` for {}", binary(.required))]
    NoSpace {
        path: String,
        /// What is needed at least.
        required: Bytes,
    },
    /// A machine, or its part that remains for the workload, that is too small for a memory profile.
    #[error("the memory profile of {profile} GiB needs {}, and {} are available: use a smaller one", binary(.share), binary(.available))]
    TooLittleMemory {
        /// The profile, in GiB.
        profile: u32,
        /// The workload's share of the memory.
        share: Bytes,
        available: Bytes,
    },
    #[error("`{program}` was killed because memory ran out in {group}")]
    OutOfMemory { program: String, group: String },
    #[error("`{program}` failed: {reason}")]
    Process {
        program: String,
        /// Its exit status and its error output.
        reason: String,
    },
    /// The output of a process cannot be used.
    #[error("invalid output of `{program}`: {reason}")]
    Output { program: String, reason: String },
    /// Something else changed the machine while it was measured.
    #[error("{what} was changed by another program during the measurement")]
    ForeignChange { what: String },
    /// Nothing competed for memory, so that protection is not measured.
    #[error(
        "the memory hog competed with nobody: swap usage stayed zero; it needs more time, a higher speed or a smaller memory profile"
    )]
    NoContention,
    /// The workload did not become stable in time.
    #[error("hashd reached {reached:.1} of {target:.1} requests per second within {seconds} s")]
    Unstable {
        /// The rate that it reached.
        reached: f64,
        /// The rate that it should reach.
        target: f64,
        /// The time limit, in seconds.
        seconds: u64,
    },
}

impl ContentionError {
    /// Whether the workload failed, rather than the machine.
    pub fn concerns_workload(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::Process { .. } | Self::Output { .. } | Self::Unstable { .. })
    }

    /// Invalid output of a program.
    pub(super) fn output(program: &str, reason: impl std::fmt::Display) -> Self {
        Self::Output { program: program.to_owned(), reason: reason.to_string() }
    }
}

fn binary(bytes: &Bytes) -> Quantity<'static> {
    Quantity { value: bytes.0 as f64, unit: "B" }
}

//! Errors that stop a kernel from being measured.

use crate::isa::UnsupportedIsa;
use std::io;

/// Why a kernel could not be measured with the requested configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The CPU lacks the instruction set.
    #[error(transparent)]
    Isa(#[from] UnsupportedIsa),
    /// The instruction set does not have the requested operation.
    #[error("{operation} is not supported by instruction set {isa}: {hint}")]
    Unsupported {
        /// The requested operation.
        operation: &'static str,
        /// The requested instruction set.
        isa: crate::Isa,
        /// What to use instead.
        hint: &'static str,
    },
    /// The list of CPUs is empty.
    #[error("missing CPUs: expected one per thread")]
    NoCpu,
    /// A CPU that does not exist, is offline, or is outside this process's affinity mask.
    #[error("cannot use CPU {cpu}: this process is limited to {allowed}")]
    Cpu {
        /// The requested CPU.
        cpu: usize,
        /// The usable CPUs, as a list of ranges.
        allowed: String,
    },
    /// A thread could not be pinned.
    #[error("cannot pin a thread to CPU {cpu}: {source}")]
    Pin {
        /// The requested CPU.
        cpu: usize,
        /// The system's error.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread for CPU {cpu}: {source}")]
    Thread {
        /// The CPU of the thread.
        cpu: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The arrays do not fit into the available memory.
    #[error("cannot allocate {required} bytes of memory: {available} bytes are available (MemAvailable)")]
    Memory {
        /// Bytes that the arrays need.
        required: u64,
        /// Bytes that are available without swapping.
        available: u64,
    },
    /// The memory could not be mapped.
    #[error("cannot map {bytes} bytes of memory: {source}")]
    Map {
        /// The requested bytes.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The huge-page policy could not be set.
    #[error("cannot set the huge-page policy: {source}")]
    HugePages {
        /// The system's error.
        source: io::Error,
    },
    /// The residency of huge pages could not be read.
    #[error("cannot read /proc/self/smaps: {source}")]
    Smaps {
        /// The system's error.
        source: io::Error,
    },
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
}

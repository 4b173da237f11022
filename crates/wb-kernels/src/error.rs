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
    Unsupported { operation: &'static str, isa: crate::Isa, hint: &'static str },
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
        source: io::Error,
    },
    #[error("cannot start a thread for CPU {cpu}: {source}")]
    Thread {
        /// The CPU of the thread.
        cpu: usize,
        source: io::Error,
    },
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
        source: io::Error,
    },
    #[error("cannot set the huge-page policy: {source}")]
    HugePages { source: io::Error },
    /// The residency of huge pages could not be read.
    #[error("cannot read /proc/self/smaps: {source}")]
    Smaps { source: io::Error },
    #[error("{0}")]
    Config(String),
}

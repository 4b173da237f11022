//! Errors that stop a kernel from being measured.

use crate::isa::UnsupportedIsa;
use std::io;

/// Why a kernel could not be measured with the requested configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Isa(#[from] UnsupportedIsa),
    #[error("{operation} is not supported by instruction set {isa}: {hint}")]
    Unsupported { operation: &'static str, isa: crate::Isa, hint: &'static str },
    #[error("missing CPUs: expected one per thread")]
    NoCpu,
    /// The CPU does not exist, is offline, or is outside this process's affinity mask.
    #[error("cannot use CPU {cpu}: this process is limited to {allowed}")]
    Cpu {
        cpu: usize,
        /// A list of ranges.
        allowed: String,
    },
    #[error("cannot pin a thread to CPU {cpu}: {source}")]
    Pin { cpu: usize, source: io::Error },
    #[error("cannot start a thread for CPU {cpu}: {source}")]
    Thread { cpu: usize, source: io::Error },
    #[error("cannot allocate {required} bytes of memory: {available} bytes are available (MemAvailable)")]
    Memory {
        required: u64,
        /// Without swapping.
        available: u64,
    },
    #[error("cannot map {bytes} bytes of memory: {source}")]
    Map { bytes: usize, source: io::Error },
    #[error("cannot set the huge-page policy: {source}")]
    HugePages { source: io::Error },
    #[error("cannot read /proc/self/smaps: {source}")]
    Smaps { source: io::Error },
    #[error("{0}")]
    Config(String),
}

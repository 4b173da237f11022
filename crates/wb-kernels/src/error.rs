//! Everything that stops a kernel from being measured.

use crate::isa::UnsupportedIsa;
use std::io;

/// Why a kernel could not be measured as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The CPU lacks the instruction set.
    #[error(transparent)]
    Isa(#[from] UnsupportedIsa),
    /// The instruction set has no instruction for what was asked.
    #[error("{what} does not exist with isa {isa}: {way_out}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// The instruction set it was asked of.
        isa: crate::Isa,
        /// What to ask for instead.
        way_out: &'static str,
    },
    /// The list of CPUs is empty.
    #[error("no cpu is given: name one per thread")]
    NoCpu,
    /// A CPU that does not exist, is offline, or is outside this process's affinity mask.
    #[error("cpu {cpu} is not usable by this process: it may use {allowed}")]
    Cpu {
        /// The CPU that was asked for.
        cpu: usize,
        /// The CPUs that may be used, as a list of ranges.
        allowed: String,
    },
    /// The system refused to pin a thread.
    #[error("pinning a thread to cpu {cpu}: {source}")]
    Pin {
        /// The CPU that was asked for.
        cpu: usize,
        /// What the system said.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("starting a thread for cpu {cpu}: {source}")]
    Thread {
        /// The CPU that it was for.
        cpu: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The arrays do not fit.
    #[error("needs {needs} bytes of memory, {available} are available (MemAvailable)")]
    Memory {
        /// Bytes that the arrays need.
        needs: u64,
        /// Bytes that the system can give without swapping.
        available: u64,
    },
    /// The system refused to map memory.
    #[error("mapping {bytes} bytes: {source}")]
    Map {
        /// Bytes that were asked for.
        bytes: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The huge-page policy could not be set.
    #[error("setting the huge-page policy: {source}")]
    HugePages {
        /// What the system said.
        source: io::Error,
    },
    /// The residency of huge pages could not be read.
    #[error("reading /proc/self/smaps: {source}")]
    Smaps {
        /// What the system said.
        source: io::Error,
    },
    /// The configuration makes no sense.
    #[error("{0}")]
    Config(String),
}

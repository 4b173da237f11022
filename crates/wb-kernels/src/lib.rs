//! Compute kernels that weigh one machine: himeno and ramspeed for memory, linpack for arithmetic.
//!
//! For: running one kernel in the calling process, on an explicit list of CPUs, with an explicit
//! instruction set, and reporting what was measured together with what proves that it was.
//!
//! Must not know: plans, samples, workers, run folders. It stands alone: a configuration goes in,
//! a report comes out, both are plain serde types.
//!
//! Start with [`himeno::run`]; [`team`] shows how threads are pinned and timed, [`memory`] where
//! the arrays live, [`Isa`] how instructions are chosen.

pub mod cpus;
mod error;
pub mod himeno;
mod isa;
pub mod linpack;
pub mod memory;
mod opaque;
mod prefetch;
pub mod ramspeed;
pub mod thread_team;
mod work;

pub use error::Error;
pub use isa::{Isa, UnknownIsa, UnsupportedIsa};
pub use memory::{HugePagePolicy, MappedMemory, Residency};
pub use work::{Probe, Work};

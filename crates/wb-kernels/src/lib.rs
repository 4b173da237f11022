//! Compute kernels that measure one machine: himeno and ramspeed for memory, linpack for arithmetic. Also a load: a
//! memory hog.
//!
//! Purpose: run one kernel in the calling process, on an explicit list of CPUs, with an explicit instruction set, and
//! report the figures together with the evidence that the work was done.
//!
//! Must not depend on: plans, samples, workers, run folders. The crate stands alone: a configuration goes in, a report
//! comes out, both are plain serde types.
//!
//! Start with [`himeno::run`]; `thread_team` shows how threads are pinned and timed, `memory` how the arrays are
//! mapped, [`Isa`] how the instruction set is selected.

pub mod cpus;
mod error;
pub mod himeno;
mod isa;
pub mod linpack;
mod memory;
pub mod memory_hog;
mod opaque;
mod prefetch;
pub mod ramspeed;
mod thread_team;
mod work;

pub use error::Error;
pub use isa::{Isa, UnknownIsa, UnsupportedIsa};
use memory::MappedMemory;
pub use memory::{HugePagePolicy, Residency};
pub use work::{Probe, Work};

//! Contention: how a latency-sensitive workload and a device behave while something else competes for memory, I/O and
//! CPUs. Measures on a worker; sequences of benches, what is kept of them and how it is shown are elsewhere.
//!
//! A bench prepares its worker ([`PreparedWorker`]: requirements, control groups, settings, all through the undo log),
//! then calls the `measure` of its module with typed parameters, and gets a typed result. Where that takes long, there
//! is a record, to which is added; it is a checkpoint to go on from.
//!
//! Start with [`prepared_worker`], then [`enforcement`], the simplest measurement.

#![forbid(unsafe_code)]

mod critical_services;
pub mod device;
pub mod enforcement;
mod error;
mod file_system;
mod files;
mod fio_load;
pub mod hashd_params;
pub mod io_latency;
pub mod iocost_params;
pub mod memory_profile;
mod oomd;
pub mod prepared_worker;
pub mod protection;
pub mod protection_study;
mod report_lines;
pub mod requirements;
pub mod storage;
pub mod system;
pub mod vrate;
mod workload;

pub use device::BlockDevice;
pub use error::ContentionError;
pub use memory_profile::{MemoryProfile, MemoryShare};
pub use prepared_worker::{IoControl, Preparation, PreparedWorker, Slice, SliceSettings};
pub use requirements::{Enforcement, Needs, Requirement, RequirementReport};
pub use workload::Balloon;

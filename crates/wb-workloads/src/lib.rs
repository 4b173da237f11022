//! Built-in tests whose workload is a program of its own (fio, redis, uperf's profiles) or this one (the network engine,
//! the kernels).
//!
//! Start with [`himeno`], the simplest test, and [`native`], which runs all kernels.

#![forbid(unsafe_code)]

pub mod count;
pub mod fio;
pub mod fio_export;
pub mod fio_libblkio;
pub mod fio_nbd;
pub mod himeno;
pub mod knees;
pub mod linpack;
pub mod native;
pub mod net;
pub mod ramspeed;
pub mod ramspeed_sweep;
pub mod redis;
pub mod uperf;

//! Every test that can be run: built in, declarative and external.
//!
//! A test declares itself, drives a worker to take a sample, and reads values out of what the sample
//! left. It knows nothing of plans, order, samples before and after its own, or statistics.
//!
//! Start with [`test`] (what a test is), then [`himeno`], the simplest one; [`registry`] lists all.

pub mod artefacts;
pub mod attempt;
pub mod count;
pub mod declarative;
pub mod evaluate;
pub mod external;
pub mod failure;
pub mod fio;
pub mod fio_export;
pub mod fio_libblkio;
pub mod fio_nbd;
pub mod himeno;
pub mod imported;
pub mod knees;
pub mod linpack;
pub mod measured;
pub mod meeting;
pub mod native;
pub mod net;
pub mod ramspeed;
pub mod ramspeed_sweep;
pub mod redis;
pub mod registry;
pub mod test;
#[cfg(test)]
mod testing;
pub mod uperf;

pub use artefacts::Artefacts;
pub use attempt::{Attempt, Service, Site};
pub use declarative::{Declarative, DefinitionError};
pub use failure::Failure;
pub use imported::Imported;
pub use measured::{Answer, BUILT, DEFINITION_FILE, DEFINITION_SHA256, Latencies, Measured, Rejected, SampleCurve};
pub use registry::Registry;
pub use test::{About, BuildInputs, Measure, Solved, SolvedPoint, Test};

//! All tests: built-in, declarative and external.
//!
//! A test declares its parameters, takes samples on a worker, and extracts values from a sample's artefacts. It knows
//! nothing of plans, order, other samples, or statistics.
//!
//! Start with [`test`] and [`typed_test`] (the traits), then [`himeno`], the simplest test; [`registry`] lists all.

#![forbid(unsafe_code)]

pub mod artefacts;
pub mod attempt;
pub mod contention;
pub mod count;
pub mod declarative;
pub mod evaluate;
pub mod external;
pub mod failure;
pub mod fio;
pub mod fio_export;
pub mod fio_libblkio;
pub mod fio_nbd;
pub mod foreign;
pub mod himeno;
mod invalid_cell;
pub mod knees;
pub mod linpack;
pub mod measurement;
pub mod native;
pub mod net;
pub mod peers;
mod port;
pub mod ramspeed;
pub mod ramspeed_sweep;
pub mod redis;
pub mod registry;
pub mod shared_params;
pub mod start_barrier;
pub mod test;
#[cfg(test)]
mod testing;
pub mod typed_test;
pub mod uperf;

pub use artefacts::Artefacts;
pub use attempt::{Attempt, RunningService, WorkerContext};
pub use declarative::{DeclarativeTest, DefinitionError};
pub use failure::Failure;
pub use foreign::{ForeignTest, measure_imported};
pub use measurement::{
    BUILT_PREFIX, Conclusion, DEFINITION_FILE_PREFIX, DEFINITION_SHA256, LatencySeries, Measurement, Rejection,
    SampleCurve,
};
pub use registry::Registry;
pub use shared_params::{InvalidParams, SharedParams};
pub use test::{BuildInputs, CurvePoint, EvaluatedCell, Test, TestCell};
pub use typed_test::{TestInfo, TypedTest};

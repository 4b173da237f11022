//! What a test is. It declares its parameters, takes samples on a worker, and extracts values from a sample's
//! artefacts. It knows nothing of plans, order, other samples, or statistics.
//!
//! No test is here: whoever evaluates samples depends on this crate alone. Start with [`mod@test`] and [`typed_test`]
//! (the traits), then [`attempt`] (what a sample can do on its worker) and [`registry`] (tests by name).

#![forbid(unsafe_code)]

pub mod artefacts;
pub mod attempt;
pub mod evaluate;
pub mod failure;
mod imported;
mod invalid_cell;
pub mod measurement;
pub mod port;
pub mod registry;
pub mod shared_params;
pub mod start_barrier;
pub mod test;
pub mod typed_test;

pub use artefacts::Artefacts;
pub use attempt::{Attempt, RunningService, WorkerContext};
pub use failure::Failure;
pub use imported::measure_imported;
pub use measurement::{
    BUILT_PREFIX, DEFINITION_FILE_PREFIX, DEFINITION_SHA256, LatencySeries, Measurement, Rejection, SampleCurve,
};
pub use registry::Registry;
pub use shared_params::{InvalidParams, SharedParams};
pub use test::{BuildInputs, CurvePoint, EvaluatedCell, Test, TestCell};
pub use typed_test::{TestInfo, TypedTest};

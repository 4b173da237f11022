//! Models: the normal variation of each check, learnt from history.
//!
//! There are two kinds ([`AnyModel`]). A [`NoiseModel`] has the spread between runs of one build, for the statistical
//! method. A [`ToleranceModel`](crate::ToleranceModel), as run-perf has it, is for the tolerance method.

pub mod error;
pub mod noise;

pub use error::{ModelError, ParseModelError};
pub use noise::{NoiseModel, file::AnyModel};

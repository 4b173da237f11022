//! Experiments: compare one test with variants of itself, or with itself.

mod ab;
mod calibrate;
mod criterion;
mod error;
mod experiment;
mod inputs;
mod stopping_rule;

pub use ab::{AbOptions, ab};
pub use calibrate::{CalibrationOptions, calibrate};
pub use error::{InvalidMeasurement, VariantsError};
pub use experiment::read_experiment;

//! Evaluation of runs: from raw artefacts to values, validity, summaries and conclusions.
//!
//! A study reads a run folder and needs no live system: it can be repeated with a newer program on old artefacts. It
//! neither renders nor compares results.
//!
//! Start with [`run::study`], which computes the results of a run, cell by cell with [`cell`].

#![forbid(unsafe_code)]

pub mod aggregation;
pub mod cell;
pub mod curves;
pub mod error;
pub mod evaluated_attempt;
mod exit_status;
pub mod findings;
mod imported;
pub mod judgement;
pub mod latency;
pub mod machine_properties;
mod preparation;
mod primary_values;
pub mod provenance;
mod rounds;
pub mod run;
pub mod solve;
#[cfg(test)]
mod testing;
pub mod value_range;

pub use error::StudyError;
pub use evaluated_attempt::EvaluatedAttempt;
pub use judgement::{CellDecision, Judgement, judge};
pub use run::{current_results, render_results, study, write_results, write_serial};

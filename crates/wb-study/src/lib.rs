//! From raw artefacts to values, gates, summaries and answers.
//!
//! A study reads a run folder and needs no live system: it can be repeated with a newer program on old
//! artefacts. It draws nothing and compares nothing.
//!
//! Start with [`result`], what a study yields; [`run::study`] makes it, cell by cell with [`cell`].

pub mod aggregation;
pub mod cell;
pub mod curves;
pub mod error;
pub mod findings;
pub mod latency;
pub mod machine_properties;
pub mod provenance;
pub mod result;
pub mod run;
pub mod solve;
pub mod studied_attempt;
#[cfg(test)]
mod testing;
pub mod value_range;

pub use cell::{Judgement, judge};
pub use error::StudyError;
pub use result::Study;
pub use run::{current_results, render_results, study, write_results, write_serial};
pub use studied_attempt::StudiedAttempt;

//! Compares builds: which metric got better or worse, by how much, and against what is normal.
//!
//! Folders of results go in, finished comparisons come out. This crate draws nothing, prints nothing and measures
//! nothing.
//!
//! Start with [`source::read`], which makes [`Builds`] of folders. Each method of comparing has a module of its own
//! over them: [`mod@tolerance`] judges by differences in percent, as run-perf does, [`mod@statistical`] by ratios of medians and how
//! sure they are; [`outcome`] puts both together. Beside them stand [`model`] (what
//! history says of a metric), [`nearest`], [`analyze`] and [`mod@strip`], and what needs no folders: [`ab`] judges variants
//! sampled in turns, [`mod@calibrate`] a system against itself.

pub mod ab;
pub mod analyze;
pub mod build;
pub mod calibrate;
pub mod direction;
pub mod environment;
pub mod id;
pub mod metadata;
pub mod model;
mod names;
pub mod nearest;
pub mod outcome;
pub mod source;
pub mod statistical;
pub mod strip;
pub mod test_setup;
pub mod tolerance;
pub mod uncertainty;
pub mod unknown;
pub mod variants;

pub use build::{Build, Builds, Reading, Row, Run, SampleCounts, Value};
pub use direction::Directions;
pub use id::{CheckId, Naming, Statistic};
pub use metadata::Metadata;
pub use model::{AnyModel, Model, NoiseModel};
pub use outcome::Outcome;
pub use source::{Read, ReadOptions, Source, SourceError, Study, Warning, read};
pub use unknown::Unknown;
pub use variants::{Calibrated, Variants};

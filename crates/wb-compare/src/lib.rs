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

pub mod analyze;
pub mod build;
pub mod calibrate;
pub mod comparison;
pub mod direction;
pub mod environment;
pub mod experiment;
pub mod id;
mod interner;
pub mod metadata;
pub mod model;
pub mod nearest;
pub mod sequential_test;
pub mod source;
pub mod statistical;
pub mod strip;
pub mod test_setup;
pub mod tolerance;
pub mod uncertainty;
pub mod unknown_name;

pub use build::{Build, Builds, MeasuredValue, MetricIndex, MetricReading, Run, SampleCounts};
pub use comparison::ComparisonResult;
pub use direction::Directions;
pub use experiment::{CalibrationExperiment, VariantExperiment};
pub use id::{CheckId, IdFormat, Statistic};
pub use metadata::Metadata;
pub use model::{AnyModel, NoiseModel, ToleranceModel};
pub use source::{BuildSource, LoadedBuilds, ReadOptions, SourceError, StudyFn, Warning, read};
pub use unknown_name::UnknownName;

//! Compares builds: which metrics improved or regressed, by how much, and against what normal variation.
//!
//! The input is result folders, the output is finished comparisons, whose types are in [`wb_results::comparison`] and
//! [`wb_results::experiment`]. This crate draws nothing, prints nothing and measures nothing.
//!
//! Start with [`source::read`], which reads folders into [`Builds`]. Each comparison method has its own module:
//! [`run_perf::tolerance`] judges differences in percent, as run-perf does, [`mod@statistical`] ratios of medians and
//! their uncertainty; [`comparison`] combines both, and [`judgement`] does all of it. All that is compatible with
//! run-perf is in [`run_perf`]. Other modules are [`model`] (the history of a metric), [`analyze`], [`within_run`]
//! (parts of one run as builds), and those that need no folders: [`sequential_test`] judges variants sampled in
//! interleaved order, [`mod@calibrate`] a system against itself.

#![forbid(unsafe_code)]

pub mod analyze;
pub mod build;
pub mod calibrate;
pub mod comparison;
pub mod direction;
mod distinct;
pub mod environment;
mod exit_status;
pub mod experiment;
mod failure_test;
mod interner;
pub mod judgement;
pub mod metadata;
pub mod model;
mod run_identity;
pub mod run_perf;
mod schedule;
pub mod sequential_test;
pub mod sides;
pub mod source;
pub mod statistical;
pub mod test_setup;
pub mod unknown_name;
pub mod within_run;

pub use build::{Build, Builds, MeasuredValue, MetricIndex, MetricReading, Run};
pub use direction::Directions;
pub use judgement::{Judgement, JudgementOptions, NothingComparable};
pub use metadata::Metadata;
pub use model::{AnyModel, Models, NoiseModel};
pub use run_perf::model::ToleranceModel;
pub use sides::SidesError;
pub use source::{BuildSource, LoadedBuilds, ReadOptions, SourceError, StudyFn, ValueMap, Warning, read, run_metadata};
pub use unknown_name::{MetricNameError, UnknownName};
pub use within_run::{Factor, WithinRun, WithinRunError};

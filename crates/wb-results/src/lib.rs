//! What is recorded of a measurement and reported from it: types, how they are serialised, and what can be read off
//! them. Nothing is computed here but what a single result says of itself; whoever renders, compares or keeps results
//! depends on this crate, and not on what measured them.
//!
//! Start with [`Study`], the results of a run; [`comparison`] has those of a comparison, [`experiment`] of interleaved
//! variants, [`net`] of network runs, and [`contention`] of contention benches.

#![forbid(unsafe_code)]

pub mod attempt;
pub mod borrowed;
pub mod cell;
pub mod comparison;
pub mod conclusion;
pub mod contention;
pub mod curve;
pub mod experiment;
pub mod failures;
pub mod finding;
pub mod latency;
pub mod net;
pub mod scenario;
pub mod series;
pub mod study;

pub use attempt::AttemptResult;
pub use cell::{CellResult, MetricResult};
pub use conclusion::Conclusion;
pub use curve::{CurveSet, SummaryCurve, SummaryPoint};
pub use failures::Failures;
pub use latency::{NestedLatency, NestedRow};
pub use scenario::{Measure, Scenario};
pub use series::{ExcludedSample, SampleSeries};
pub use study::{EnvironmentChange, ImportedSource, RunInfo, SerialResult, Study};

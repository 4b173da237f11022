//! A finished comparison of builds: the results of both methods and the final verdicts. This is what is displayed and
//! exported.
//!
//! Start with [`ComparisonResult`].

mod aspect;
mod build;
mod check;
mod check_id;
mod confidence_interval;
mod context;
mod environment;
mod failures;
mod final_verdict;
mod group;
mod method;
mod negligible_ratios;
mod noise;
mod observations;
mod result;
mod statistic;
mod statistics;
mod status;
mod totals;
mod within_run;

pub use aspect::{Aspect, AspectSummary, Certainty, TestPValues, ValueDifference};
pub use build::{BuildSummary, RunSummary, SampleCounts};
pub use check::{CheckResult, ParamDifference};
pub use check_id::{CheckId, IdFormat, ParseCheckIdError};
pub use confidence_interval::ConfidenceInterval;
pub use context::{ContextDifferences, MachineRef, SectionDifference, ValueChange};
pub use environment::{BASE_ENVIRONMENT, Environments, MachineEnvironment};
pub use failures::{AttemptCounts, FailureSummary};
pub use final_verdict::FinalVerdict;
pub use group::{CheckGroupResult, DominantMember};
pub use method::ComparisonMethod;
pub use negligible_ratios::{NegligibleRatios, negligible_percent};
pub use noise::NoiseModelUse;
pub use observations::{ObservationCounts, ObservationKind, RequiredSamples};
pub use result::ComparisonResult;
pub use statistic::Statistic;
pub use statistics::StatisticalSummary;
pub use status::Status;
pub use totals::{DeviationTotals, Totals};
pub use within_run::WithinRunSummary;

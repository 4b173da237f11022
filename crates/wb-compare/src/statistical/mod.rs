//! The statistical method: by which factor a metric differs, how certain that is, and whether it matters.
//!
//! The effect is the ratio of medians by Hodges and Lehmann, its test Wilcoxon's rank sum, both exact for few values
//! ([`wb_stats::TwoSides`]); from five runs per side on, a bootstrap that resamples runs and then samples
//! ([`wb_stats::Drawn`]). If a model has an estimate of the spread of runs, fewer runs are compared by that
//! ([`wb_stats::RunNoise::ratio`]). The ranked values are samples if a side has one run, and the runs' medians
//! otherwise: many samples within one run are no evidence about the next run.
//!
//! All primary metrics are one family: which of them differ is decided jointly (Benjamini and Hochberg), and the
//! intervals are taken at the corresponding confidence (Benjamini and Yekutieli).
//!
//! Start with [`compare`]; [`verdict`] defines the verdicts, [`units`] the ranked values, [`needs`] estimates the
//! number of values that an inconclusive comparison requires.

mod candidate;
mod noise;
pub mod observations;
pub mod required_samples;
pub mod threshold;
mod two_sample;
pub mod verdict;

use rayon::prelude::*;
use wb_stats::{Ratio, benjamini_hochberg, selected_confidence};

use crate::build::{Builds, MetricIndex};
use crate::direction::Directions;
use crate::model::NoiseModel;
use candidate::{CandidateMetric, FamilyResult};
use noise::BoundNoiseModels;
pub use noise::NoiseModelUse;
use observations::ObservationCounts;
pub use observations::ObservationKind;
pub use required_samples::RequiredSamples;
pub use threshold::Threshold;
pub use verdict::Verdict;

/// The number of samples per side from which statistics decide by default: from six on a median has an interval at
/// 95 %.
pub const ENOUGH_SAMPLES: usize = 6;

/// Settings of the statistical method.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The smallest relevant difference.
    pub threshold: Threshold,
    /// The false discovery rate: the maximum average share of wrong results among the metrics reported as different;
    /// one minus the intervals' confidence.
    pub error_rate: f64,
    /// Whether one run per side is enough for a verdict, as if runs did not differ from each other.
    pub trust_single_run: bool,
    /// The better direction of each metric.
    pub directions: Directions,
    /// The seed of the bootstrap.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        let (threshold, directions) = (Threshold::default(), Directions::default());
        Self { threshold, error_rate: 0.05, trust_single_run: false, directions, seed: 1 }
    }
}

/// A comparison of one build with the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The metrics of either build, in the builds' order.
    pub checks: Vec<MetricComparison>,
    /// The number of metrics in the family.
    pub family: usize,
    /// The number of metrics of the family that differ.
    pub discoveries: usize,
    /// The confidence level of the intervals.
    pub confidence: f64,
}

impl Comparison {
    /// The comparison of a metric; `None` if neither side has it.
    pub fn metric(&self, row: MetricIndex) -> Option<&MetricComparison> {
        // The checks are sorted by row.
        Some(&self.checks[self.checks.binary_search_by_key(&row, |check| check.row).ok()?])
    }
}

/// The comparison of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricComparison {
    /// The metric.
    pub row: MetricIndex,
    /// Whether it is a primary metric of its case.
    pub primary: bool,
    /// The ranked values: their number on each side, and what they are.
    pub units: ObservationCounts,
    /// The ratio of the last build to the first; `None` if it cannot be computed.
    pub effect: Option<Ratio>,
    /// The p-value, adjusted for the family; unadjusted for metrics that are not primary. `None` without an effect.
    pub p: Option<f64>,
    /// The smallest relevant difference, in percent.
    pub threshold: f64,
    /// Whether and how a noise model was used; `None` without models.
    pub noise: Option<NoiseModelUse>,
    /// The verdict.
    pub verdict: Verdict,
    /// The number of values required for a verdict, if there is none yet.
    pub required_samples: Option<RequiredSamples>,
}

/// Compares the last build with the first, using the noise in `models`; `None` with fewer than two builds.
pub fn compare(builds: &Builds, models: &[NoiseModel], options: &Options) -> Option<Comparison> {
    against(builds, builds.list().len().checked_sub(1)?, models, options)
}

/// Compares a build, given by its index, with the first; `None` if it is not a later one.
pub fn against(builds: &Builds, build: usize, models: &[NoiseModel], options: &Options) -> Option<Comparison> {
    let [reference, later @ ..] = builds.list() else { return None };
    let judged = later.get(build.checked_sub(1)?)?;
    let sides = [reference, judged];
    let noise_models = BoundNoiseModels::bind(models, builds);
    let rows: Vec<MetricIndex> = builds.rows().collect();
    let candidates: Vec<CandidateMetric<'_>> = rows
        .into_par_iter()
        .filter_map(|row| CandidateMetric::new(builds, sides, row, &noise_models, options))
        .collect();
    let family: Vec<f64> =
        candidates.iter().filter(|candidate| candidate.primary).filter_map(CandidateMetric::p).collect();
    let correction = benjamini_hochberg(&family, options.error_rate);
    let (discoveries, family) = (correction.count, family.len());
    let confidence = selected_confidence(options.error_rate, discoveries, family);
    let min_values = required_samples::min_observations(options.error_rate, family);
    let mut adjusted = correction.adjusted.into_iter();
    let result = |candidate: &CandidateMetric<'_>| match candidate.primary {
        true => FamilyResult { p: candidate.p().and_then(|_| adjusted.next()), confidence, least: min_values },
        false => FamilyResult { p: candidate.p(), confidence: 1.0 - options.error_rate, least: min_values },
    };
    let results: Vec<FamilyResult> = candidates.iter().map(result).collect();
    let checks = candidates.into_par_iter().zip(results);
    let checks = checks.map(|(candidate, result)| candidate.judge(builds, sides, result, options)).collect();
    Some(Comparison { checks, family, discoveries, confidence })
}

//! The method of statistics: by which factor a metric differs, how sure that is, and whether it matters.
//!
//! The effect is the ratio of medians by Hodges and Lehmann, its test Wilcoxon's rank sum, both exact for few values
//! ([`wb_stats::TwoSides`]); from five runs a side on, a bootstrap that draws runs and then samples
//! ([`wb_stats::Drawn`]). Where a model knows how far runs lie apart, fewer runs are held against each other by that
//! ([`wb_stats::RunNoise::ratio`]). What is ranked are samples where each side has one run, and the runs' medians
//! otherwise: many samples within one run say nothing of the next run.
//!
//! All primary metrics are one family: which of them differ is decided together (Benjamini and Hochberg), and the
//! intervals are taken at the confidence that goes with that (Benjamini and Yekutieli).
//!
//! Start with [`compare`]; [`verdict`] says what each verdict means, [`units`] what is ranked, [`needs`] what would
//! decide what is not.

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
pub use noise::NoiseUse;
use observations::ObservationCounts;
pub use observations::ObservationKind;
pub use required_samples::RequiredSamples;
pub use threshold::Threshold;
pub use verdict::Verdict;

/// From so many samples on each side statistics decide where nobody said otherwise: from six on a median has an interval
/// at 95 %.
pub const ENOUGH_SAMPLES: usize = 6;

/// How differences are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Which differences matter.
    pub threshold: Threshold,
    /// Of the metrics that are said to differ, at most this share is wrong on average; one minus the intervals'
    /// confidence.
    pub error_rate: f64,
    /// Whether one run a side is enough for a verdict, as if runs did not differ from each other.
    pub trust_single_run: bool,
    /// Which way is better.
    pub directions: Directions,
    /// From which the bootstrap draws.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        let (threshold, directions) = (Threshold::default(), Directions::default());
        Self { threshold, error_rate: 0.05, trust_single_run: false, directions, seed: 1 }
    }
}

/// A build against the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What any of the two has, in the builds' order.
    pub checks: Vec<MetricComparison>,
    /// How many metrics were judged together.
    pub family: usize,
    /// How many of them differ.
    pub discoveries: usize,
    /// The confidence of the intervals.
    pub confidence: f64,
}

impl Comparison {
    /// What is said of a metric; none where neither side has it.
    pub fn metric(&self, row: MetricIndex) -> Option<&MetricComparison> {
        // They are in the order of the rows.
        Some(&self.checks[self.checks.binary_search_by_key(&row, |check| check.row).ok()?])
    }
}

/// A metric on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricComparison {
    /// Which.
    pub row: MetricIndex,
    /// Whether its case is judged by it.
    pub primary: bool,
    /// What was ranked: how many on each side, and what they are.
    pub units: ObservationCounts,
    /// The last build's over the first's; none where that cannot be said.
    pub effect: Option<Ratio>,
    /// The probability of so large a difference where there is none, adjusted for the family; of metrics that are not
    /// primary, by itself. None without an effect.
    pub p: Option<f64>,
    /// How large a difference matters, in percent.
    pub threshold: f64,
    /// What became of the models of noise; none without any.
    pub noise: Option<NoiseUse>,
    /// What follows.
    pub verdict: Verdict,
    /// What would decide it, where it is not decided.
    pub required_samples: Option<RequiredSamples>,
}

/// Compares the last build with the first, by what `models` say of noise where they do; none with fewer than two.
pub fn compare(builds: &Builds, models: &[NoiseModel], options: &Options) -> Option<Comparison> {
    against(builds, builds.list().len().checked_sub(1)?, models, options)
}

/// Compares a build with the first, by its place among the builds; none where that is no later one.
pub fn against(builds: &Builds, build: usize, models: &[NoiseModel], options: &Options) -> Option<Comparison> {
    let [src, later @ ..] = builds.list() else { return None };
    let dst = later.get(build.checked_sub(1)?)?;
    let sides = [src, dst];
    let known = BoundNoiseModels::bind(models, builds);
    let rows: Vec<MetricIndex> = builds.rows().collect();
    let looked: Vec<CandidateMetric<'_>> =
        rows.into_par_iter().filter_map(|row| CandidateMetric::new(builds, sides, row, &known, options)).collect();
    let family: Vec<f64> = looked.iter().filter(|looked| looked.primary).filter_map(CandidateMetric::p).collect();
    let found = benjamini_hochberg(&family, options.error_rate);
    let (discoveries, family) = (found.count, family.len());
    let confidence = selected_confidence(options.error_rate, discoveries, family);
    let least = required_samples::min_observations(options.error_rate, family);
    let mut adjusted = found.adjusted.into_iter();
    let together = |looked: &CandidateMetric<'_>| match looked.primary {
        true => FamilyResult { p: looked.p().and_then(|_| adjusted.next()), confidence, least },
        false => FamilyResult { p: looked.p(), confidence: 1.0 - options.error_rate, least },
    };
    let together: Vec<FamilyResult> = looked.iter().map(together).collect();
    let checks = looked.into_par_iter().zip(together);
    let checks = checks.map(|(looked, together)| looked.judge(builds, sides, together, options)).collect();
    Some(Comparison { checks, family, discoveries, confidence })
}

//! The statistical method: by which factor a metric differs, how certain that is, and whether it matters.
//!
//! A check has up to three aspects ([`Aspect`]): the shift of all samples, the mean, and the tail. Each is tested by
//! the samples alone, and with the noise between runs, which is assumed ([`Options::run_noise`]) and updated by the
//! sides' own runs, or known from a noise model: many samples within one run are no evidence about the next run.
//!
//! Within a check, the aspects are corrected by Holm's method. All primary metrics are one family: which of them differ
//! is decided jointly by what is beyond the threshold (Benjamini and Hochberg), and the intervals are taken at the
//! corresponding confidence (Benjamini and Yekutieli). Failures of attempts are another family.
//!
//! Parts of one run ([`within_run`](crate::within_run)) have no noise between runs, and the samples of the same rounds
//! form pairs, so that what changes from round to round cancels out.
//!
//! Start with [`compare`]; [`verdict`] defines the verdicts, [`aspect_test`] the tests, [`required_samples`] what a
//! comparison without a verdict lacks.

mod alone;
mod aspect_test;
mod candidate;
mod check_tests;
mod family;
pub mod group;
mod noise;
pub(crate) mod observations;
mod required_samples;
mod sample_ratio;
mod tail;
pub mod threshold;
pub mod verdict;

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use wb_model::{Class, strip_worker};
use wb_results::comparison::{
    Aspect, AttemptCounts, Certainty, NoiseModelUse, ObservationCounts, RequiredSamples, Statistic, TestPValues,
};
use wb_stats::{Interval, NoiseSource, ProportionDifference, QuantileRatio, RunPrior, StudentRatio};

use crate::build::{Builds, InternedCell, MetricIndex};
use crate::direction::Directions;
use crate::model::NoiseModel;
pub use alone::{SampleComparison, compare_pairs, compare_samples};
use candidate::CandidateMetric;
use family::{Families, Family};
use noise::BoundNoiseModels;
pub use threshold::Threshold;
pub use verdict::Verdict;

/// Samples per side from which statistics decide by default: from six on, a median has an interval at 95 %.
pub const ENOUGH_SAMPLES: usize = 6;

/// Settings of the statistical method.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub threshold: Threshold,
    /// The false discovery rate: the maximum average share of wrong results among the metrics reported as different;
    /// one minus the intervals' confidence.
    pub error_rate: f64,
    /// How much runs of one build are assumed to differ, where no noise model says so.
    pub run_noise: RunPrior,
    /// Whether [`Self::run_noise`] is that of whole results, including the noise of their samples: of a single sample a
    /// side nothing else is known.
    pub is_noise_of_results: bool,
    pub directions: Directions,
}

/// How much runs of one build are assumed to differ by default: a standard deviation of 5 %.
pub const DEFAULT_RUN_NOISE: f64 = 0.05;

impl Default for Options {
    fn default() -> Self {
        Self {
            threshold: Threshold::default(),
            error_rate: 0.05,
            run_noise: RunPrior::new(DEFAULT_RUN_NOISE).expect("a finite number above zero"),
            is_noise_of_results: false,
            directions: Directions::default(),
        }
    }
}

/// A comparison of one build with the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Of either build, in the builds' order.
    pub checks: Vec<MetricComparison>,
    /// The number of primary metrics of which aspects were tested.
    pub family: usize,
    /// The number of those that differ.
    pub discoveries: usize,
    pub confidence: f64,
}

impl Comparison {
    /// `None` if neither side has it.
    pub fn metric(&self, row: MetricIndex) -> Option<&MetricComparison> {
        // The checks are sorted by row.
        Some(&self.checks[self.checks.binary_search_by_key(&row, |check| check.row).ok()?])
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricComparison {
    pub row: MetricIndex,
    pub primary: bool,
    pub counts: ObservationCounts,
    /// Of the cell, on both sides.
    pub failures: [AttemptCounts; 2],
    /// Whether they fail as often; `None` if none failed, or a side does not record attempts.
    pub failure_rates: Option<FailureComparison>,
    /// Whether it is [`Verdict::Unconfirmed`], and would not be if nothing else were compared.
    pub significant_alone: bool,
    /// What was compared, beginning with the shift; empty if no ratio can be computed.
    pub aspects: Vec<AspectComparison>,
    /// The ratio of medians, which decides nothing; `None` if it cannot be computed.
    pub median_ratio: Option<QuantileRatio>,
    /// The p-value with the noise between runs, adjusted for the family; unadjusted for metrics that are not primary.
    /// It covers the aspects, not failures. `None` without aspects.
    pub p: Option<f64>,
    /// In percent.
    pub threshold: f64,
    /// Whether and how a noise model was used; `None` without models.
    pub noise: Option<NoiseModelUse>,
    /// Where the noise between runs is from, without a noise model; `None` if it cannot be computed.
    pub source: Option<NoiseSource>,
    /// How much runs of one build are assumed to differ, as a fraction.
    pub run_noise: f64,
    /// How much they differ by the noise model, or are assumed to.
    pub run_prior: RunPrior,
    pub verdict: Verdict,
    /// Whether it would be [`Verdict::Equivalent`] if samples did not depend on those before them, and is not.
    pub equal_if_independent: bool,
    /// The number of values required for a verdict, if there is none yet.
    pub required_samples: Option<RequiredSamples>,
}

impl MetricComparison {
    /// The aspect that the verdict is based on; the first one where several are, or none alone.
    pub fn decisive(&self) -> Option<&AspectComparison> {
        let with = |alone: Verdict, certainty: Certainty| {
            let all = self.aspects.iter().filter(move |aspect| aspect.alone == alone && aspect.certainty >= certainty);
            // An infinite ratio, from a median of zero, says less than a finite one.
            all.clone().find(|aspect| aspect.ratio.is_finite()).or_else(|| all.clone().next())
        };
        let decisive = match self.verdict {
            Verdict::Regressed | Verdict::Improved | Verdict::Differs => with(self.verdict, Certainty::Runs),
            // What may be worse matters more.
            Verdict::Unconfirmed => with(Verdict::Regressed, Certainty::Samples)
                .or_else(|| with(Verdict::Improved, Certainty::Samples))
                .or_else(|| with(Verdict::Differs, Certainty::Samples)),
            Verdict::Inconclusive => with(Verdict::Inconclusive, Certainty::None),
            _ => None,
        };
        decisive.or_else(|| self.aspects.first())
    }

    pub fn failures_rose(&self) -> bool {
        self.failure_rates.is_some_and(|failures| failures.rose)
    }

    /// Whether an aspect is worse, at least by the samples, or keeps a gain unconfirmed; never without a better
    /// direction.
    pub fn may_be_worse(&self) -> bool {
        let is_worse = |aspect: &AspectComparison| aspect.alone == Verdict::Regressed;
        let is_doubted = self.verdict == Verdict::Unconfirmed && self.aspects.iter().any(|aspect| aspect.seems_worse);
        self.failures_rose() || is_doubted || self.aspects.iter().any(is_worse)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct AspectComparison {
    pub aspect: Aspect,
    /// The ratio of the last build to the first; infinite if the first is zero. Where a sample is below zero, one plus
    /// the difference in multiples of [`Self::base`].
    pub ratio: f64,
    /// The magnitude of the first side's level, where a sample is below zero: no ratio describes such a difference.
    pub base: Option<f64>,
    /// The interval of the samples, as if runs of one build did not differ; `None` with too few samples.
    pub interval: Option<Interval>,
    /// The interval of the samples, widened by the dependence of samples on earlier ones: equality needs this interval.
    pub widened_interval: Option<Interval>,
    /// The interval with the noise between runs; `None` if it cannot be computed.
    pub runs_interval: Option<Interval>,
    /// The difference with the noise between runs: of logarithms, or of values in multiples of the larger side's level
    /// where a sample is not above zero.
    pub by_runs: Option<StudentRatio>,
    /// The p-values by the samples alone; `None` where a noise model decides on samples that are too few for a test.
    pub p_by_samples: Option<TestPValues>,
    /// The p-values with the noise between runs, never below those by the samples.
    pub p_by_runs: TestPValues,
    pub certainty: Certainty,
    /// The verdict on this aspect alone, as if runs of one build did not differ.
    pub alone: Verdict,
    /// Whether its estimate is worse by more than the threshold, however certain that is.
    pub seems_worse: bool,
    /// As [`MetricComparison::source`].
    pub source: Option<NoiseSource>,
}

impl AspectComparison {
    /// A ratio as a difference in the unit of the values, where one below zero leaves no ratio; `None` otherwise, or if
    /// not finite.
    pub fn value_difference(&self, ratio: f64) -> Option<f64> {
        Some((ratio - 1.0) * self.base?).filter(|difference| difference.is_finite())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailureComparison {
    pub difference: ProportionDifference,
    /// The p-values of Fisher's exact test.
    pub p_value: TestPValues,
    /// Whether they fail significantly more often on the judged side.
    pub rose: bool,
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
    let p99 = latency_tails(builds);
    let candidates: Vec<CandidateMetric<'_>> = rows
        .into_par_iter()
        .filter_map(|row| {
            let p99 = p99
                .get(&(builds.cell(row), worker(builds.id(row, Statistic::Mean).metric)))
                .copied()
                .filter(|_| has_operations(builds, row));
            CandidateMetric::new(builds, sides, row, &noise_models, p99, options)
        })
        .collect();
    let primary = || candidates.iter().filter(|candidate| candidate.primary);
    let of_aspects: Vec<[Option<f64>; 2]> = primary().filter_map(CandidateMetric::hypothesis_of_aspects).collect();
    // Those of a cell are the same for each of its metrics.
    let of_failures = primary().filter_map(|it| Some((builds.cell(it.row), it.hypothesis_of_failures()?)));
    let of_failures: Vec<[Option<f64>; 2]> = of_failures.collect::<BTreeMap<_, _>>().into_values().collect();
    let families = Families {
        aspects: Family::new(&of_aspects, options.error_rate),
        failures: Family::new(&of_failures, options.error_rate),
    };
    let checks = candidates.into_par_iter();
    let checks = checks.map(|candidate| candidate.judge(builds, sides, &families, options)).collect();
    let (discoveries, confidence) = (families.aspects.discoveries(), families.aspects.confidence());
    Some(Comparison { checks, family: families.aspects.size(), discoveries, confidence })
}

/// The metric of each cell, or of a worker of it, that has the 99 % quantile of its operations' latencies.
fn latency_tails(builds: &Builds) -> HashMap<(InternedCell, Option<&str>), MetricIndex> {
    let is_tail = |row: &MetricIndex| {
        let id = builds.id(*row, Statistic::Mean);
        id.class == Class::Latency && strip_worker(id.metric) == "p99"
    };
    let of = |row| (builds.cell(row), worker(builds.id(row, Statistic::Mean).metric));
    builds.rows().filter(is_tail).map(|row| (of(row), row)).collect()
}

fn worker(metric: &str) -> Option<&str> {
    metric.split_once('@').map(|(_, worker)| worker)
}

/// Whether a metric summarizes the operations whose latencies its cell has: a throughput, or a mean or median latency.
fn has_operations(builds: &Builds, row: MetricIndex) -> bool {
    let id = builds.id(row, Statistic::Mean);
    match id.class {
        Class::Throughput => true,
        Class::Latency => ["mean", "p50"].contains(&strip_worker(id.metric)),
        _ => false,
    }
}

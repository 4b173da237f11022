//! A metric before and after correction for multiple testing.

use wb_model::{Class, Direction};
use wb_stats::RunNoise;

use super::noise::{BoundNoiseModels, NoiseModelUse};
use super::observations::{self, ObservationCounts, ObservationKind};
use super::required_samples::{self, RequiredSamples};
use super::two_sample::TwoSampleTest;
use super::verdict::VerdictInput;
use super::{ENOUGH_SAMPLES, MetricComparison, Options, Verdict};
use crate::build::{Build, Builds, MeasuredValue, MetricIndex};
use crate::id::Statistic;

/// A metric that has been tested, but not yet corrected for multiple testing.
pub(super) struct CandidateMetric<'a> {
    row: MetricIndex,
    pub(super) primary: bool,
    units: ObservationCounts,
    values: [MeasuredValue; 2],
    noise: Option<&'a RunNoise>,
    noise_use: Option<NoiseModelUse>,
    test: Option<TwoSampleTest>,
    comparable: bool,
}

/// Result of the multiple-testing correction for one metric.
pub(super) struct FamilyResult {
    /// The adjusted p-value.
    pub(super) p: Option<f64>,
    /// The confidence level of the interval.
    pub(super) confidence: f64,
    /// The minimum number of values per side with which any metric of the family could reach significance in a rank
    /// test.
    pub(super) least: usize,
}

impl<'a> CandidateMetric<'a> {
    /// Tests a metric; `None` if neither side has it, and for checks, which do not measure performance.
    pub(super) fn new(
        builds: &Builds,
        sides: [&Build; 2],
        row: MetricIndex,
        models: &BoundNoiseModels<'a>,
        options: &Options,
    ) -> Option<Self> {
        let primary = sides[1].primary(row).or_else(|| sides[0].primary(row))?;
        if builds.id(row, Statistic::Mean).class == Class::Check {
            return None;
        }
        let runs = sides.map(|side| observations::runs(side, row));
        let units = ObservationCounts::of(sides, &runs);
        let (noise, mut noise_use) = models.of(builds, sides, row).unzip();
        let noise = noise.flatten();
        let applied = noise.filter(|_| matches!(noise_use, Some(NoiseModelUse::Applied { .. })));
        // Each metric has its own seed, so that its bootstrap is independent and reproducible.
        let seed = options.seed ^ (row.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let comparable = builds.is_comparable(sides, row);
        let tested = comparable
            .then(|| {
                TwoSampleTest::of(
                    &runs,
                    units.unit,
                    applied,
                    1.0 - options.error_rate,
                    units.is_bootstrapped.then_some(seed),
                )
            })
            .flatten();
        if comparable && applied.is_some() && !matches!(tested, Some(TwoSampleTest::Student(_))) {
            noise_use = Some(NoiseModelUse::Insufficient { why: "a compared value is not above zero".to_owned() });
        }
        let values = sides.map(|side| side.value(row, Statistic::Mean));
        Some(Self { row, primary, units, values, noise, noise_use, test: tested, comparable })
    }

    /// The unadjusted p-value; `None` if no ratio can be computed.
    pub(super) fn p(&self) -> Option<f64> {
        self.test.as_ref().map(TwoSampleTest::p)
    }

    /// Completes the comparison with the family's result.
    pub(super) fn judge(
        self,
        builds: &Builds,
        sides: [&Build; 2],
        family: FamilyResult,
        options: &Options,
    ) -> MetricComparison {
        let Self { row, primary, units, values, noise, noise_use, test, comparable } = self;
        let FamilyResult { p, confidence, least: min_values } = family;
        let uses_noise = matches!(test, Some(TwoSampleTest::Student(_)));
        let effect =
            test.and_then(|it| it.effect(|| sides.map(|side| observations::runs(side, row)), units.unit, confidence));
        let id = builds.id(row, Statistic::Mean);
        let threshold = options.threshold.of(noise);
        let judgement = VerdictInput {
            values,
            effect,
            differs: p.is_some_and(|p| p <= options.error_rate),
            direction: options.directions.of(id.class, id.metric),
            threshold: threshold / 100.0,
            trusted: uses_noise || units.unit == ObservationKind::Runs || options.trust_single_run,
        };
        let verdict = match judgement.verdict() {
            Verdict::Missing => Verdict::Missing,
            _ if !comparable => Verdict::Incomparable,
            verdict => verdict,
        };
        let needs = match verdict {
            // With a known spread of runs, any number of runs may be enough.
            Verdict::Inconclusive if uses_noise => {
                let runs = sides.map(|side| side.readings(row).count());
                required_samples::estimate(ObservationKind::Runs, runs[0].min(runs[1]), effect, threshold / 100.0, 1)
            }
            Verdict::Inconclusive => {
                // Below [`ENOUGH_SAMPLES`] samples statistics do not decide; runs have no such minimum.
                let min_values =
                    if units.unit == ObservationKind::Samples { min_values.max(ENOUGH_SAMPLES) } else { min_values };
                required_samples::estimate(
                    units.unit,
                    units.reference.min(units.judged),
                    effect,
                    threshold / 100.0,
                    min_values,
                )
            }
            // Without a better direction, more runs cannot decide which side is better.
            Verdict::Differs if judgement.direction != Direction::Neither => {
                Some(RequiredSamples { per_side: Some(min_values), unit: ObservationKind::Runs, is_minimum: true })
            }
            _ => None,
        };
        MetricComparison {
            row,
            primary,
            units,
            effect,
            p,
            threshold,
            noise: noise_use,
            verdict,
            required_samples: needs,
        }
    }
}

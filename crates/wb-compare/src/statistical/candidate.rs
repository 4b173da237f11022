//! A metric before and after the family is looked at.

use wb_model::{Class, Direction};
use wb_stats::RunNoise;

use super::noise::{BoundNoiseModels, NoiseUse};
use super::observations::{self, ObservationCounts, ObservationKind};
use super::required_samples::{self, RequiredSamples};
use super::two_sample::TwoSampleTest;
use super::verdict::VerdictInput;
use super::{ENOUGH_SAMPLES, MetricComparison, Options, Verdict};
use crate::build::{Build, Builds, MeasuredValue, MetricIndex};
use crate::id::Statistic;

/// A metric that is tested, and not judged yet.
pub(super) struct CandidateMetric<'a> {
    row: MetricIndex,
    pub(super) primary: bool,
    units: ObservationCounts,
    values: [MeasuredValue; 2],
    noise: Option<&'a RunNoise>,
    noise_use: Option<NoiseUse>,
    test: Option<TwoSampleTest>,
    comparable: bool,
}

/// What the family has to say of each of its metrics.
pub(super) struct FamilyResult {
    /// The probability, adjusted.
    pub(super) p: Option<f64>,
    /// The confidence of the interval.
    pub(super) confidence: f64,
    /// The fewest values a side with which any metric of the family could be told apart by ranks.
    pub(super) least: usize,
}

impl<'a> CandidateMetric<'a> {
    /// What both sides have of a metric; none where neither has any, and for checks, which are no measure of speed.
    pub(super) fn new(
        builds: &Builds,
        sides: [&Build; 2],
        row: MetricIndex,
        known: &BoundNoiseModels<'a>,
        options: &Options,
    ) -> Option<Self> {
        let primary = sides[1].primary(row).or_else(|| sides[0].primary(row))?;
        if builds.id(row, Statistic::Mean).class == Class::Check {
            return None;
        }
        let runs = sides.map(|side| observations::runs(side, row));
        let units = ObservationCounts::of(sides, &runs);
        let (noise, mut noise_use) = known.of(builds, sides, row).unzip();
        let noise = noise.flatten();
        let wanted = noise.filter(|_| matches!(noise_use, Some(NoiseUse::Applied { .. })));
        // A seed of the metric's own, so that each draws by itself and any one can be repeated.
        let seed = options.seed ^ (row.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let comparable = builds.is_comparable(sides, row);
        let tested = comparable
            .then(|| {
                TwoSampleTest::of(
                    &runs,
                    units.unit,
                    wanted,
                    1.0 - options.error_rate,
                    units.is_bootstrapped.then_some(seed),
                )
            })
            .flatten();
        if comparable && wanted.is_some() && !matches!(tested, Some(TwoSampleTest::Student(_))) {
            noise_use = Some(NoiseUse::Insufficient { why: "a value that is compared is not above zero".to_owned() });
        }
        let values = sides.map(|side| side.value(row, Statistic::Mean));
        Some(Self { row, primary, units, values, noise, noise_use, test: tested, comparable })
    }

    /// The probability of so large a difference where there is none; none where no ratio can be had.
    pub(super) fn p(&self) -> Option<f64> {
        self.test.as_ref().map(TwoSampleTest::p)
    }

    /// What follows.
    pub(super) fn judge(
        self,
        builds: &Builds,
        sides: [&Build; 2],
        together: FamilyResult,
        options: &Options,
    ) -> MetricComparison {
        let Self { row, primary, units, values, noise, noise_use, test: tested, comparable } = self;
        let FamilyResult { p, confidence, least } = together;
        let noisy = matches!(tested, Some(TwoSampleTest::Student(_)));
        let effect =
            tested.and_then(|it| it.effect(|| sides.map(|side| observations::runs(side, row)), units.unit, confidence));
        let id = builds.id(row, Statistic::Mean);
        let threshold = options.threshold.of(noise);
        let judgement = VerdictInput {
            values,
            effect,
            differs: p.is_some_and(|p| p <= options.error_rate),
            direction: options.directions.of(id.class, id.metric),
            threshold: threshold / 100.0,
            trusted: noisy || units.unit == ObservationKind::Runs || options.trust_single_run,
        };
        let verdict = match judgement.verdict() {
            Verdict::Missing => Verdict::Missing,
            _ if !comparable => Verdict::Incomparable,
            verdict => verdict,
        };
        let needs = match verdict {
            // How far runs lie apart is known: any number of them may do.
            Verdict::Inconclusive if noisy => {
                let runs = sides.map(|side| side.readings(row).count());
                required_samples::estimate(ObservationKind::Runs, runs[0].min(runs[1]), effect, threshold / 100.0, 1)
            }
            Verdict::Inconclusive => {
                // With fewer samples statistics are not asked, with runs always.
                let least = if units.unit == ObservationKind::Samples { least.max(ENOUGH_SAMPLES) } else { least };
                required_samples::estimate(units.unit, units.src.min(units.dst), effect, threshold / 100.0, least)
            }
            // Where neither way is better no number of runs says which is.
            Verdict::Differs if judgement.direction != Direction::Neither => {
                Some(RequiredSamples { per_side: Some(least), unit: ObservationKind::Runs, is_minimum: true })
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

//! The test of one aspect of two sides: by the samples alone, and with the noise between runs.
//!
//! The test comes first and the effect later, since the required confidence of an interval depends on how many metrics
//! differ.

use wb_model::Direction;
use wb_stats::{
    CONFIDENCE, FisherExact, HodgesLehmann, Interval, NoiseSource, Ratio, RunNoise, RunPrior, Samples, StudentRatio,
    VarianceEstimate, WeightedRun, holm, mean_ratio, quantile_ratio, tail_ratio,
};

use super::aspect::Aspect;
use super::candidate::CriticalP;
use super::observations::Observations;
use super::{AspectComparison, Certainty, ENOUGH_SAMPLES, Verdict};
use crate::build::AttemptCounts;

/// What is known of the noise between runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunVariation<'a> {
    /// An assumption.
    Prior(RunPrior),
    /// A noise model's estimate.
    Model(&'a RunNoise),
}

/// The tests of one aspect, without its values, since there may be millions.
struct AspectTest {
    aspect: Aspect,
    /// The quantile that is compared, of a tail.
    quantile: Option<f64>,
    /// The p-value as if runs of one build did not differ.
    p_by_samples: f64,
    /// The ratio with the noise between runs; `None` if a figure is not above zero.
    by_runs: Option<StudentRatio>,
    source: Option<NoiseSource>,
}

/// The effect of an aspect.
#[derive(Debug, Clone, Copy)]
struct AspectEffect {
    /// With the interval of the samples.
    ratio: Ratio,
    /// The interval with the noise between runs.
    runs_interval: Option<Interval>,
}

impl AspectTest {
    /// `None` if no ratio can be computed.
    fn of(aspect: Aspect, quantile: Option<f64>, sides: &Observations, variation: RunVariation<'_>) -> Option<Self> {
        let [a, b] = &sides.all;
        let degrees = (a.count() + b.count()) as f64 - 2.0;
        // The wider half counts: an interval with the noise between runs must not exclude what that of the samples includes.
        let of_interval = |ratio: &Ratio| {
            let interval = ratio.interval?;
            let factor = (ratio.estimate / interval.low).max(interval.high / ratio.estimate);
            let symmetric = Interval { low: 1.0 / factor, high: factor, ..interval };
            VarianceEstimate::from_interval(&symmetric, degrees)
        };
        let (p_by_samples, estimate, sampling) = match (aspect, quantile) {
            (Aspect::Mean, _) => {
                let ratio = mean_ratio(a, b)?;
                (ratio.p_value(), ratio.ratio(CONFIDENCE).estimate, Some(ratio.variance()))
            }
            (_, Some(quantile)) => {
                let ratio = tail_ratio(a, b, quantile, CONFIDENCE)?;
                (ratio.p_value, ratio.estimate, of_interval(&ratio))
            }
            (_, None) => {
                let sides = HodgesLehmann::new(a, b)?;
                let ratio = sides.ratio(sides.p_value(), CONFIDENCE);
                (ratio.p_value, ratio.estimate, of_interval(&ratio))
            }
        };
        // Too few samples for an interval have a ratio of means.
        let sampling = sampling.or_else(|| Some(mean_ratio(&positive(a)?, &positive(b)?)?.variance()));
        let sampling = sampling.unwrap_or(VarianceEstimate { variance: 0.0, degrees: 1.0 });
        let level = |run: &[f64]| {
            let samples = Samples::new(run).ok()?;
            let level = match (aspect, quantile) {
                (Aspect::Mean, _) => samples.mean(),
                (_, quantile) => samples.quantile(quantile.unwrap_or(0.5)),
            };
            (level > 0.0).then(|| WeightedRun { level: level.ln(), weight: samples.count() as f64 })
        };
        let levels = sides.runs.each_ref().map(|runs| runs.iter().map(|run| level(run)).collect::<Option<Vec<_>>>());
        let with_runs = match (levels, estimate > 0.0) {
            ([Some(a), Some(b)], true) => {
                // The slowest run alone determines the tail of all samples together, which varies more than an average.
                let log = if quantile.is_some() { average(&b) - average(&a) } else { estimate.ln() };
                with_runs(aspect, log, [&a, &b], sampling, variation, sides)
            }
            _ => None,
        };
        let (by_runs, source) = with_runs.unzip();
        Some(Self { aspect, quantile, p_by_samples, by_runs, source: source.flatten() })
    }

    /// The effect; `sides` are those that were tested.
    fn effect(&self, sides: &Observations, confidence: f64) -> Option<AspectEffect> {
        let [a, b] = &sides.all;
        let ratio = match (self.aspect, self.quantile) {
            (Aspect::Mean, _) => mean_ratio(a, b)?.ratio(confidence),
            (_, Some(quantile)) => {
                let at = |confidence| quantile_ratio(a, b, quantile, confidence);
                // Few samples have no interval at more than 95 %.
                let ratio = at(confidence).filter(|ratio| ratio.interval.is_some()).or_else(|| at(CONFIDENCE))?;
                Ratio { estimate: ratio.estimate, interval: ratio.interval, p_value: self.p_by_samples }
            }
            (_, None) => HodgesLehmann::new(a, b)?.ratio(self.p_by_samples, confidence),
        };
        // That of several runs is an average of theirs.
        let of_runs = self.by_runs.filter(|_| self.quantile.is_some() && sides.runs.iter().any(|runs| runs.len() > 1));
        let ratio = match of_runs {
            Some(by_runs) => Ratio { estimate: by_runs.log().exp(), ..ratio },
            None => ratio,
        };
        // Noise between runs excludes nothing that the samples include.
        let hull = |runs: Interval| match ratio.interval {
            Some(samples) => Interval { low: runs.low.min(samples.low), high: runs.high.max(samples.high), ..runs },
            None => runs,
        };
        let runs_interval = self.by_runs.and_then(|by_runs| by_runs.ratio(confidence).interval).map(hull);
        Some(AspectEffect { ratio, runs_interval })
    }
}

/// The ratio with the noise between runs.
fn with_runs(
    aspect: Aspect,
    log: f64,
    [a, b]: [&[WeightedRun]; 2],
    sampling: VarianceEstimate,
    variation: RunVariation<'_>,
    sides: &Observations,
) -> Option<(StudentRatio, Option<NoiseSource>)> {
    match variation {
        RunVariation::Model(noise) if aspect == Aspect::Shift => {
            Some((noise.ratio(&sides.runs[0], &sides.runs[1])?, None))
        }
        // A model knows how medians vary. Other aspects of the same samples are taken to vary as much.
        RunVariation::Model(noise) => {
            let prior = RunPrior::with_degrees(noise.stddev, noise.degrees)?;
            Some((prior.ratio(log, a, b, sampling)?.ratio, None))
        }
        RunVariation::Prior(prior) => {
            let with = prior.ratio(log, a, b, sampling)?;
            Some((with.ratio, Some(with.source)))
        }
    }
}

/// The weighted average of the levels of runs.
fn average(runs: &[WeightedRun]) -> f64 {
    let weights: f64 = runs.iter().map(|run| run.weight).sum();
    runs.iter().map(|run| run.level * run.weight / weights).sum()
}

/// A test of whether attempts fail as often on both sides.
struct FailureTest {
    p_value: f64,
    /// Whether the share of failed attempts is larger on the judged side.
    rose: bool,
}

impl FailureTest {
    /// `None` if nothing failed, or a side does not record attempts.
    fn of([reference, judged]: [AttemptCounts; 2]) -> Option<Self> {
        let [a, n, b, m] =
            [reference.failed, reference.attempts, judged.failed, judged.attempts].map(|count| count as usize);
        let p_value = FisherExact::new(a, n, b, m).filter(|_| n > 0 && m > 0 && a + b > 0)?.p_value;
        Some(Self { p_value, rose: b * n > a * m })
    }
}

/// The samples themselves if all are above zero.
fn positive(samples: &Samples) -> Option<Samples> {
    (samples.min() > 0.0).then(|| samples.clone())
}

/// The tests of a check's aspects, and their p-values; the last p-value is that of failures, if there are any.
pub(super) struct CheckTests {
    tests: Vec<AspectTest>,
    failures: Option<FailureTest>,
    /// By the samples alone, after Holm's correction within the check.
    by_samples: Vec<f64>,
    /// With the noise between runs, and at least that of the samples alone if there are enough: the noise between runs is
    /// the same for all aspects, so that the samples' p-values alone need the correction.
    by_runs: Vec<f64>,
}

impl CheckTests {
    /// The tests of the shift, the mean, and the tail, which is that of the operations if their latencies are known.
    pub(super) fn of(
        observed: Option<&Observations>,
        of_operations: Option<&Observations>,
        direction: Direction,
        variation: RunVariation<'_>,
        failures: [AttemptCounts; 2],
    ) -> Self {
        let mut tests = Vec::new();
        if let Some(observed) = observed {
            let enough = observed.counts().min_samples();
            let test = |aspect: Aspect| AspectTest::of(aspect, aspect.quantile(direction), observed, variation);
            // A mean of few samples is not about normal.
            let mean = (enough >= ENOUGH_SAMPLES).then(|| test(Aspect::Mean)).flatten();
            let p99 = of_operations.and_then(|operations| AspectTest::of(Aspect::P99, None, operations, variation));
            let tail = p99.or_else(|| Aspect::tail(enough, direction).and_then(test));
            tests.extend([test(Aspect::Shift), mean, tail].into_iter().flatten());
        }
        let failures = FailureTest::of(failures);
        let of_failures = failures.as_ref().map(|test| test.p_value);
        let by_samples = holm(&tests.iter().map(|test| test.p_by_samples).chain(of_failures).collect::<Vec<_>>());
        let runs_alone: Vec<f64> = tests.iter().map(|test| test.by_runs.map_or(1.0, |it| it.p_value())).collect();
        // Too few samples can never be significant by their ranks; then the runs alone have to be.
        let has_enough = observed.is_some_and(|observed| observed.counts().min_samples() >= ENOUGH_SAMPLES);
        let by_runs: Vec<f64> = match has_enough {
            true => runs_alone.iter().zip(&by_samples).map(|(runs, samples)| runs.max(*samples)).collect(),
            false => holm(&runs_alone),
        };
        let by_runs = by_runs.into_iter().chain(of_failures.and(by_samples.last().copied())).collect();
        Self { tests, failures, by_samples, by_runs }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether attempts fail more often on the judged side.
    pub(super) fn failures_rose(&self, critical: CriticalP) -> bool {
        let p = self.by_runs.last().filter(|_| self.failures.as_ref().is_some_and(|test| test.rose));
        p.is_some_and(|p| *p <= critical.by_runs)
    }

    /// Whether the noise between runs could be taken into account.
    pub(super) fn have_runs(&self) -> bool {
        self.tests.iter().any(|test| test.by_runs.is_some())
    }

    /// Whether the tail is that of the operations.
    pub(super) fn have_operations(&self) -> bool {
        self.tests.iter().any(|test| test.aspect == Aspect::P99)
    }

    /// Where the noise between runs is from.
    pub(super) fn source(&self) -> Option<NoiseSource> {
        self.tests.iter().filter_map(|test| test.source).max_by_key(|source| *source == NoiseSource::OwnRuns)
    }

    /// The check's p-value by the samples alone; `None` if no ratio can be computed.
    pub(super) fn p_by_samples(&self) -> Option<f64> {
        self.by_samples.iter().copied().min_by(f64::total_cmp)
    }

    /// The check's p-value with the noise between runs.
    pub(super) fn p_by_runs(&self) -> Option<f64> {
        self.by_runs.iter().copied().min_by(f64::total_cmp)
    }

    /// The comparison of each aspect; the observations are those that were tested.
    pub(super) fn compare(
        &self,
        observed: &Observations,
        of_operations: Option<&Observations>,
        critical: CriticalP,
        confidence: f64,
    ) -> Vec<AspectComparison> {
        let all = self.tests.iter().zip(&self.by_samples).zip(&self.by_runs);
        let compared = all.filter_map(|((test, by_samples), by_runs)| {
            let observed = if test.aspect == Aspect::P99 { of_operations? } else { observed };
            let effect = test.effect(observed, confidence)?;
            let certainty = match (*by_runs <= critical.by_runs, *by_samples <= critical.by_samples) {
                (true, _) => Certainty::Runs,
                (false, true) => Certainty::Samples,
                (false, false) => Certainty::None,
            };
            Some(AspectComparison {
                aspect: test.aspect,
                ratio: effect.ratio.estimate,
                interval: effect.ratio.interval,
                runs_interval: effect.runs_interval,
                p_values: [*by_samples, *by_runs],
                certainty,
                alone: Verdict::Inconclusive,
                source: test.source,
            })
        });
        compared.collect()
    }
}

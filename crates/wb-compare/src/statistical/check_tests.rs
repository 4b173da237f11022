//! The tests of a check: those of its aspects, and whether attempts fail more often, corrected within the check.

use wb_model::Direction;
use wb_stats::{FisherExact, NoiseSource, holm};

use super::aspect::Aspect;
use super::aspect_test::{AspectTest, RunVariation};
use super::candidate::CriticalP;
use super::observations::Observations;
use super::{AspectComparison, Certainty, ENOUGH_SAMPLES, Verdict};
use crate::build::AttemptCounts;

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
        // Both sides are of one run.
        if matches!(variation, RunVariation::SameRun) {
            return Self { tests, failures, by_runs: by_samples.clone(), by_samples };
        }
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
        let [widening, of_operations_widening] =
            [Some(observed), of_operations].map(|it| it.map(Observations::widening));
        let compared = all.filter_map(|((test, by_samples), by_runs)| {
            let (observed, widening) = match test.aspect {
                Aspect::P99 => (of_operations?, of_operations_widening?),
                _ => (observed, widening?),
            };
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
                widened_interval: effect.ratio.interval.map(|it| it.widened_ratio(effect.ratio.estimate, widening)),
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

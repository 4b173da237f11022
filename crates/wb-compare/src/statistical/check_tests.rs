//! The tests of a check: those of its aspects, and whether attempts fail more often, corrected within the check.
//!
//! In the family, a check counts with the p-values of those that would be reported: aspects whose ratio is beyond the
//! threshold, and failures that became more frequent. Others may be as certain, and make no room.

use wb_model::Direction;
use wb_stats::{FisherExact, NoiseSource, ProportionDifference, holm};

use super::aspect::Aspect;
use super::aspect_test::{AspectTest, RunVariation};
use super::family::CheckFamily;
use super::observations::Observations;
use super::threshold::NegligibleRatios;
use super::{AspectComparison, Certainty, ENOUGH_SAMPLES, FailureComparison, Verdict};
use crate::build::AttemptCounts;

/// The tests of a check's aspects, and their p-values; the last p-value is that of failures, if there are any.
pub(super) struct CheckTests {
    tests: Vec<AspectTest>,
    failures: Option<FailureTest>,
    /// For each, whether it would be reported if it is significant.
    is_relevant: Vec<bool>,
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
        negligible: NegligibleRatios,
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
        let is_beyond = tests.iter().map(|test| !negligible.contains(test.estimate));
        let is_relevant = is_beyond.chain(failures.as_ref().map(|test| test.rose)).collect();
        let by_samples = holm(&tests.iter().map(|test| test.p_by_samples).chain(of_failures).collect::<Vec<_>>());
        // Both sides are of one run.
        if matches!(variation, RunVariation::SameRun) {
            return Self { tests, failures, is_relevant, by_runs: by_samples.clone(), by_samples };
        }
        let runs_alone: Vec<f64> = tests.iter().map(|test| test.p_by_runs).collect();
        // Too few samples can never be significant by their ranks; then the runs alone have to be.
        let has_enough = observed.is_some_and(|observed| observed.counts().min_samples() >= ENOUGH_SAMPLES);
        let by_runs: Vec<f64> = match has_enough {
            true => runs_alone.iter().zip(&by_samples).map(|(runs, samples)| runs.max(*samples)).collect(),
            false => holm(&runs_alone),
        };
        let by_runs = by_runs.into_iter().chain(of_failures.and(by_samples.last().copied())).collect();
        Self { tests, failures, is_relevant, by_samples, by_runs }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tests.is_empty()
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

    /// The check's p-value with the noise between runs; `None` if nothing was tested.
    pub(super) fn p_by_runs(&self) -> Option<f64> {
        self.by_runs.iter().copied().min_by(f64::total_cmp)
    }

    /// The p-values by the samples alone and with the noise between runs that count in the family; `None` if nothing
    /// would be reported.
    pub(super) fn relevant_p(&self) -> [Option<f64>; 2] {
        [&self.by_samples, &self.by_runs].map(|all| {
            let relevant = all.iter().zip(&self.is_relevant).filter(|(_, is_relevant)| **is_relevant);
            relevant.map(|(p, _)| *p).min_by(f64::total_cmp)
        })
    }

    /// The comparison of failed attempts.
    pub(super) fn compare_failures(&self, family: &CheckFamily<'_>) -> Option<FailureComparison> {
        let test = self.failures.as_ref()?;
        let p = family.adjust([test.p_value; 2], [*self.by_samples.last()?, *self.by_runs.last()?]);
        let [reference, judged] = test.counts;
        Some(FailureComparison {
            difference: ProportionDifference::new(reference, judged, family.confidence())?,
            rose: test.rose && family.is_significant(&p[1]),
            p_value: p[1],
        })
    }

    /// The comparison of each aspect; the observations are those that were tested.
    pub(super) fn compare(
        &self,
        observed: &Observations,
        of_operations: Option<&Observations>,
        family: &CheckFamily<'_>,
    ) -> Vec<AspectComparison> {
        let all = self.tests.iter().zip(&self.by_samples).zip(&self.by_runs);
        let [widening, of_operations_widening] =
            [Some(observed), of_operations].map(|it| it.map(Observations::widening));
        let compared = all.filter_map(|((test, by_samples), by_runs)| {
            let (observed, widening) = match test.aspect {
                Aspect::P99 => (of_operations?, of_operations_widening?),
                _ => (observed, widening?),
            };
            let effect = test.effect(observed, family.confidence())?;
            let p = family.adjust([test.p_by_samples, test.p_by_runs], [*by_samples, *by_runs]);
            let certainty = match p.each_ref().map(|p| family.is_significant(p)) {
                [_, true] => Certainty::Runs,
                [true, false] => Certainty::Samples,
                [false, false] => Certainty::None,
            };
            Some(AspectComparison {
                aspect: test.aspect,
                ratio: effect.ratio.estimate,
                interval: effect.ratio.interval,
                widened_interval: effect.ratio.interval.map(|it| it.widened_ratio(effect.ratio.estimate, widening)),
                runs_interval: effect.runs_interval,
                p_values: p,
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
    /// The failed attempts and all, on each side.
    counts: [[usize; 2]; 2],
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
        Some(Self { counts: [[a, n], [b, m]], p_value, rose: b * n > a * m })
    }
}

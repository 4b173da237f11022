//! The tests of a check: the tests of its aspects, corrected within the check, and the test whether attempts fail more
//! often, which is a hypothesis of its own.
//!
//! In their families, both count only with the p-values that would be reported: of aspects whose ratio is beyond the
//! threshold, and of failures that became more frequent. Other differences may be as certain, but make no room for
//! discoveries.

use wb_model::Direction;
use wb_results::comparison::{Aspect, AttemptCounts, Certainty, NegligibleRatios};
use wb_stats::{Interval, NoiseSource, ProportionDifference, holm};

use super::aspect_test::{AspectTest, RunVariation, contradicts};
use super::family::CheckFamily;
use super::observations::Observations;
use super::tail::tail_aspect;
use super::{AspectComparison, ENOUGH_SAMPLES, FailureComparison, Verdict};
use crate::failure_test::FailureTest;

/// The tests of a check's aspects with their p-values, and that of its failures.
pub(super) struct CheckTests {
    tests: Vec<AspectTest>,
    failures: Option<FailureTest>,
    /// For each aspect, whether it would be reported if it is significant.
    is_relevant: Vec<bool>,
    /// P-values from the samples alone, after Holm's correction within the check.
    by_samples: Vec<f64>,
    /// P-values with the noise between runs, each at least as large as from the samples alone. That noise is the same
    /// for all aspects, so only the p-values from samples need the correction.
    by_runs: Vec<f64>,
}

impl CheckTests {
    /// The tests of the shift, the mean, and the tail, which is that of the operations if their latencies are known.
    pub(super) fn new(
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
            // A mean of few samples is not about normal.
            let mean = (enough >= ENOUGH_SAMPLES).then_some(Aspect::Mean);
            let tail = of_operations.map(|_| Aspect::P99).or_else(|| tail_aspect(enough, direction));
            let aspects = || [Some(Aspect::Shift), mean, tail].into_iter().flatten();
            let sides = |aspect| of_operations.filter(|_| aspect == Aspect::P99).unwrap_or(observed);
            // One decision for all aspects: runs that differ more than assumed in one may do so in the others.
            let source = match variation {
                RunVariation::Prior(_) if observed.are_single_samples() => NoiseSource::SingleSamples,
                RunVariation::Prior(prior) | RunVariation::Results(prior)
                    if aspects().any(|aspect| contradicts(aspect, aspect.quantile(), sides(aspect), prior)) =>
                {
                    NoiseSource::OwnRuns
                }
                _ => NoiseSource::Prior,
            };
            let test = |aspect: Aspect| AspectTest::new(aspect, aspect.quantile(), sides(aspect), variation, source);
            tests.extend(aspects().filter_map(test));
        }
        let failures = FailureTest::new(failures);
        let is_relevant = tests.iter().map(|test| !negligible.contains(test.estimate)).collect();
        // Without a test of the samples, that of the runs is theirs, too.
        let of_samples = |test: &AspectTest| test.p_by_samples.unwrap_or(test.p_by_runs);
        let by_samples = holm(&tests.iter().map(of_samples).collect::<Vec<_>>());
        // Both sides are of one run.
        if matches!(variation, RunVariation::SameRun) {
            return Self { tests, failures, is_relevant, by_runs: by_samples.clone(), by_samples };
        }
        let by_runs = tests.iter().zip(&by_samples).map(|(test, samples)| test.p_by_runs.max(*samples)).collect();
        Self { tests, failures, is_relevant, by_samples, by_runs }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    pub(super) fn have_runs(&self) -> bool {
        self.tests.iter().any(|test| test.by_runs.is_some())
    }

    /// Whether the tail is the tail of the operations, not of the samples.
    pub(super) fn have_operations(&self) -> bool {
        self.tests.iter().any(|test| test.aspect == Aspect::P99)
    }

    /// Where the noise between runs is from, without a noise model.
    pub(super) fn source(&self) -> Option<NoiseSource> {
        self.tests.iter().find_map(|test| test.source)
    }

    /// The check's p-value with the noise between runs; `None` if nothing was tested.
    pub(super) fn p_by_runs(&self) -> Option<f64> {
        self.by_runs.iter().copied().min_by(f64::total_cmp)
    }

    /// The p-values that count in the family, by the samples alone and with the noise between runs; `None` if nothing
    /// would be reported.
    pub(super) fn relevant_p(&self) -> [Option<f64>; 2] {
        [&self.by_samples, &self.by_runs].map(|all| {
            let relevant = all.iter().zip(&self.is_relevant).filter(|(_, is_relevant)| **is_relevant);
            relevant.map(|(p, _)| *p).min_by(f64::total_cmp)
        })
    }

    /// As [`Self::relevant_p`] of failed attempts, which are the same by the samples and by the runs; `None` if none failed.
    pub(super) fn relevant_p_of_failures(&self) -> Option<[Option<f64>; 2]> {
        self.failures.as_ref().map(|test| [Some(test.p_value).filter(|_| test.rose); 2])
    }

    pub(super) fn compare_failures(&self, family: &CheckFamily<'_>) -> Option<FailureComparison> {
        let test = self.failures.as_ref()?;
        let p = family.adjust([test.p_value; 2], [test.p_value; 2]);
        let [reference, judged] = test.counts;
        Some(FailureComparison {
            difference: ProportionDifference::new(reference, judged, family.confidence())?,
            rose: test.rose && family.is_significant(&p[1]),
            p_value: p[1],
        })
    }

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
            let of_samples = test.p_by_samples.unwrap_or(test.p_by_runs);
            let [of_samples, p_by_runs] =
                family.adjust([of_samples, test.p_by_runs.max(of_samples)], [*by_samples, *by_runs]);
            // The ranks of a tail can differ where its interval does not show by how much.
            let interval = effect.ratio.interval.or(effect.runs_interval.filter(|_| test.is_tail()));
            let includes_equality = interval.is_some_and(|interval| interval.low < 1.0 && interval.high > 1.0);
            let certainty = match [of_samples, p_by_runs].map(|p| family.is_significant(&p)) {
                _ if includes_equality => Certainty::None,
                [_, true] => Certainty::Runs,
                [true, false] => Certainty::Samples,
                [false, false] => Certainty::None,
            };
            // From zero, all that is known of a ratio is that it is infinite.
            let finite = |interval: &Interval| interval.low.is_finite() && interval.high.is_finite();
            let interval = effect.ratio.interval.filter(finite);
            Some(AspectComparison {
                aspect: test.aspect,
                ratio: effect.ratio.estimate,
                base: observed.base(test.aspect),
                interval,
                widened_interval: interval.map(|it| it.widened_ratio(effect.ratio.estimate, widening)),
                runs_interval: effect.runs_interval.filter(finite),
                by_runs: test.by_runs,
                p_by_samples: test.p_by_samples.map(|_| of_samples),
                p_by_runs,
                certainty,
                alone: Verdict::Inconclusive,
                seems_worse: false,
                source: test.source,
            })
        });
        compared.collect()
    }
}

#[cfg(test)]
mod tests {
    use wb_stats::{RunPrior, Samples};

    use super::*;

    fn observed(sides: [Vec<f64>; 2]) -> Observations {
        let all = sides.each_ref().map(|side| Samples::new(side).unwrap());
        Observations { runs: sides.map(|side| vec![side]), all, paired: false }
    }

    fn tests(observed: &Observations, failures: [AttemptCounts; 2]) -> CheckTests {
        let variation = RunVariation::Prior(RunPrior::new(0.05).unwrap());
        CheckTests::new(Some(observed), None, Direction::Lower, variation, failures, NegligibleRatios::new(5.0))
    }

    /// SciPy: `fisher_exact([[0, 20], [6, 14]])` is 0.0202.
    #[test]
    fn failures_are_a_hypothesis_beside_the_aspects() {
        let side: Vec<f64> = (0..14).map(|i| 1.0 + 0.001 * f64::from(i)).collect();
        let equal = observed([side.clone(), side]);
        let [none, some] = [0, 6].map(|failed| AttemptCounts { failed, attempts: 20 });
        let family = CheckFamily::alone(0.05);
        let rose = tests(&equal, [none, some]);
        assert_eq!(rose.tests.len(), 3);
        let failures = rose.compare_failures(&family).unwrap();
        assert!(failures.rose && (failures.p_value.in_family - 0.0202).abs() < 1e-4, "{failures:?}");
        let fell = tests(&equal, [some, none]);
        assert!(!fell.compare_failures(&family).unwrap().rose);
        assert_eq!(fell.relevant_p_of_failures(), Some([None, None]));
        assert_eq!(fell.p_by_runs(), tests(&equal, [none, none]).p_by_runs());
    }

    /// Both sides have the same median, so that only the spread differs.
    #[test]
    fn an_aspect_whose_interval_includes_equality_does_not_differ() {
        let side = |spread: f64| (0..20).map(|i| 1.0 + spread * (f64::from(i) - 9.5) / 9.5).collect::<Vec<_>>();
        for spread in [0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3] {
            let sides = observed([side(0.01), side(spread)]);
            let tests = tests(&sides, Default::default());
            for aspect in tests.compare(&sides, None, &CheckFamily::alone(0.05)) {
                let interval = aspect.interval.unwrap();
                let includes_equality = interval.low < 1.0 && interval.high > 1.0;
                assert!(!includes_equality || aspect.certainty == Certainty::None, "{spread}: {aspect:#?}");
            }
        }
    }

    /// Each run has ten samples within 2 % of its level; t with 4 degrees of freedom of the levels alone gives p = 0.048.
    #[test]
    fn runs_that_differ_more_than_assumed_count_alone_in_all_aspects() {
        let run = |level: f64| (0..10).map(|i| level * (1.0 + 0.004 * (f64::from(i) - 4.5))).collect::<Vec<_>>();
        let runs = [[1.0, 1.1, 0.92], [1.3, 1.12, 1.38]].map(|levels| levels.map(run).to_vec());
        let all = runs.each_ref().map(|side| Samples::new(&side.concat()).unwrap());
        let tests = tests(&Observations { runs, all, paired: false }, Default::default());
        assert_eq!(tests.source(), Some(NoiseSource::OwnRuns));
        for test in &tests.tests {
            assert_eq!(test.source, Some(NoiseSource::OwnRuns), "{}", test.aspect);
            assert!(test.p_by_runs > 0.04, "{}: {}", test.aspect, test.p_by_runs);
        }
    }
}

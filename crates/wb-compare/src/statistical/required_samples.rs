//! The number of samples or runs that a comparison without a verdict requires.

use wb_results::comparison::{Certainty, ObservationCounts, ObservationKind, RequiredSamples};
use wb_stats::{NoiseSource, RunPrior, VarianceEstimate, WeightedRun};

use super::{AspectComparison, ENOUGH_SAMPLES};

/// Beyond this, more runs are not a practical answer.
const MAX_RUNS: usize = 100;

/// The minimum number of samples, if a side has fewer. How many more would decide cannot be told from the same
/// samples: estimates from samples of one population differ by orders of magnitude.
pub(super) fn required_samples(counts: ObservationCounts) -> Option<RequiredSamples> {
    (counts.min_samples() < ENOUGH_SAMPLES && !counts.has_several_runs()).then_some(RequiredSamples {
        per_side: Some(ENOUGH_SAMPLES),
        unit: ObservationKind::Samples,
        is_minimum: true,
    })
}

/// The number of runs per side that would confirm the clearest difference, if it stays as it is, and the runs vary as
/// assumed: by a standard deviation with its degrees of freedom. `None` if that is unknown.
pub(super) fn required_runs(
    aspects: &[AspectComparison],
    (stddev, degrees): (f64, f64),
    critical: f64,
    counts: ObservationCounts,
) -> Option<RequiredSamples> {
    let differing = aspects.iter().filter(|aspect| aspect.certainty == Certainty::Samples);
    let with_runs = differing.filter_map(|aspect| Some((aspect, aspect.by_runs?)));
    let (clearest, by_runs) = with_runs.max_by(|one, other| one.1.log().abs().total_cmp(&other.1.log().abs()))?;
    let size = by_runs.log().abs();
    let now = counts.runs[0].min(counts.runs[1]);
    let per_side = match clearest.source {
        Some(NoiseSource::OwnRuns | NoiseSource::SingleSamples) => {
            // The width of the interval decreases with the square root of the number of runs.
            let half = by_runs.half_width(clearest.runs_interval?.confidence);
            let required = (now as f64 * (half / size).powi(2)).ceil();
            (required <= MAX_RUNS as f64).then_some((required as usize).max(now + 1))
        }
        Some(NoiseSource::Prior) | None => {
            let prior = RunPrior::with_degrees(stddev, degrees)?;
            let confirms = |runs: &usize| {
                // Their variance is the assumed one, whichever of them differ.
                let mut side = vec![WeightedRun { level: 0.0, weight: 1.0 }; *runs];
                side[0].level = stddev * (*runs as f64).sqrt();
                let none = VarianceEstimate { variance: 0.0, degrees: 1.0 };
                let with = prior.ratio(size, &side, &side, none, NoiseSource::Prior);
                with.is_some_and(|with| with.p_value() <= critical)
            };
            (now + 1..=MAX_RUNS).find(confirms)
        }
    };
    Some(RequiredSamples { per_side, unit: ObservationKind::Runs, is_minimum: false })
}

#[cfg(test)]
mod tests {
    use wb_results::comparison::{Aspect, TestPValues};
    use wb_stats::StudentRatio;

    use super::super::Verdict;
    use super::*;

    fn single_runs(ratio: f64) -> StudentRatio {
        let run = |level: f64| [WeightedRun { level, weight: 1.0 }];
        let none = VarianceEstimate { variance: 0.0, degrees: 1.0 };
        RunPrior::new(0.05).unwrap().ratio(ratio.ln(), &run(0.0), &run(ratio.ln()), none, NoiseSource::Prior).unwrap()
    }

    fn runs(ratio: f64) -> Option<usize> {
        let p = |p| TestPValues { alone: p, in_check: p, in_family: p };
        let aspect = AspectComparison {
            aspect: Aspect::Shift,
            ratio,
            base: None,
            interval: None,
            widened_interval: None,
            runs_interval: None,
            by_runs: Some(single_runs(ratio)),
            p_by_samples: Some(p(0.001)),
            p_by_runs: p(0.2),
            certainty: Certainty::Samples,
            alone: Verdict::Regressed,
            seems_worse: false,
            source: None,
        };
        let counts = ObservationCounts { samples: [10, 10], runs: [1, 1], paired: false };
        required_runs(&[aspect], (0.05, 30.0), 0.05, counts).unwrap().per_side
    }

    /// Two runs that differ by 8 % are 0.077 apart on logarithms; with 4 runs a side the standard error is 0.0337 and t
    /// at 97.5 % about 2.03.
    #[test]
    fn a_smaller_difference_requires_more_runs() {
        assert_eq!(runs(1.08), Some(4));
        assert_eq!(runs(1.0 / 1.08), Some(4));
        assert!(runs(1.055) > Some(6));
        assert_eq!(runs(1.0001), None);
    }

    #[test]
    fn few_samples_of_single_runs_have_a_minimum() {
        let counts = |samples, runs| ObservationCounts { samples: [samples; 2], runs: [runs; 2], paired: false };
        assert_eq!(required_samples(counts(5, 1)).and_then(|it| it.per_side), Some(6));
        assert_eq!(required_samples(counts(5, 3)), None);
        assert_eq!(required_samples(counts(6, 1)), None);
    }
}

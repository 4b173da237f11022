//! The comparison of one metric alone, given its samples: what the simulations of `docs/statistics.md` measure.

use wb_model::Direction;
use wb_results::comparison::{AttemptCounts, NegligibleRatios};
use wb_stats::Samples;

use super::aspect_test::RunVariation;
use super::check_tests::CheckTests;
use super::family::CheckFamily;
use super::observations::Observations;
use super::verdict::VerdictInput;
use super::{AspectComparison, Options, Verdict};
use crate::build::MeasuredValue;

/// The comparison of one metric alone.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleComparison {
    pub verdict: Verdict,
    /// As [`super::MetricComparison::equal_if_independent`].
    pub equal_if_independent: bool,
    /// Begins with the shift.
    pub aspects: Vec<AspectComparison>,
}

/// The verdict on one metric from the samples of its runs, and its basis; `None` if a side has no samples.
pub fn compare_samples(
    [reference, judged]: [Vec<Vec<f64>>; 2],
    direction: Direction,
    options: &Options,
) -> Option<SampleComparison> {
    let all = [&reference, &judged].map(|runs| Samples::new(&runs.concat()).ok());
    let [Some(of_reference), Some(of_judged)] = all else { return None };
    let values = [&of_reference, &of_judged].map(|samples| MeasuredValue::from(samples.mean()));
    let observed = Observations { runs: [reference, judged], all: [of_reference, of_judged], paired: false };
    compare_observed(&observed, RunVariation::Prior(options.run_noise), values, direction, options)
}

/// The verdict on one metric from pairs of samples (of the same round of one run); `None` without pairs.
pub fn compare_pairs(sides: [Vec<f64>; 2], direction: Direction, options: &Options) -> Option<SampleComparison> {
    let all = sides.each_ref().map(|side| Samples::new(side).ok());
    let [Some(of_reference), Some(of_judged)] = all else { return None };
    let values = [&of_reference, &of_judged].map(|samples| MeasuredValue::from(samples.mean()));
    let observed = Observations { runs: sides.map(|side| vec![side]), all: [of_reference, of_judged], paired: true };
    compare_observed(&observed, RunVariation::SameRun, values, direction, options)
}

fn compare_observed(
    observed: &Observations,
    variation: RunVariation<'_>,
    values: [MeasuredValue; 2],
    direction: Direction,
    options: &Options,
) -> Option<SampleComparison> {
    let negligible = NegligibleRatios::new(options.threshold.of(None, None, None));
    let no_failures = [AttemptCounts::default(); 2];
    let tests = CheckTests::new(Some(observed), None, direction, variation, no_failures, negligible);
    let family = CheckFamily::alone(options.error_rate);
    let mut aspects = tests.compare(observed, None, &family);
    let input = VerdictInput::new(values, &mut aspects, direction, negligible, false);
    Some(SampleComparison { verdict: input.verdict(), equal_if_independent: input.equal_if_independent(), aspects })
}

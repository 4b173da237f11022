//! The comparison of one metric alone, given its samples: what the simulations of `docs/statistics.md` measure.

use wb_model::Direction;
use wb_stats::Samples;

use super::aspect_test::RunVariation;
use super::candidate::CriticalP;
use super::check_tests::CheckTests;
use super::observations::Observations;
use super::verdict::VerdictInput;
use super::{AspectComparison, Options, Verdict};
use crate::build::{AttemptCounts, MeasuredValue};

/// The verdict on one metric whose runs have these samples, and what it is based on; `None` if a side has none.
pub fn compare_samples(
    [reference, judged]: [Vec<Vec<f64>>; 2],
    direction: Direction,
    options: &Options,
) -> Option<(Verdict, Vec<AspectComparison>)> {
    let all = [&reference, &judged].map(|runs| Samples::new(&runs.concat()).ok());
    let [Some(of_reference), Some(of_judged)] = all else { return None };
    let values = [&of_reference, &of_judged].map(|samples| MeasuredValue::from(samples.mean()));
    let observed = Observations { runs: [reference, judged], all: [of_reference, of_judged] };
    let tests = CheckTests::of(
        Some(&observed),
        None,
        direction,
        RunVariation::Prior(options.run_noise),
        [AttemptCounts::default(); 2],
    );
    let critical = CriticalP { by_samples: options.error_rate, by_runs: options.error_rate };
    let mut aspects = tests.compare(&observed, None, critical, 1.0 - options.error_rate);
    let threshold = options.threshold.of(None, None);
    let verdict = VerdictInput::of(values, &mut aspects, direction, threshold, false).verdict();
    Some((verdict, aspects))
}

//! Tests of two sides of the same system, and the effect each would have detected.

use wb_model::Direction;
use wb_stats::{GroupSequentialTest, HodgesLehmann, Interval, Samples};

use super::{Design, Options};
use crate::statistical::Verdict;
use crate::statistical::verdict::judge;

/// The statistical power: the share of comparisons in which a difference has to be detected.
const POWER: f64 = 0.8;

/// The result of testing two sides.
pub(super) struct PairTest {
    estimate: f64,
    interval: Option<Interval>,
    /// Whether the difference is significant.
    pub(super) differs: bool,
}

/// Tests two sides assigned by a design; `None` if their values are invalid.
pub(super) fn test_pair(
    design: Design,
    [a, b]: &[Vec<f64>; 2],
    sequential: &GroupSequentialTest,
    options: &Options,
) -> Option<PairTest> {
    if design == Design::Interleaved {
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.ln() - a.ln()).collect();
        let result = sequential.analyze(&logs)?;
        let differs = result.interval.is_some_and(|interval| !interval.contains(1.0));
        return Some(PairTest { estimate: result.estimate, interval: result.interval, differs });
    }
    let [a, b] = [Samples::new(a).ok()?, Samples::new(b).ok()?];
    let sides = HodgesLehmann::new(&a, &b)?;
    let ratio = sides.ratio(sides.p_value(), 1.0 - options.error_rate);
    Some(PairTest { estimate: ratio.estimate, interval: ratio.interval, differs: ratio.p_value <= options.error_rate })
}

impl PairTest {
    /// Whether one side would be reported as better.
    pub(super) fn has_verdict(&self, threshold: f64) -> bool {
        let verdict = judge(self.estimate, self.interval, self.differs, Direction::Higher, threshold);
        matches!(verdict, Verdict::Improved | Verdict::Regressed)
    }

    /// The factor by which the second side would have to be larger to be reported, and that of the first; `None` if no
    /// factor is enough.
    fn detectable_factors(&self, threshold: f64) -> Option<[f64; 2]> {
        let interval = self.interval?;
        let beyond = 1.0 + threshold;
        Some([(1.0 / interval.low).max(beyond / self.estimate), interval.high.max(self.estimate * beyond)])
    }
}

/// The smallest difference, in percent, that would have been detected with the required power; `None` if some
/// comparisons have no interval, or there are none.
pub(super) fn detectable_percent(tests: &[PairTest], threshold: f64) -> Option<f64> {
    let factors: Option<Vec<[f64; 2]>> = tests.iter().map(|test| test.detectable_factors(threshold)).collect();
    let mut factors = factors?.concat();
    factors.sort_unstable_by(f64::total_cmp);
    let required = (factors.len() as f64 * POWER).ceil() as usize;
    Some((factors.get(required.checked_sub(1)?)? - 1.0) * 100.0)
}

//! Two sides that do not differ, judged, and by how much they would have had to.

use wb_model::Direction;
use wb_stats::{GroupSequentialTest, HodgesLehmann, Interval, Samples};

use super::{Design, Options};
use crate::statistical::Verdict;
use crate::statistical::verdict::judge;

/// In so many comparisons a difference has to be caught.
const POWER: f64 = 0.8;

/// How two sides stand to each other.
pub(super) struct PairTest {
    estimate: f64,
    interval: Option<Interval>,
    /// Whether chance is ruled out.
    pub(super) differs: bool,
}

/// Of two sides that an order dealt out; none where they are no samples.
pub(super) fn test_pair(
    order: Design,
    [a, b]: &[Vec<f64>; 2],
    looks: &GroupSequentialTest,
    options: &Options,
) -> Option<PairTest> {
    if order == Design::Interleaved {
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.ln() - a.ln()).collect();
        let looked = looks.analyze(&logs)?;
        let differs = looked.interval.is_some_and(|interval| !interval.contains(1.0));
        return Some(PairTest { estimate: looked.estimate, interval: looked.interval, differs });
    }
    let [a, b] = [Samples::new(a).ok()?, Samples::new(b).ok()?];
    let sides = HodgesLehmann::new(&a, &b)?;
    let ratio = sides.ratio(sides.p_value(), 1.0 - options.error_rate);
    Some(PairTest { estimate: ratio.estimate, interval: ratio.interval, differs: ratio.p_value <= options.error_rate })
}

impl PairTest {
    /// Whether one side is called better.
    pub(super) fn has_verdict(&self, threshold: f64) -> bool {
        let verdict = judge(self.estimate, self.interval, self.differs, Direction::Higher, threshold);
        matches!(verdict, Verdict::Improved | Verdict::Regressed)
    }

    /// By which factor the second side would have to be larger to be told so, and by which the first; none where no
    /// factor is enough.
    fn detectable_factors(&self, threshold: f64) -> Option<[f64; 2]> {
        let interval = self.interval?;
        let beyond = 1.0 + threshold;
        Some([(1.0 / interval.low).max(beyond / self.estimate), interval.high.max(self.estimate * beyond)])
    }
}

/// The smallest difference, in percent, that would have been told in so many of the comparisons as it takes; none where
/// some have no interval, or there are none.
pub(super) fn detectable_percent(found: &[PairTest], threshold: f64) -> Option<f64> {
    let needed: Option<Vec<[f64; 2]>> = found.iter().map(|found| found.detectable_factors(threshold)).collect();
    let mut factors = needed?.concat();
    factors.sort_unstable_by(f64::total_cmp);
    let enough = (factors.len() as f64 * POWER).ceil() as usize;
    Some((factors.get(enough.checked_sub(1)?)? - 1.0) * 100.0)
}

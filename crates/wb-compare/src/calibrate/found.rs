//! Two sides that do not differ, judged, and by how much they would have had to.

use wb_model::Direction;
use wb_stats::{Interval, Looks, Samples, TwoSides};

use super::{Options, Order};
use crate::statistical::Verdict;
use crate::statistical::verdict::judged;

/// In so many comparisons a difference has to be caught.
const POWER: f64 = 0.8;

/// How two sides stand to each other.
pub(super) struct Found {
    estimate: f64,
    interval: Option<Interval>,
    /// Whether chance is ruled out.
    pub(super) differs: bool,
}

/// Of two sides that an order dealt out; none where they are no samples.
pub(super) fn found(order: Order, [a, b]: &[Vec<f64>; 2], looks: &Looks, options: &Options) -> Option<Found> {
    if order == Order::Interleaved {
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.ln() - a.ln()).collect();
        let looked = looks.look(&logs)?;
        let differs = looked.interval.is_some_and(|interval| !interval.contains(1.0));
        return Some(Found { estimate: looked.estimate, interval: looked.interval, differs });
    }
    let [a, b] = [Samples::new(a).ok()?, Samples::new(b).ok()?];
    let sides = TwoSides::new(&a, &b)?;
    let ratio = sides.ratio(sides.p(), 1.0 - options.rate);
    Some(Found { estimate: ratio.estimate, interval: ratio.interval, differs: ratio.p <= options.rate })
}

impl Found {
    /// Whether one side is called better.
    pub(super) fn is_told(&self, threshold: f64) -> bool {
        let verdict = judged(self.estimate, self.interval, self.differs, Direction::Higher, threshold);
        matches!(verdict, Verdict::Improved | Verdict::Regressed)
    }

    /// By which factor the second side would have to be larger to be told so, and by which the first; none where no
    /// factor is enough.
    fn needed(&self, threshold: f64) -> Option<[f64; 2]> {
        let interval = self.interval?;
        let beyond = 1.0 + threshold;
        Some([(1.0 / interval.low).max(beyond / self.estimate), interval.high.max(self.estimate * beyond)])
    }
}

/// The smallest difference, in percent, that would have been told in so many of the comparisons as it takes; none where
/// some have no interval, or there are none.
pub(super) fn caught(found: &[Found], threshold: f64) -> Option<f64> {
    let needed: Option<Vec<[f64; 2]>> = found.iter().map(|found| found.needed(threshold)).collect();
    let mut factors = needed?.concat();
    factors.sort_unstable_by(f64::total_cmp);
    let enough = (factors.len() as f64 * POWER).ceil() as usize;
    Some((factors.get(enough.checked_sub(1)?)? - 1.0) * 100.0)
}

//! What would decide what is not decided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::{Ratio, least_p};

use super::units::Unit;

/// So many are wanted at most; beyond that another way has to be found.
const MOST: usize = 10_000;

/// So many samples or runs on each side, at a guess from how wide the interval is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    /// How many on each side, all together; none where no number that can be had would do.
    pub each: Option<usize>,
    /// Of what.
    pub unit: Unit,
    /// Whether these are just the fewest of which anything can be told: there is no interval yet to guess from.
    pub fewest: bool,
}

/// Of a unit of which the shorter side has so many `now`: first as many as any verdict takes ([`reachable`]), then as many as make the interval narrow enough.
///
/// The width of an interval falls with the square root of the number of values. It is narrow enough when it fits
/// between the estimate and the nearer end of the threshold.
pub(super) fn of(unit: Unit, now: usize, effect: Option<Ratio>, threshold: f64, least: usize) -> Option<Needs> {
    let Some((effect, interval)) = effect.and_then(|effect| Some((effect, effect.interval?))) else {
        return Some(Needs { unit, each: Some(least.max(now + 1)), fewest: true });
    };
    if interval.low <= 0.0 || effect.estimate <= 0.0 {
        return None;
    }
    let half = (interval.high / interval.low).ln() / 2.0;
    let edge = (1.0 + threshold).ln();
    let gap = (effect.estimate.ln().abs() - edge).abs();
    let wanted = (now as f64 * (half / gap).powi(2)).ceil();
    let each = (wanted <= MOST as f64).then_some((wanted as usize).max(least).max(now + 1));
    Some(Needs { unit, each, fewest: false })
}

/// The fewest values a side with which one metric of a family alone could be told apart.
pub(super) fn reachable(rate: f64, family: usize) -> usize {
    let wanted = rate / family.max(1) as f64;
    (1..).find(|&n| least_p(n, n) <= wanted).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use wb_stats::Interval;

    use super::*;

    fn effect(estimate: f64, low: f64, high: f64) -> Option<Ratio> {
        Some(Ratio { estimate, interval: Some(Interval { low, high, confidence_reached: 0.95 }), p: 0.2 })
    }

    #[test]
    fn three_runs_never_decide_and_four_can_where_there_is_one_metric() {
        assert_eq!(reachable(0.05, 1), 4);
        assert_eq!(of(Unit::Samples, 3, None, 0.05, 4).and_then(|needs| needs.each), Some(4));
        assert!(reachable(0.05, 100) > 6);
    }

    #[test]
    fn twice_as_wide_as_the_gap_takes_four_times_as_many() {
        let edge = 1.05_f64;
        let (estimate, half) = (edge * 1.1, 1.1_f64.powi(2));
        let needs = of(Unit::Samples, 10, effect(estimate, estimate / half, estimate * half), 0.05, 4).unwrap();
        assert!((40..=41).contains(&needs.each.unwrap()), "{needs:?}");
    }

    #[test]
    fn what_lies_on_the_edge_cannot_be_decided() {
        let needs = of(Unit::Samples, 10, effect(1.05, 1.0, 1.1), 0.05, 4).unwrap();
        assert_eq!(needs.each, None);
    }
}

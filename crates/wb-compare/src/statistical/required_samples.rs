//! What would decide what is not decided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::{Ratio, min_p_value};

use super::observations::ObservationKind;

/// So many are wanted at most; beyond that another way has to be found.
const MAX_REQUIRED: usize = 10_000;

/// So many samples or runs on each side, at a guess from how wide the interval is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequiredSamples {
    /// How many on each side, all together; none where no number that can be had would do.
    pub per_side: Option<usize>,
    /// Of what.
    pub unit: ObservationKind,
    /// Whether these are just the fewest of which anything can be told: there is no interval yet to guess from.
    pub is_minimum: bool,
}

/// Of a unit of which the shorter side has so many `now`: first as many as any verdict takes ([`reachable`]), then as many as make the interval narrow enough.
///
/// The width of an interval falls with the square root of the number of values. It is narrow enough when it fits
/// between the estimate and the nearer end of the threshold.
pub(super) fn estimate(
    unit: ObservationKind,
    now: usize,
    effect: Option<Ratio>,
    threshold: f64,
    least: usize,
) -> Option<RequiredSamples> {
    let Some((effect, interval)) = effect.and_then(|effect| Some((effect, effect.interval?))) else {
        return Some(RequiredSamples { unit, per_side: Some(least.max(now + 1)), is_minimum: true });
    };
    if interval.low <= 0.0 || effect.estimate <= 0.0 {
        return None;
    }
    let half = (interval.high / interval.low).ln() / 2.0;
    let edge = (1.0 + threshold).ln();
    let gap = (effect.estimate.ln().abs() - edge).abs();
    let wanted = (now as f64 * (half / gap).powi(2)).ceil();
    let each = (wanted <= MAX_REQUIRED as f64).then_some((wanted as usize).max(least).max(now + 1));
    Some(RequiredSamples { unit, per_side: each, is_minimum: false })
}

/// The fewest values a side with which one metric of a family alone could be told apart.
pub(super) fn min_observations(rate: f64, family: usize) -> usize {
    let wanted = rate / family.max(1) as f64;
    (1..).find(|&n| min_p_value(n, n) <= wanted).unwrap_or(MAX_REQUIRED)
}

#[cfg(test)]
mod tests {
    use wb_stats::Interval;

    use super::*;

    fn effect(estimate: f64, low: f64, high: f64) -> Option<Ratio> {
        Some(Ratio { estimate, interval: Some(Interval { low, high, confidence: 0.95 }), p_value: 0.2 })
    }

    #[test]
    fn three_runs_never_decide_and_four_can_where_there_is_one_metric() {
        assert_eq!(min_observations(0.05, 1), 4);
        assert_eq!(estimate(ObservationKind::Samples, 3, None, 0.05, 4).and_then(|needs| needs.per_side), Some(4));
        assert!(min_observations(0.05, 100) > 6);
    }

    #[test]
    fn twice_as_wide_as_the_gap_takes_four_times_as_many() {
        let edge = 1.05_f64;
        let (estimate, half) = (edge * 1.1, 1.1_f64.powi(2));
        let needs =
            super::estimate(ObservationKind::Samples, 10, effect(estimate, estimate / half, estimate * half), 0.05, 4)
                .unwrap();
        assert!((40..=41).contains(&needs.per_side.unwrap()), "{needs:?}");
    }

    #[test]
    fn what_lies_on_the_edge_cannot_be_decided() {
        let needs = estimate(ObservationKind::Samples, 10, effect(1.05, 1.0, 1.1), 0.05, 4).unwrap();
        assert_eq!(needs.per_side, None);
    }
}

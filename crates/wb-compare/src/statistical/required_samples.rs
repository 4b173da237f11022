//! Estimate of the number of samples or runs that an inconclusive comparison requires.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::{Ratio, min_p_value};

use super::observations::ObservationKind;

/// Maximum number to suggest; beyond it, more values are not a practical answer.
const MAX_REQUIRED: usize = 10_000;

/// Number of samples or runs required per side, estimated from the current width of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequiredSamples {
    /// Total number per side; `None` if no practical number is enough.
    pub per_side: Option<usize>,
    /// Whether samples or runs are counted.
    pub unit: ObservationKind,
    /// Whether this is only the minimum for any verdict, as there is no interval yet to estimate from.
    pub is_minimum: bool,
}

/// Estimates the required number, given the number `now` on the smaller side: at first the minimum for any verdict
/// ([`reachable`]), then as many as make the interval narrow enough.
///
/// The width of an interval decreases with the square root of the number of values. It is narrow enough if it fits
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
    let required = (now as f64 * (half / gap).powi(2)).ceil();
    let each = (required <= MAX_REQUIRED as f64).then_some((required as usize).max(least).max(now + 1));
    Some(RequiredSamples { unit, per_side: each, is_minimum: false })
}

/// The minimum number of values per side with which a single metric of a family can reach significance.
pub(super) fn min_observations(rate: f64, family: usize) -> usize {
    let required = rate / family.max(1) as f64;
    (1..).find(|&n| min_p_value(n, n) <= required).unwrap_or(MAX_REQUIRED)
}

#[cfg(test)]
mod tests {
    use wb_stats::Interval;

    use super::*;

    fn effect(estimate: f64, low: f64, high: f64) -> Option<Ratio> {
        Some(Ratio { estimate, interval: Some(Interval { low, high, confidence: 0.95 }), p_value: 0.2 })
    }

    #[test]
    fn three_runs_never_decide_and_four_can_for_a_single_metric() {
        assert_eq!(min_observations(0.05, 1), 4);
        assert_eq!(estimate(ObservationKind::Samples, 3, None, 0.05, 4).and_then(|needs| needs.per_side), Some(4));
        assert!(min_observations(0.05, 100) > 6);
    }

    #[test]
    fn an_interval_twice_as_wide_as_the_gap_requires_four_times_as_many() {
        let edge = 1.05_f64;
        let (estimate, half) = (edge * 1.1, 1.1_f64.powi(2));
        let needs =
            super::estimate(ObservationKind::Samples, 10, effect(estimate, estimate / half, estimate * half), 0.05, 4)
                .unwrap();
        assert!((40..=41).contains(&needs.per_side.unwrap()), "{needs:?}");
    }

    #[test]
    fn an_effect_on_the_threshold_cannot_be_decided() {
        let needs = estimate(ObservationKind::Samples, 10, effect(1.05, 1.0, 1.1), 0.05, 4).unwrap();
        assert_eq!(needs.per_side, None);
    }
}

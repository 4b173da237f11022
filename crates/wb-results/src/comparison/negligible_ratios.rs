//! The ratios that do not matter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The range of ratios that do not matter: as far from 1 in both directions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NegligibleRatios {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Relative tolerance within which a ratio beyond an end still counts as at the end. Computed ratios are off by the
/// rounding of some hundred operations, which must not decide; no measurement is as exact.
const ROUNDING: f64 = 1e-9;

impl NegligibleRatios {
    /// `threshold` is in percent.
    pub fn new(threshold: f64) -> Self {
        let high = 1.0 + threshold / 100.0;
        Self { low: 1.0 / high, high }
    }

    pub fn contains(self, ratio: f64) -> bool {
        (self.low * (1.0 - ROUNDING)..=self.high * (1.0 + ROUNDING)).contains(&ratio)
    }
}

/// The ends of the differences that do not matter by a threshold, all in percent: −33.3 and +50 for 50.
pub fn negligible_percent(threshold: f64) -> (f64, f64) {
    let NegligibleRatios { low, high } = NegligibleRatios::new(threshold);
    ((low - 1.0) * 100.0, (high - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 105 / 100 and 1 / (100 / 105) are beyond 1.05 by one unit in the last place, or below it.
    #[test]
    fn both_ends_are_within_the_range_however_a_ratio_is_rounded() {
        for threshold in [0.0, 0.1, 1.0, 3.0, 5.0, 7.7, 33.3, 50.0, 1000.0] {
            let negligible = NegligibleRatios::new(threshold);
            let end = 1.0 + threshold / 100.0;
            let computed = [end, (100.0 + threshold) / 100.0, end.ln().exp(), 1.0 / (100.0 / (100.0 + threshold))];
            let neighbours = computed.iter().flat_map(|it| [it.next_down().next_down(), *it, it.next_up().next_up()]);
            for ratio in neighbours {
                assert!(negligible.contains(ratio), "{threshold}: {ratio:e}");
                assert!(negligible.contains(1.0 / ratio), "{threshold}: {:e}", 1.0 / ratio);
            }
            let beyond = end * (1.0 + 1e-8);
            assert!(!negligible.contains(beyond) && !negligible.contains(1.0 / beyond), "{threshold}");
        }
        assert!(!NegligibleRatios::new(5.0).contains(f64::NAN));
    }
}

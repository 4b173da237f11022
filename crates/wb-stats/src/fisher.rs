//! Fisher's exact test of two proportions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unimodal::Unimodal;

/// Probabilities within this relative distance of the observed one count as equal to it, as in R and SciPy: rounding
/// must not decide.
const TIE: f64 = 1.0 + 1e-7;

/// The largest number of trials on both sides together.
const MAX_TRIALS: u64 = 1 << 32;

/// The p-values of Fisher's exact test (1935): whether two sides have the same proportion.
///
/// Given the total number of occurrences, the number on one side is hypergeometric if the proportions are equal,
/// whatever they are. Conservative, since counts are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FisherExact {
    /// Two-sided: the probability of all tables that are at most as probable as the observed one, as in R and SciPy.
    pub p_value: f64,
    /// One-sided: the probability that the second side has at most as many occurrences.
    pub lower: f64,
    /// One-sided: the probability that the second side has at least as many occurrences.
    pub higher: f64,
}

impl FisherExact {
    /// Compares `b` occurrences in `m` trials with `a` in `n`.
    ///
    /// The time is proportional to the standard deviation of the count: at most 4 ms for a million trials a side. A p-value
    /// below 1e-300 is 0. `None` if there are more occurrences than trials, or more than 2³² trials in total; sides
    /// without trials have p-values of 1.
    pub fn new(a: usize, n: usize, b: usize, m: usize) -> Option<Self> {
        let [a, n, b, m] = [a, n, b, m].map(|count| count as u64);
        if a > n || b > m || n.checked_add(m).is_none_or(|trials| trials > MAX_TRIALS) {
            return None;
        }
        let null = Hypergeometric::new(n, m, a + b);
        let observed = null.mass(b) * TIE;
        let sum = |matches: &dyn Fn(u64, f64) -> bool| {
            let masses = (null.0.first..).zip(&null.0.masses).filter(|(count, mass)| matches(*count, **mass));
            masses.map(|(_, mass)| mass).sum::<f64>().min(1.0)
        };
        Some(Self {
            p_value: sum(&|_, mass| mass <= observed),
            lower: sum(&|count, _| count <= b),
            higher: sum(&|count, _| count >= b),
        })
    }
}

/// The number of occurrences among `m` trials, if `count` of `n + m` trials have one.
struct Hypergeometric(Unimodal);

impl Hypergeometric {
    fn new(n: u64, m: u64, count: u64) -> Self {
        const NEGLIGIBLE: f64 = 1e-300;
        let (lowest, highest) = (count.saturating_sub(n), count.min(m));
        let mode = (u128::from(count + 1) * u128::from(m + 1) / u128::from(n + m + 2)) as u64;
        let mode = mode.clamp(lowest, highest);
        let odds = |x: u64| ((m - x) as f64 * (count - x) as f64) / ((x + 1) as f64 * (n + x + 1 - count) as f64);
        Self(Unimodal::new([lowest, mode, highest], NEGLIGIBLE, odds))
    }

    fn mass(&self, count: u64) -> f64 {
        let position = count.checked_sub(self.0.first).and_then(|position| usize::try_from(position).ok());
        position.and_then(|position| self.0.masses.get(position)).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn near(actual: f64, expected: f64) {
        assert!((actual / expected - 1.0).abs() < 1e-6, "{actual} is not {expected}");
    }

    /// SciPy 1.17: `fisher_exact([[a, n - a], [b, m - b]])`, two-sided, with `greater` and with `less`.
    #[test]
    fn p_values_agree_with_scipy() {
        for (a, n, b, m, p_value, lower, higher) in [
            (1, 10, 7, 10, 0.019_766_611_097_880_447, 0.999_642_772_088_592_5, 0.009_883_305_548_940_223),
            (0, 6, 6, 6, 0.002_164_502_164_502_164_5, 1.0, 0.001_082_251_082_251_082_3),
            (3, 20, 9, 25, 0.176_772_622_603_592_53, 0.975_124_751_074_836_2, 0.105_855_420_659_731_48),
            (50, 1000, 80, 1000, 0.008_308_448_377_756_92, 0.997_620_470_172_263_7, 0.004_154_224_188_878_46),
            (0, 5, 0, 5, 1.0, 1.0, 1.0),
            (2, 3, 1, 4, 0.485_714_285_714_285_65, 0.371_428_571_428_571_4, 0.971_428_571_428_571_4),
            (100, 100_000, 300, 200_000, 3.636_523_446_388_92e-4, 0.999_881_296_075_333, 1.829_333_501_670_387e-4),
            (10, 1_000_000, 40, 1_000_000, 2.385_604_043_998_494e-5, 0.999_997_193_656_961_4, 1.192_802_021_999_247e-5),
            (
                500_000,
                1_000_000,
                501_500,
                1_000_000,
                0.034_013_735_157_752_34,
                0.983_112_062_365,
                0.017_006_867_578_876,
            ),
        ] {
            let test = FisherExact::new(a, n, b, m).unwrap();
            near(test.p_value, p_value);
            near(test.lower, lower);
            near(test.higher, higher);
        }
    }

    #[test]
    fn impossible_counts_are_refused_and_empty_sides_do_not_differ() {
        assert_eq!((FisherExact::new(2, 1, 0, 1), FisherExact::new(0, 1, 2, 1)), (None, None));
        assert_eq!(FisherExact::new(0, usize::MAX, 0, 1), None);
        assert_eq!(FisherExact::new(0, 0, 3, 5).map(|test| test.p_value), Some(1.0));
        assert_eq!(FisherExact::new(0, 1_000_000, 1_000_000, 1_000_000).map(|test| test.p_value), Some(0.0));
    }

    proptest! {
        #[test]
        fn exchanging_the_sides_exchanges_the_one_sided_p_values(n in 0..200_usize, m in 0..200_usize, x in 0.0..=1.0_f64, y in 0.0..=1.0_f64) {
            let (a, b) = ((x * n as f64) as usize, (y * m as f64) as usize);
            let (one, other) = (FisherExact::new(a, n, b, m).unwrap(), FisherExact::new(b, m, a, n).unwrap());
            let same = |p: f64, q: f64| (p - q).abs() < 1e-9;
            prop_assert!(same(one.p_value, other.p_value) && same(one.lower, other.higher));
            prop_assert!([one.p_value, one.lower, one.higher].iter().all(|p| *p > 0.0 && *p <= 1.0));
            // Both include the observed table.
            prop_assert!(one.lower + one.higher >= 1.0 - 1e-9);
            // The complements of the occurrences differ as much.
            let complement = FisherExact::new(n - a, n, m - b, m).unwrap();
            prop_assert!(same(one.p_value, complement.p_value));
        }
    }
}

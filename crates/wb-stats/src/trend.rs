use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::Samples;

/// The result of a test for a trend in time order
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    /// Kendall's S: rising pairs minus falling pairs; its sign is the direction
    pub s: i64,
    /// The change from one sample to the next, in the samples' unit: the median over all pairs (Sen 1968); from a million
    /// pairs on, over those that are half of the series apart (Theil 1950, the incomplete method)
    pub slope: f64,
    /// The two-sided p-value: the probability of an S at least this far from 0 without a trend
    pub p_value: f64,
    /// How the p-value was computed
    pub method: TrendMethod,
}

/// How the p-value of a trend was computed
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrendMethod {
    /// From the exact distribution of S; no ties, at most 34 samples
    Exact,
    /// From the normal approximation, corrected for ties and continuity; rough below 10 samples
    Normal,
}

/// 34! is the largest factorial below 2¹²⁸.
const EXACT_LIMIT: usize = 34;

/// The Mann–Kendall test for a monotonic trend (Mann 1945; Kendall, Rank Correlation Methods, 4th ed., 1975).
///
/// It assumes samples that are independent except for the trend: a system with a slow drift gives small p-values too,
/// which is also useful. It cannot reach 5 % below 5 samples. `None` for fewer than 3 samples.
pub fn trend(samples: &Samples) -> Option<Trend> {
    joint_trend(std::slice::from_ref(samples))
}

/// The Mann–Kendall test over several series, where pairs are only formed within a series (Hirsch, Slack, Smith 1982,
/// with months instead of series): S and its variance are sums, the slope is the median of all slopes. For a single
/// series of three samples or more, the same as [`trend`].
///
/// `None` without a series of 3 samples or more; shorter ones are ignored.
pub fn joint_trend(series: &[Samples]) -> Option<Trend> {
    let series: Vec<&Samples> = series.iter().filter(|samples| samples.count() >= 3).collect();
    let s = series.iter().map(|samples| kendall_s(samples)).sum();
    let exact_p_value = match series[..] {
        [one] if one.count() <= EXACT_LIMIT && tie_sizes(one.sorted()).is_empty() => {
            Some(exact_p_value(one.count(), s))
        }
        _ => None,
    };
    let variance = series.iter().map(|samples| variance(samples)).sum();
    let (p_value, method) = match exact_p_value {
        Some(p_value) => (p_value, TrendMethod::Exact),
        None => (normal_p_value(variance, s), TrendMethod::Normal),
    };
    Some(Trend { s, slope: median_slope(&series)?, p_value, method })
}

/// The number of pairs beyond which only some of them are examined.
const MANY_PAIRS: usize = 1_000_000;

fn median_slope(series: &[&Samples]) -> Option<f64> {
    let all_pairs: usize = series.iter().map(|samples| samples.count() * (samples.count() - 1) / 2).sum();
    let slope = |x: &[f64], i: usize, j: usize| (x[j] - x[i]) / (j - i) as f64;
    let mut slopes = Vec::new();
    for x in series.iter().map(|samples| samples.in_order()) {
        let half = x.len().div_ceil(2);
        if all_pairs < MANY_PAIRS {
            slopes.extend((0..x.len()).flat_map(|i| (i + 1..x.len()).map(move |j| slope(x, i, j))))
        } else {
            slopes.extend((half..x.len()).map(|j| slope(x, j - half, j)))
        }
    }
    Some(Samples::new(&slopes).ok()?.median())
}

/// The number of rising pairs minus the number of falling pairs; ties count as neither.
fn kendall_s(samples: &Samples) -> i64 {
    let pairs = |n: u64| n * (n - 1) / 2;
    let tied: u64 = samples.sorted().chunk_by(|a, b| a == b).map(|tied| pairs(tied.len() as u64)).sum();
    let falling = count_falling(&mut samples.in_order().to_vec());
    (pairs(samples.count() as u64) - tied) as i64 - 2 * falling as i64
}

/// The number of pairs whose later sample is smaller. Sorts the samples by merging (Knight 1966).
fn count_falling(x: &mut [f64]) -> u64 {
    if x.len() < 2 {
        return 0;
    }
    let (earlier, later) = x.split_at_mut(x.len() / 2);
    let mut falling = count_falling(earlier) + count_falling(later);
    let mut merged = Vec::with_capacity(earlier.len() + later.len());
    let (mut earlier, mut later) = (&*earlier, &*later);
    while let ([one, rest @ ..], [other, others @ ..]) = (earlier, later) {
        if other < one {
            falling += earlier.len() as u64;
            merged.push(*other);
            later = others;
        } else {
            merged.push(*one);
            earlier = rest;
        }
    }
    merged.extend(earlier.iter().chain(later));
    x.copy_from_slice(&merged);
    falling
}

fn tie_sizes(sorted: &[f64]) -> Vec<f64> {
    sorted.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64).filter(|&size| size > 1.0).collect()
}

/// The exact p-value. The number of permutations with a given number of falling pairs is counted one sample at a time:
/// each new sample is below 0, 1, … or all of the previous ones (Kendall 1975, chapter 5).
fn exact_p_value(n: usize, s: i64) -> f64 {
    let all = n * (n - 1) / 2;
    let max_falling = (all - s.unsigned_abs() as usize) / 2;
    let mut orders = vec![0_u128; max_falling + 1];
    orders[0] = 1;
    for before in 1..n {
        let mut window = 0;
        let fewer = orders.clone();
        for falling in 0..orders.len() {
            window += fewer[falling];
            if falling > before {
                window -= fewer[falling - before - 1];
            }
            orders[falling] = window;
        }
    }
    let factorial: u128 = (1..=n as u128).product();
    (2.0 * orders.iter().sum::<u128>() as f64 / factorial as f64).min(1.0)
}

/// The variance of S without a trend, reduced by ties
fn variance(samples: &Samples) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties = tie_sizes(samples.sorted());
    (term(samples.count() as f64) - ties.into_iter().map(term).sum::<f64>()) / 18.0
}

fn normal_p_value(variance: f64, s: i64) -> f64 {
    if variance <= 0.0 || s == 0 {
        return 1.0;
    }
    let z = (s.abs() as f64 - 1.0) / variance.sqrt();
    (2.0 * Normal::standard().sf(z)).min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(x: &[f64]) -> Trend {
        trend(&Samples::new(x).unwrap()).unwrap()
    }

    #[test]
    fn fewer_than_three_samples_have_no_trend() {
        assert_eq!(trend(&Samples::new(&[1.0, 2.0]).unwrap()), None);
    }

    #[test]
    fn five_rising_samples_are_a_trend_at_five_percent() {
        // 2 of the 5! = 120 orders are as monotonic.
        let rising = of(&[1.0, 3.0, 4.0, 8.0, 9.0]);
        assert_eq!((rising.s, rising.method), (10, TrendMethod::Exact));
        assert!((rising.p_value - 2.0 / 120.0).abs() < 1e-15);
        assert!((rising.slope - 2.0).abs() < 0.5);
    }

    #[test]
    fn the_longest_exact_distribution_agrees_with_the_approximation() {
        let mut swinging: Vec<f64> = (0..34).map(|i| f64::from(i * 13 % 34) + 0.4 * f64::from(i)).collect();
        let exact = of(&swinging);
        assert_eq!(exact.method, TrendMethod::Exact);
        let variance = variance(&Samples::new(&swinging).unwrap());
        assert!((exact.p_value - normal_p_value(variance, exact.s)).abs() < 0.01);
        swinging.sort_unstable_by(f64::total_cmp);
        assert!(of(&swinging).p_value > 0.0);
    }

    #[test]
    fn series_that_each_rise_a_little_rise_together() {
        let series = |level: f64| Samples::new(&[0.0, 2.0, 1.0, 3.0].map(|x| level + x)).unwrap();
        let alone = trend(&series(0.0)).unwrap();
        let together =
            joint_trend(&[series(9.0), series(0.0), series(5.0), Samples::new(&[9.0, 1.0]).unwrap()]).unwrap();
        assert_eq!((alone.s, together.s), (4, 12));
        assert_eq!((alone.slope, together.slope), (0.75, 0.75));
        // S of four has variance 26/3: z = 11/√26.
        assert!((together.p_value - 0.030_982).abs() < 1e-5, "{}", together.p_value);
        assert_eq!(joint_trend(&[series(1.0)]), Some(alone));
    }

    // Writing down all pairs of 50,000 samples took 20 GB.
    #[test]
    fn a_slope_of_many_samples_takes_no_more_memory_than_they_do() {
        let rising: Vec<f64> = (0..1_000_000).map(|n| f64::from(n) * 0.25 + f64::from(n % 7)).collect();
        let trend = of(&rising);
        assert!((trend.slope - 0.25).abs() < 1e-5, "{}", trend.slope);
        assert!(trend.s > 499_000_000_000 && trend.p_value < 1e-9);
    }

    proptest! {
        #[test]
        fn s_is_the_sum_over_all_pairs(x in prop::collection::vec(-9_i32..9, 3..60)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let pairs = (0..x.len()).flat_map(|i| (i + 1..x.len()).map(move |j| (i, j)));
            let naive: i64 = pairs.map(|(i, j)| i64::from(x[j] > x[i]) - i64::from(x[j] < x[i])).sum();
            prop_assert_eq!(of(&x).s, naive);
        }
    }

    #[test]
    fn equal_samples_have_no_trend() {
        let flat = of(&[5.0; 10]);
        assert_eq!((flat.s, flat.slope, flat.p_value), (0, 0.0, 1.0));
    }
}

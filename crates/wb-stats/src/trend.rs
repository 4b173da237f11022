use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::Samples;

/// Whether samples rise or fall in time order
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    /// Kendall's S: pairs that rise less pairs that fall; its sign is the direction
    pub s: i64,
    /// The change from one sample to the next, in the samples' unit: the median over all pairs (Sen 1968)
    pub slope: f64,
    /// The probability of an S at least so far from 0 without any trend, two-sided
    pub p_value: f64,
    /// How the probability was found
    pub method: TrendMethod,
}

/// How the probability of a trend was found
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrendMethod {
    /// From the exact distribution of S; no ties, at most 34 samples
    Exact,
    /// From the normal approximation, corrected for ties and continuity; rough below 10 samples
    Normal,
}

/// 34! is the last that 128 bits hold.
const EXACT_LIMIT: usize = 34;

/// The Mann–Kendall test for a monotonic trend (Mann 1945; Kendall, Rank Correlation Methods, 4th ed., 1975).
///
/// It presumes samples that are independent but for the trend: a system that wanders slowly gives small
/// probabilities too, and that is worth knowing as well. It cannot reach 5 % below 5 samples. Time and memory grow
/// with the square of the count. `None` for fewer than 3 samples.
pub fn trend(samples: &Samples) -> Option<Trend> {
    joint_trend(std::slice::from_ref(samples))
}

/// The same over several series, each in an order of its own and compared with itself alone (Hirsch, Slack, Smith 1982,
/// who have months in the place of series): S and its variance are sums, the slope is the median of all. With a
/// single series of three or more it is that one's.
///
/// `None` without any series of 3 samples; shorter ones take no part.
pub fn joint_trend(series: &[Samples]) -> Option<Trend> {
    let series: Vec<&Samples> = series.iter().filter(|samples| samples.count() >= 3).collect();
    let s = series.iter().map(|samples| kendall_s(samples.in_order())).sum();
    let slopes: Vec<f64> = series.iter().flat_map(|samples| slopes(samples.in_order())).collect();
    let known = match series[..] {
        [one] if one.count() <= EXACT_LIMIT && tie_sizes(one.sorted()).is_empty() => {
            Some(exact_p_value(one.count(), s))
        }
        _ => None,
    };
    let variance = series.iter().map(|samples| variance(samples)).sum();
    let (p_value, method) = match known {
        Some(p_value) => (p_value, TrendMethod::Exact),
        None => (normal_p_value(variance, s), TrendMethod::Normal),
    };
    Some(Trend { s, slope: Samples::new(&slopes).ok()?.median(), p_value, method })
}

fn kendall_s(x: &[f64]) -> i64 {
    pairs(x).map(|(i, j)| i64::from(x[j] > x[i]) - i64::from(x[j] < x[i])).sum()
}

fn slopes(x: &[f64]) -> impl Iterator<Item = f64> {
    pairs(x).map(move |(i, j)| (x[j] - x[i]) / (j - i) as f64)
}

fn pairs(x: &[f64]) -> impl Iterator<Item = (usize, usize)> {
    (0..x.len()).flat_map(|i| (i + 1..x.len()).map(move |j| (i, j)))
}

fn tie_sizes(sorted: &[f64]) -> Vec<f64> {
    sorted.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64).filter(|&size| size > 1.0).collect()
}

/// In how many orders so many pairs fall is counted one sample at a time: the new one falls below 0, 1, … or all of
/// those before it (Kendall 1975, chapter 5).
fn exact_p_value(n: usize, s: i64) -> f64 {
    let all = n * (n - 1) / 2;
    let as_far_out = (all - s.unsigned_abs() as usize) / 2;
    let mut orders = vec![0_u128; as_far_out + 1];
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

/// Of S without any trend, less for ties
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
    fn the_longest_exact_distribution_holds_and_meets_the_approximation() {
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

    #[test]
    fn equal_samples_have_no_trend() {
        let flat = of(&[5.0; 10]);
        assert_eq!((flat.s, flat.slope, flat.p_value), (0, 0.0, 1.0));
    }
}

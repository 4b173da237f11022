//! The Wilcoxon–Mann–Whitney test, exact for small samples.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use statrs::distribution::{ContinuousCDF, Normal};

/// Up to this number of samples on both sides together, the null distribution is exact.
const EXACT_LIMIT: usize = 60;

/// The two-sided p-value: the probability that equal sides are at least as far apart as these.
///
/// Exact, also with ties, up to 60 samples on both sides together: the conditional distribution of the sum of midranks
/// by the shift algorithm (Streitberg, Röhmel 1986). Beyond that the normal approximation, corrected for ties and
/// continuity (Lehmann, Nonparametrics, 1975, section 1.4).
pub fn rank_sum_p(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let ranks = Ranks::new(a, b);
    if a.len() + b.len() > EXACT_LIMIT {
        return ranks.normal_p_value(a.len(), b.len());
    }
    if ranks.ties == 0.0 {
        let u = (ranks.doubled_sum_of_a as usize - a.len() * (a.len() + 1)) / 2;
        let null = MannWhitney::new(a.len(), b.len());
        let (below, above) = (null.cdf(u), 1.0 - if u == 0 { 0.0 } else { null.cdf(u - 1) });
        return (2.0 * below.min(above)).min(1.0);
    }
    ranks.exact_p_value(a.len())
}

/// Midranks of two sides, doubled so that they are whole numbers.
struct Ranks {
    doubled: Vec<u32>,
    doubled_sum_of_a: u64,
    /// Σ(t³ − t) over groups of t equal samples.
    ties: f64,
}

impl Ranks {
    fn new(a: &[f64], b: &[f64]) -> Self {
        let mut all: Vec<(f64, bool)> =
            a.iter().map(|&value| (value, true)).chain(b.iter().map(|&value| (value, false))).collect();
        all.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let mut ranks = Self { doubled: Vec::with_capacity(all.len()), doubled_sum_of_a: 0, ties: 0.0 };
        for equal in all.chunk_by(|one, other| one.0 == other.0) {
            let first = ranks.doubled.len() as u32 + 1;
            let doubled = 2 * first + equal.len() as u32 - 1;
            ranks.doubled.extend(equal.iter().map(|_| doubled));
            ranks.doubled_sum_of_a += equal.iter().filter(|(_, of_a)| *of_a).count() as u64 * u64::from(doubled);
            let t = equal.len() as f64;
            ranks.ties += t * t * t - t;
        }
        ranks
    }

    fn normal_p_value(&self, n: usize, m: usize) -> f64 {
        let (n, m) = (n as f64, m as f64);
        let all = n + m;
        let mean = n * (all + 1.0) / 2.0;
        let variance = n * m / 12.0 * (all + 1.0 - self.ties / (all * (all - 1.0)));
        if variance <= 0.0 {
            return 1.0;
        }
        let off = (self.doubled_sum_of_a as f64 / 2.0 - mean).abs() - 0.5;
        let z = off.max(0.0) / variance.sqrt();
        let standard = Normal::standard();
        (2.0 * standard.sf(z)).min(1.0)
    }

    /// The exact p-value, over all ways to assign `n` of the samples to the first side.
    fn exact_p_value(&self, n: usize) -> f64 {
        let max_sum = self.doubled.iter().map(|&rank| rank as usize).sum::<usize>();
        // ways[k][s]: the number of choices of k of the samples so far whose ranks sum to s.
        let mut ways = vec![vec![0.0_f64; max_sum + 1]; n + 1];
        ways[0][0] = 1.0;
        for &rank in &self.doubled {
            let rank = rank as usize;
            for k in (1..=n).rev() {
                let (lower, upper) = ways.split_at_mut(k);
                let (from, to) = (&lower[k - 1], &mut upper[0]);
                to[rank..].iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
        }
        let all: f64 = ways[n].iter().sum();
        let observed = self.doubled_sum_of_a as usize;
        let below: f64 = ways[n][..=observed].iter().sum();
        let above: f64 = ways[n][observed..].iter().sum();
        (2.0 * below.min(above) / all).min(1.0)
    }
}

/// The null distribution of Mann–Whitney's U of n against m samples without ties.
#[derive(Clone, Debug)]
pub(crate) struct MannWhitney(Rc<[f64]>);

thread_local! {
    static CACHE: RefCell<HashMap<(usize, usize), MannWhitney>> = RefCell::default();
}

impl MannWhitney {
    /// For n and m of at most 60 together; cached, since many comparisons have the same sizes.
    pub(crate) fn new(n: usize, m: usize) -> Self {
        let sizes = (n.min(m), n.max(m));
        CACHE.with_borrow_mut(|cache| cache.entry(sizes).or_insert_with(|| Self::compute(sizes.0, sizes.1)).clone())
    }

    /// Computed by the recursion over the side of the largest sample (Mann, Whitney 1947), in probabilities.
    fn compute(n: usize, m: usize) -> Self {
        // row[j]: the distribution for i against j samples, for the i of the current iteration.
        let mut row: Vec<Vec<f64>> = vec![vec![1.0]; m + 1];
        for i in 1..=n {
            let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
            for j in 1..=m {
                let all = (i + j) as f64;
                let (of_i, of_j) = (i as f64 / all, j as f64 / all);
                let mut masses = vec![0.0; i * j + 1];
                // The largest sample is one of the i: it is above all j.
                row[j].iter().enumerate().for_each(|(u, mass)| masses[u + j] += of_i * mass);
                next[j - 1].iter().enumerate().for_each(|(u, mass)| masses[u] += of_j * mass);
                next.push(masses);
            }
            row = next;
        }
        let mut sum = 0.0;
        let cumulated = row[m].iter().map(|mass| {
            sum += mass;
            sum
        });
        Self(cumulated.collect())
    }

    /// The probability of U or less.
    pub(crate) fn cdf(&self, u: usize) -> f64 {
        self.0.get(u).copied().unwrap_or(1.0).min(1.0)
    }
}

/// The number of pairwise differences beyond either end of an interval with this confidence, and the actual confidence;
/// `None` if there are too few samples for the confidence.
pub(crate) fn count_outside(n: usize, m: usize, confidence: f64) -> Option<(usize, f64)> {
    let tail = (1.0 - confidence) / 2.0 * (1.0 + 1e-12);
    if n + m <= EXACT_LIMIT {
        let null = MannWhitney::new(n, m);
        if null.cdf(0) > tail {
            return None;
        }
        let count = (0..).take_while(|&u| null.cdf(u) <= tail).count();
        return Some((count - 1, 1.0 - 2.0 * null.cdf(count - 1)));
    }
    let (n, m) = (n as f64, m as f64);
    let (mean, deviation) = (n * m / 2.0, (n * m * (n + m + 1.0) / 12.0).sqrt());
    let z = Normal::standard().inverse_cdf(1.0 - tail);
    let count = (mean - z * deviation - 0.5).floor();
    (count >= 0.0).then_some((count as usize, confidence))
}

/// The smallest possible p-value of n against m samples.
pub fn min_p_value(n: usize, m: usize) -> f64 {
    if n == 0 || m == 0 {
        return 1.0;
    }
    if n + m > EXACT_LIMIT {
        return 0.0;
    }
    (2.0 * MannWhitney::new(n, m).cdf(0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_ties_the_two_exact_ways_agree() {
        let (a, b) = ([1.0, 4.0, 6.0, 7.5, 9.0], [2.0, 3.0, 8.0, 10.0, 11.0, 12.0]);
        let ranks = Ranks::new(&a, &b);
        assert!((rank_sum_p(&a, &b) - ranks.exact_p_value(a.len())).abs() < 1e-12);
    }

    #[test]
    fn three_against_three_cannot_reach_one_in_twenty() {
        assert!((min_p_value(3, 3) - 0.1).abs() < 1e-12);
        assert!((rank_sum_p(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 0.1).abs() < 1e-12);
        assert_eq!(count_outside(3, 3, 0.95), None);
        assert_eq!(count_outside(4, 4, 0.95).map(|(count, _)| count), Some(0));
    }

    #[test]
    fn identical_samples_do_not_differ() {
        assert!((rank_sum_p(&[5.0; 6], &[5.0; 6]) - 1.0).abs() < 1e-12);
        assert!((rank_sum_p(&[5.0; 60], &[5.0; 60]) - 1.0).abs() < 1e-12);
        assert!((rank_sum_p(&[], &[1.0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_distribution_sums_to_one_and_is_symmetric() {
        let null = MannWhitney::new(7, 5);
        assert!((null.cdf(35) - 1.0).abs() < 1e-12);
        for u in 0..17 {
            assert!((null.cdf(u) + null.cdf(34 - u) - 1.0).abs() < 1e-12);
        }
    }
}

//! The Wilcoxon signed-rank test, exact for few pairs.

use statrs::distribution::{ContinuousCDF, Normal};

/// Up to this number of pairs, the null distribution is exact.
const EXACT_LIMIT: usize = 60;

/// The two-sided p-value of whether differences of pairs are symmetric around zero: the probability that those of equal
/// sides are at least this far from it (Wilcoxon 1945).
///
/// Differences of zero are ranked, and their ranks left out (Pratt 1959). Exact, also with ties, up to 60 pairs: the
/// conditional distribution, over all signs, of the sum of midranks by the shift algorithm (Streitberg, Röhmel 1986).
/// Beyond that the normal approximation, corrected for ties and continuity. 1 without differences other than zero.
pub fn signed_rank_p(differences: &[f64]) -> f64 {
    let ranks = SignedRanks::new(differences);
    if differences.len() > EXACT_LIMIT { ranks.normal_p_value() } else { ranks.exact_p_value() }
}

/// The two-sided p-value of whether the differences of pairs, in these whole numbers, are as often negative as positive
/// whatever their sizes: exact over all signs up to 60 pairs, beyond that the normal approximation.
pub(crate) fn sign_flip_p(differences: &[i64]) -> f64 {
    let sizes = |is_counted: fn(&i64) -> bool| {
        differences.iter().filter(move |it| is_counted(it)).map(|it| it.unsigned_abs() as usize)
    };
    let ranks =
        SignedRanks { doubled: sizes(|it| *it != 0).collect(), doubled_sum_of_positive: sizes(|it| *it > 0).sum() };
    if differences.len() > EXACT_LIMIT { ranks.normal_p_value() } else { ranks.exact_p_value() }
}

/// The midranks of the sizes of differences other than zero, doubled so that they are whole numbers.
struct SignedRanks {
    doubled: Vec<usize>,
    doubled_sum_of_positive: usize,
}

impl SignedRanks {
    fn new(differences: &[f64]) -> Self {
        let mut sorted = differences.to_vec();
        sorted.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
        let (mut ranks, mut below) = (Self { doubled: Vec::new(), doubled_sum_of_positive: 0 }, 0);
        for equal in sorted.chunk_by(|one, other| one.abs() == other.abs()) {
            let doubled = 2 * below + equal.len() + 1;
            below += equal.len();
            for _ in equal.iter().filter(|difference| **difference != 0.0) {
                ranks.doubled.push(doubled);
            }
            ranks.doubled_sum_of_positive += equal.iter().filter(|difference| **difference > 0.0).count() * doubled;
        }
        ranks
    }

    fn exact_p_value(&self) -> f64 {
        let null = null_distribution(&self.doubled);
        let below: f64 = null[..=self.doubled_sum_of_positive].iter().sum();
        let above: f64 = null[self.doubled_sum_of_positive..].iter().sum();
        (2.0 * below.min(above)).min(1.0)
    }

    fn normal_p_value(&self) -> f64 {
        let ranks = || self.doubled.iter().map(|doubled| *doubled as f64 / 2.0);
        let (mean, variance) = (ranks().sum::<f64>() / 2.0, ranks().map(|rank| rank * rank).sum::<f64>() / 4.0);
        if variance == 0.0 {
            return 1.0;
        }
        let off = (self.doubled_sum_of_positive as f64 / 2.0 - mean).abs() - 0.5;
        (2.0 * Normal::standard().sf(off.max(0.0) / variance.sqrt())).min(1.0)
    }
}

/// The probability of each sum of the ranks with a positive sign, if both signs are equally probable.
fn null_distribution(ranks: &[usize]) -> Vec<f64> {
    let mut masses = vec![0.0; ranks.iter().sum::<usize>() + 1];
    masses[0] = 1.0;
    for rank in ranks {
        for sum in (0..masses.len()).rev() {
            let positive = sum.checked_sub(*rank).map_or(0.0, |rest| masses[rest]);
            masses[sum] = (masses[sum] + positive) / 2.0;
        }
    }
    masses
}

/// The number of Walsh averages beyond either end of an interval of `n` pairs with this confidence, and the actual
/// confidence; `None` if there are too few pairs for it.
pub(crate) fn count_outside(n: usize, confidence: f64) -> Option<(usize, f64)> {
    let tail = (1.0 - confidence) / 2.0 * (1.0 + 1e-12);
    if n > EXACT_LIMIT {
        let n = n as f64;
        let (mean, deviation) = (n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt());
        let count = (mean - Normal::standard().inverse_cdf(1.0 - tail) * deviation - 0.5).floor();
        return (count >= 0.0).then_some((count as usize, confidence));
    }
    let null = null_distribution(&(1..=n).collect::<Vec<_>>());
    let cumulated = null.iter().scan(0.0, |sum, mass| {
        *sum += mass;
        Some(*sum)
    });
    let (count, below) = cumulated.take_while(|below| *below <= tail).enumerate().last()?;
    Some((count, 1.0 - 2.0 * below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_pairs_can_just_be_significant() {
        assert!((signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) - 2.0 / 64.0).abs() < 1e-12);
        assert_eq!(count_outside(5, 0.95), None);
        assert_eq!(count_outside(6, 0.95), Some((0, 1.0 - 2.0 / 64.0)));
        // Hollander, Wolfe, table A.4.
        assert_eq!(count_outside(10, 0.95).map(|(count, _)| count), Some(8));
        assert_eq!(count_outside(15, 0.95).map(|(count, _)| count), Some(25));
    }

    #[test]
    fn exchanging_the_sides_changes_nothing() {
        let differences = [0.3, -0.1, 0.7, 0.2, 0.2, -0.05, 0.0, 0.9];
        let exchanged = differences.map(|difference: f64| -difference);
        assert!((signed_rank_p(&differences) - signed_rank_p(&exchanged)).abs() < 1e-12);
    }

    #[test]
    fn pairs_that_do_not_differ_are_not_significant() {
        assert_eq!([signed_rank_p(&[]), signed_rank_p(&[0.0; 6]), signed_rank_p(&[0.0; 80])], [1.0; 3]);
    }

    #[test]
    fn the_approximation_joins_the_exact_distribution() {
        let differences: Vec<f64> = (0..EXACT_LIMIT).map(|n| ((n * 7 % 60) as f64 - 22.5) / 10.0).collect();
        let ranks = SignedRanks::new(&differences);
        let (exact, normal) = (ranks.exact_p_value(), ranks.normal_p_value());
        assert!((exact / normal - 1.0).abs() < 0.15, "{exact} {normal}");
        let outside = [EXACT_LIMIT, EXACT_LIMIT + 1].map(|n| count_outside(n, 0.95).unwrap().0);
        assert!(outside[1] > outside[0] && outside[1] - outside[0] < 40, "{outside:?}");
    }
}

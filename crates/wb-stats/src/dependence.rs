use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF, Normal};

use crate::Samples;

/// The minimum number of samples with which dependence can be ruled out: of cells whose successive samples correlate
/// by 0.9, the test misses one in seven with 20 samples and half with 12
pub const MIN_SAMPLES_FOR_DEPENDENCE: usize = 20;

/// Below, no order of the samples is significant at 1 %, and the median has no interval at 95 %.
const MIN_SAMPLES: usize = 6;

/// The serial dependence of samples in time order
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dependence {
    /// The correlation of the ranks of successive samples, corrected for bias; −1 to 1, exclusive at the upper end
    pub correlation: f64,
    /// The one-sided p-value: the probability of successive samples that are at least as similar, if samples are
    /// independent
    pub p_value: f64,
    /// The factor by which dependence widens the interval of the median; 1 without a positive correlation
    pub widening: f64,
    /// Whether there are enough samples to rule dependence out: [`MIN_SAMPLES_FOR_DEPENDENCE`]
    pub is_checkable: bool,
}

/// The result of the check for dependence
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependenceCheck {
    /// Samples depend on those before them
    Found,
    /// No dependence was found, in enough samples to find it if it were strong
    NotFound,
    /// No dependence was found, in too few samples to rule it out
    TooFewSamples,
}

impl Dependence {
    /// Checks for dependence. A finding holds for any number of samples; its absence only for enough of them.
    pub fn check(&self, significance: f64) -> DependenceCheck {
        match self.p_value < significance {
            true => DependenceCheck::Found,
            false if self.is_checkable => DependenceCheck::NotFound,
            false => DependenceCheck::TooFewSamples,
        }
    }
}

/// Tests whether samples are independent of those before them, and estimates by how much dependence widens the interval
/// of their median. `None` below 6 samples.
///
/// The test is von Neumann's ratio of ranks (Bartels 1982), one-sided: only positive dependence makes intervals too
/// narrow. A trend is a dependence, too. Everything is computed from ranks, so that outliers and heavy tails neither
/// cause nor hide dependence.
pub fn dependence(samples: &Samples) -> Option<Dependence> {
    let n = samples.count();
    let ranks = (n >= MIN_SAMPLES).then(|| Ranks::of(samples))?;
    let correlation = ranks.correlation();
    Some(Dependence {
        correlation,
        p_value: ranks.p_value(),
        widening: widening_of(correlation),
        is_checkable: n >= MIN_SAMPLES_FOR_DEPENDENCE,
    })
}

/// The factor of [`Dependence::widening`], without the test; 1 below 6 samples
pub(crate) fn widening(samples: &Samples) -> f64 {
    if samples.count() < MIN_SAMPLES { 1.0 } else { widening_of(Ranks::of(samples).correlation()) }
}

/// Of n samples with a first-order autoregressive dependence, a mean varies as that of n·(1 − r)/(1 + r) independent ones
/// (Bayley, Hammersley 1946); a median a little less
fn widening_of(correlation: f64) -> f64 {
    let r = correlation.max(0.0);
    ((1.0 + r) / (1.0 - r)).sqrt()
}

/// The ranks of samples in time order, as whole numbers: twice the distance of each midrank from the mean rank
struct Ranks {
    centred: Vec<f64>,
    tied: bool,
}

impl Ranks {
    fn of(samples: &Samples) -> Self {
        let x = samples.in_order();
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_unstable_by(|&a, &b| x[a].total_cmp(&x[b]));
        let (mut centred, mut below, mut tied) = (vec![0.0; x.len()], 0, false);
        for equal in order.chunk_by(|&a, &b| x[a] == x[b]) {
            let midrank = (2 * below + equal.len()) as f64 - x.len() as f64;
            equal.iter().for_each(|&at| centred[at] = midrank);
            below += equal.len();
            tied |= equal.len() > 1;
        }
        Self { centred, tied }
    }

    /// The lag-1 correlation, corrected for the bias −(1 + 4r)/n that the estimated mean causes (Marriott, Pope 1954;
    /// Kendall 1954).
    ///
    /// The correction is by the estimate itself. Solved for the true correlation, (n·r + 1)/(n − 4), it would triple the
    /// noise of six samples: under the stopping rule that covers about 1 % more at a correlation of 0.5, and takes up to
    /// half a sample more of independent ones. At most (n − 1)/(n + 1), at which n samples are worth one.
    fn correlation(&self) -> f64 {
        let n = self.centred.len() as f64;
        let squares = self.sum_of_powers(2);
        if squares == 0.0 {
            return 0.0;
        }
        let r = self.centred.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
        (r + (1.0 + 4.0 * r) / n).clamp(-1.0, (n - 1.0) / (n + 1.0))
    }

    fn p_value(&self) -> f64 {
        const MAX_FOR_PERMUTATION: usize = 1000;
        if self.sum_of_powers(2) == 0.0 {
            return 1.0;
        }
        // With few distinct values the ratio is far from any smooth distribution: one outlier among equal samples is at
        // either end of them by chance more often than in one of twenty.
        if self.tied && self.centred.len() <= MAX_FOR_PERMUTATION {
            return self.permutation_p_value();
        }
        self.approximate_p_value()
    }

    /// From random orders, until enough of them are as extreme (Besag, Clifford 1991); seeded, at least 0.0005
    fn permutation_p_value(&self) -> f64 {
        const ENOUGH: usize = 20;
        const MAX: usize = 1999;
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut shuffled = self.centred.clone();
        let observed = squared_steps(&self.centred);
        let mut extreme = 0;
        for orders in 1..=MAX {
            shuffled.shuffle(&mut random);
            extreme += usize::from(squared_steps(&shuffled) <= observed);
            if extreme == ENOUGH {
                return ENOUGH as f64 / orders as f64;
            }
        }
        (extreme + 1) as f64 / (MAX + 1) as f64
    }

    /// Bartels' approximation: the beta distribution on 0 to 4 with the ratio's mean, 2, and variance; the normal
    /// distribution above 100 samples. At 1 %, it rejects the same orders of 6, 7 and 8 samples as the exact test
    fn approximate_p_value(&self) -> f64 {
        const MAX_FOR_BETA: usize = 100;
        let ratio = squared_steps(&self.centred) / self.sum_of_powers(2);
        let variance = self.variance();
        let shape = 2.0 / variance - 0.5;
        match Beta::new(shape, shape) {
            Ok(beta) if self.centred.len() <= MAX_FOR_BETA => beta.cdf(ratio / 4.0),
            _ => Normal::standard().cdf((ratio - 2.0) / variance.sqrt()),
        }
    }

    /// The variance of von Neumann's ratio over all orders of these ranks, with ties too (by the method of Wald,
    /// Wolfowitz 1943; without ties the same as Bartels' formula)
    fn variance(&self) -> f64 {
        let n = self.centred.len() as f64;
        let (s2, s4) = (self.sum_of_powers(2), self.sum_of_powers(4));
        // The expected products of distinct ranks: a²b², a³b, a²bc and abcd.
        let a2_b2 = (s2 * s2 - s4) / (n * (n - 1.0));
        let a3_b = -s4 / (n * (n - 1.0));
        let a2_bc = (2.0 * s4 - s2 * s2) / (n * (n - 1.0) * (n - 2.0));
        let abcd = (3.0 * s2 * s2 - 6.0 * s4) / (n * (n - 1.0) * (n - 2.0) * (n - 3.0));
        // The ratio is 2·s2 less the squares of both ends, less twice the sum of the n − 1 products of neighbours.
        let ends = 2.0 * s4 / n + 2.0 * a2_b2;
        let products = (n - 1.0) * a2_b2 + 2.0 * (n - 2.0) * a2_bc + (n - 2.0) * (n - 3.0) * abcd;
        let both = 2.0 * (a3_b + (n - 2.0) * a2_bc);
        (ends + 4.0 * both + 4.0 * products) / (s2 * s2)
    }

    fn sum_of_powers(&self, power: i32) -> f64 {
        self.centred.iter().map(|rank| rank.powi(power)).sum()
    }
}

fn squared_steps(x: &[f64]) -> f64 {
    x.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(x: &[f64]) -> Dependence {
        dependence(&Samples::new(x).unwrap()).unwrap()
    }

    fn ranks(x: &[f64]) -> Ranks {
        Ranks::of(&Samples::new(x).unwrap())
    }

    /// All orders of `x`
    fn orders(x: &[f64]) -> Vec<Vec<f64>> {
        let [first, rest @ ..] = x else { return vec![Vec::new()] };
        let insert = |order: Vec<f64>| {
            (0..=order.len()).map(move |at| [&order[..at], &[*first], &order[at..]].concat()).collect::<Vec<_>>()
        };
        orders(rest).into_iter().flat_map(insert).collect()
    }

    #[test]
    fn ties_share_the_mean_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 1.0, 2.0]).centred, [3.0, -2.0, -2.0, 1.0]);
    }

    #[test]
    fn fewer_than_six_samples_have_no_dependence() {
        let five = Samples::new(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((dependence(&five), widening(&five)), (None, 1.0));
    }

    #[test]
    fn equal_samples_are_independent() {
        let expected = Dependence { correlation: 0.0, p_value: 1.0, widening: 1.0, is_checkable: true };
        assert_eq!(of(&[5.0; 20]), expected);
    }

    #[test]
    fn the_correlation_is_corrected_and_limited() {
        // The ranks' correlation is 0.5, corrected by (1 + 4 · 0.5)/6 to 1; the limit is 5/7.
        let rising = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert!((rising.correlation - 5.0 / 7.0).abs() < 1e-12);
        assert!((rising.widening - 6.0_f64.sqrt()).abs() < 1e-12);
        // NumPy: r = −0.583333 for the ranks 1 5 2 6 3 7 4 8, corrected by (1 + 4r)/8.
        let swinging = of(&[1.0, 5.0, 2.0, 6.0, 3.0, 7.0, 4.0, 8.0]);
        assert_eq!(swinging.widening, 1.0);
        assert!(swinging.correlation < 0.0);
    }

    #[test]
    fn the_approximation_is_near_the_exact_p_value() {
        let all = orders(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let steps: Vec<f64> = all.iter().map(|order| squared_steps(&ranks(order).centred)).collect();
        let p_values: Vec<f64> = all.iter().map(|order| of(order).p_value).collect();
        for (order, &p_value) in all.iter().zip(&p_values).step_by(97) {
            let observed = squared_steps(&ranks(order).centred);
            let exact = steps.iter().filter(|steps| **steps <= observed).count() as f64 / all.len() as f64;
            assert!((p_value - exact).abs() < 0.03, "{order:?}: {p_value}, exactly {exact}");
        }
        // The 40 smoothest of the 5040 orders.
        assert_eq!(p_values.iter().filter(|p_value| **p_value < 0.01).count(), 40);
    }

    #[test]
    fn the_variance_is_that_over_all_orders() {
        for x in [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.0, 1.0, 1.0, 2.0, 5.0, 5.0, 9.0]] {
            let ratio = |order: &Vec<f64>| squared_steps(&ranks(order).centred) / ranks(order).sum_of_powers(2);
            let ratios: Vec<f64> = orders(&x).iter().map(ratio).collect();
            let count = ratios.len() as f64;
            let mean = ratios.iter().sum::<f64>() / count;
            let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / count;
            assert!((mean - 2.0).abs() < 1e-9);
            assert!((ranks(&x).variance() - variance).abs() < 1e-9, "{} is not {variance}", ranks(&x).variance());
        }
    }

    #[test]
    fn the_variance_without_ties_is_bartels() {
        let n = 12.0;
        let bartels = 4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0) * (n - 1.0));
        let x: Vec<f64> = (0..12).map(|i| f64::from(i * 5 % 12)).collect();
        assert!((ranks(&x).variance() - bartels).abs() < 1e-12);
    }

    #[test]
    fn a_single_outlier_among_equal_samples_is_not_dependence() {
        for at in 0..20 {
            let mut x = [7.0; 20];
            x[at] = 9.0;
            assert!(of(&x).p_value > 0.05, "at {at}: {}", of(&x).p_value);
        }
    }

    #[test]
    fn absence_counts_from_20_samples_on_and_a_finding_always() {
        let swinging: Vec<f64> = (0..20).map(|i| f64::from(i % 2)).collect();
        assert_eq!(of(&swinging).check(0.01), DependenceCheck::NotFound);
        assert_eq!(of(&swinging[..19]).check(0.01), DependenceCheck::TooFewSamples);
        let rising: Vec<f64> = (0..12).map(f64::from).collect();
        assert_eq!(of(&rising).check(0.01), DependenceCheck::Found);
    }

    #[test]
    fn dependence_of_many_samples_is_computed() {
        let rising: Vec<f64> = (0..100_000).map(f64::from).collect();
        assert_eq!(of(&rising).p_value, 0.0);
        assert!(of(&rising).widening.is_finite());
    }
}

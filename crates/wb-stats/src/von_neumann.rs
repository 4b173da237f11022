use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::{MIN_SAMPLES_FOR_DEPENDENCE, Samples};

/// The one-sided p-value of von Neumann's ratio: the share of the orders of these samples in which successive ones are
/// at least as similar. 1 if all are equal.
pub(crate) fn p_value(samples: &Samples) -> f64 {
    const MAX_FOR_PERMUTATION: usize = 1000;
    let Some(deviations) = Deviations::new(samples) else { return 1.0 };
    if samples.count() <= MAX_FOR_PERMUTATION {
        deviations.permutation_p_value()
    } else {
        deviations.approximate_p_value()
    }
}

/// The deviations of samples in time order from their median, in units of their median size, limited to
/// [`LIMIT`](Self::LIMIT). No limit depends on the order, so a permutation test remains exact
struct Deviations(Vec<f64>);

impl Deviations {
    /// Twice the standard deviation of a normal population. With lower limits less dependence is found in normal samples,
    /// and with higher ones more of it is hidden by outliers
    const LIMIT: f64 = 3.0;

    /// `None` if all samples are equal, but for one at either end
    fn new(samples: &Samples) -> Option<Self> {
        let (median, (low, high)) = (samples.median(), inner_range(samples));
        let deviations = samples.in_order().iter().map(|x| x.clamp(low, high) - median);
        // Of most figures of a coarse clock the deviation is zero, which is not a unit.
        let mut sizes: Vec<f64> = deviations.clone().map(f64::abs).filter(|size| *size > 0.0).collect();
        let middle = sizes.len() / 2;
        let unit = *(!sizes.is_empty()).then(|| sizes.select_nth_unstable_by(middle, f64::total_cmp).1)?;
        Some(Self(deviations.map(|x| (x / unit).clamp(-Self::LIMIT, Self::LIMIT)).collect()))
    }

    /// From random orders, until enough of them are as extreme (Besag, Clifford 1991); seeded, at least 0.0005
    fn permutation_p_value(&self) -> f64 {
        const ENOUGH: usize = 20;
        const MAX: usize = 1999;
        // Orders of the same steps differ by rounding.
        const TOLERANCE: f64 = 1e-9;
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut shuffled = self.0.clone();
        let observed = squared_steps(&self.0) * (1.0 + TOLERANCE);
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

    /// The normal distribution with the ratio's mean over all orders, 2, and variance
    fn approximate_p_value(&self) -> f64 {
        let moments = Moments::new(&self.0);
        Normal::standard().cdf((squared_steps(&self.0) / moments.squares - 2.0) / moments.variance_of_ratio().sqrt())
    }
}

/// The range of the samples without the lowest and the highest, as which these count: a single outlier does not hide
/// dependence. Fewer samples are too few to do without.
fn inner_range(samples: &Samples) -> (f64, f64) {
    let sorted = samples.sorted();
    let left_out = usize::from(sorted.len() >= MIN_SAMPLES_FOR_DEPENDENCE);
    (sorted[left_out], sorted[sorted.len() - 1 - left_out])
}

fn squared_steps(x: &[f64]) -> f64 {
    x.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum()
}

/// The sums of powers of deviations from the mean
struct Moments {
    count: f64,
    squares: f64,
    fourths: f64,
}

impl Moments {
    fn new(x: &[f64]) -> Self {
        let count = x.len() as f64;
        let mean = x.iter().sum::<f64>() / count;
        let sum = |power| x.iter().map(|x| (x - mean).powi(power)).sum();
        Self { count, squares: sum(2), fourths: sum(4) }
    }

    /// The variance of von Neumann's ratio over all orders (by the method of Wald, Wolfowitz 1943; of ranks without ties
    /// the same as the formula of Bartels 1982)
    fn variance_of_ratio(&self) -> f64 {
        let Self { count: n, squares: s2, fourths: s4 } = *self;
        // The expected products of distinct deviations: a²b², a³b, a²bc and abcd.
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
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    fn deviations(x: &[f64]) -> Deviations {
        Deviations::new(&Samples::new(x).unwrap()).unwrap()
    }

    /// All orders of `x`
    fn orders(x: &[f64]) -> Vec<Vec<f64>> {
        let [first, rest @ ..] = x else { return vec![Vec::new()] };
        let insert = |order: Vec<f64>| {
            (0..=order.len())
                .map(move |index| [&order[..index], &[*first], &order[index..]].concat())
                .collect::<Vec<_>>()
        };
        orders(rest).into_iter().flat_map(insert).collect()
    }

    #[test]
    fn deviations_are_limited_by_their_median() {
        assert_eq!(deviations(&[5.0, 3.0, 7.0, 4.0, 1000.0]).0, [0.0, -1.0, 1.0, -0.5, 3.0]);
    }

    #[test]
    fn of_many_samples_both_extremes_count_as_the_next() {
        let mut x: Vec<f64> = (0..20).map(f64::from).collect();
        x[10] = -50.0;
        assert_eq!(deviations(&x).0[10], deviations(&x).0[0]);
        assert_eq!(deviations(&x).0[19], deviations(&x).0[18]);
        assert_ne!(deviations(&x[..19]).0[10], deviations(&x[..19]).0[0]);
    }

    #[test]
    fn the_unit_of_few_samples_that_differ_is_their_own() {
        assert_eq!(deviations(&[7.0, 7.0, 7.0, 7.0, 9.0]).0, [0.0, 0.0, 0.0, 0.0, 1.0]);
        assert!(Deviations::new(&Samples::new(&[7.0; 5]).unwrap()).is_none());
    }

    #[test]
    fn the_p_value_is_the_share_of_orders_that_are_as_smooth() {
        let all = orders(&[1.0, 2.0, 3.5, 4.0, 5.0, 6.0, 70.0]);
        let steps: Vec<f64> = all.iter().map(|order| squared_steps(&deviations(order).0)).collect();
        for order in all.iter().step_by(97) {
            let observed = squared_steps(&deviations(order).0) + 1e-9;
            let exact = steps.iter().filter(|steps| **steps <= observed).count() as f64 / all.len() as f64;
            let p_value = p_value(&Samples::new(order).unwrap());
            // Twenty extreme orders have a standard error of more than a fifth.
            assert!((p_value - exact).abs() < exact + 0.001, "{order:?}: {p_value}, exactly {exact}");
        }
    }

    #[test]
    fn many_samples_have_nearly_the_p_value_of_random_orders() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let x: Vec<f64> = (0..1000).map(|_| random.random()).collect();
        let (permuted, approximate) = (deviations(&x).permutation_p_value(), deviations(&x).approximate_p_value());
        assert!((0.01..0.5).contains(&permuted), "{permuted}");
        assert!((permuted - approximate).abs() < 0.5 * permuted, "{permuted}, approximately {approximate}");
    }

    #[test]
    fn the_variance_is_that_over_all_orders() {
        for x in [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.0, 1.0, 1.0, 2.0, 5.0, 5.0, 9.0]] {
            let moments = Moments::new(&x);
            let ratios: Vec<f64> = orders(&x).iter().map(|order| squared_steps(order) / moments.squares).collect();
            let count = ratios.len() as f64;
            let mean = ratios.iter().sum::<f64>() / count;
            let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / count;
            assert!((mean - 2.0).abs() < 1e-9);
            assert!((moments.variance_of_ratio() - variance).abs() < 1e-9, "not {variance}");
        }
    }

    #[test]
    fn the_variance_of_ranks_is_bartels() {
        let n = 12.0;
        let bartels = 4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0) * (n - 1.0));
        let x: Vec<f64> = (0..12).map(|i| f64::from(i * 5 % 12)).collect();
        assert!((Moments::new(&x).variance_of_ratio() - bartels).abs() < 1e-12);
    }

    #[test]
    fn a_single_outlier_among_equal_samples_is_not_dependence() {
        for index in 0..20 {
            let mut x = [7.0; 20];
            x[index] = 9.0;
            let p_value = p_value(&Samples::new(&x).unwrap());
            assert!(p_value > 0.05, "at {index}: {p_value}");
        }
    }

    #[test]
    fn an_outlier_does_not_hide_dependence() {
        for index in 0..24 {
            let mut x: Vec<f64> = (0..24).map(|index| (f64::from(index) / 3.0).sin()).collect();
            x[index] = 1000.0;
            let p_value = p_value(&Samples::new(&x).unwrap());
            assert!(p_value < 0.01, "at {index}: {p_value}");
        }
    }
}

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MIN_SAMPLES_FOR_INTERVAL, Samples, von_neumann};

/// The minimum number of samples with which dependence can be ruled out. From 20 samples on, the test finds it in at
/// least 95 % of the cells whose successive samples correlate by 0.9; with 12 samples, it finds it in half of them.
pub const MIN_SAMPLES_FOR_DEPENDENCE: usize = 20;

/// Below, no order of the samples is significant at 1 %, and the median has no interval to be widened.
const MIN_SAMPLES: usize = MIN_SAMPLES_FOR_INTERVAL;

/// The serial dependence of samples in time order
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dependence {
    /// The correlation of the ranks of successive samples, corrected for bias; −1 to 1, exclusive at the upper end
    pub correlation: f64,
    /// The one-sided p-value: the probability of successive samples that are at least as similar, if samples are
    /// independent
    pub p_value: f64,
    /// The p-value below which dependence is found; follows from the number of samples
    pub significance: f64,
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
    pub fn check(&self) -> DependenceCheck {
        if self.p_value < self.significance {
            DependenceCheck::Found
        } else if self.is_checkable {
            DependenceCheck::NotFound
        } else {
            DependenceCheck::TooFewSamples
        }
    }
}

/// Tests whether samples are independent of those before them, and estimates by how much dependence widens the interval
/// of their median. `None` below 6 samples.
///
/// The test is von Neumann's ratio (1941), one-sided: only positive dependence makes intervals too narrow. A trend is a
/// dependence, too. It is a permutation test, so that heavy tails do not cause dependence, of values with limited
/// outliers, so that these hardly hide it: ranks and their normal scores find less where there are none. The
/// correlation is that of ranks.
pub fn dependence(samples: &Samples) -> Option<Dependence> {
    let n = samples.count();
    let correlation = (n >= MIN_SAMPLES).then(|| Ranks::new(samples).correlation())?;
    Some(Dependence {
        correlation,
        p_value: von_neumann::p_value(samples),
        significance: significance_of(n),
        widening: widening_of(correlation),
        is_checkable: n >= MIN_SAMPLES_FOR_DEPENDENCE,
    })
}

/// 1 %, as for other findings; 5 % where 1 % would miss more than one in twenty cells whose successive samples
/// correlate by 0.9, and there are enough samples to miss no more at 5 %
fn significance_of(count: usize) -> f64 {
    const MIN_SAMPLES_AT_ONE_PERCENT: usize = 25;
    if (MIN_SAMPLES_FOR_DEPENDENCE..MIN_SAMPLES_AT_ONE_PERCENT).contains(&count) { 0.05 } else { 0.01 }
}

/// The factor of [`Dependence::widening`], without the test; 1 below 6 samples
pub fn widening(samples: &Samples) -> f64 {
    if samples.count() < MIN_SAMPLES { 1.0 } else { widening_of(Ranks::new(samples).correlation()) }
}

/// The factor by which dependence widens an interval. The mean of n samples with a first-order autoregressive
/// dependence varies like the mean of n·(1 − r)/(1 + r) independent samples (Bayley, Hammersley 1946); the median
/// varies a little less
fn widening_of(correlation: f64) -> f64 {
    let r = correlation.max(0.0);
    ((1.0 + r) / (1.0 - r)).sqrt()
}

/// The ranks of samples in time order, as whole numbers: twice the distance of each midrank from the mean rank
struct Ranks(Vec<f64>);

impl Ranks {
    fn new(samples: &Samples) -> Self {
        let x = samples.in_order();
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_unstable_by(|&a, &b| x[a].total_cmp(&x[b]));
        let (mut centred, mut below) = (vec![0.0; x.len()], 0);
        for equal in order.chunk_by(|&a, &b| x[a] == x[b]) {
            let midrank = (2 * below + equal.len()) as f64 - x.len() as f64;
            equal.iter().for_each(|&index| centred[index] = midrank);
            below += equal.len();
        }
        Self(centred)
    }

    /// The lag-1 correlation, corrected for the bias −(1 + 4r)/n that the estimated mean causes (Marriott, Pope 1954;
    /// Kendall 1954).
    ///
    /// The correction is by the estimate itself. Solved for the true correlation, (n·r + 1)/(n − 4), it would triple
    /// the noise of six samples: under the stopping rule that covers about 1 % more at a correlation of 0.5, and takes
    /// up to half a sample more of independent ones. At most (n − 1)/(n + 1), at which n samples are worth one.
    fn correlation(&self) -> f64 {
        let n = self.0.len() as f64;
        let squares = self.0.iter().map(|rank| rank * rank).sum::<f64>();
        if squares == 0.0 {
            return 0.0;
        }
        let r = self.0.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
        (r + (1.0 + 4.0 * r) / n).clamp(-1.0, (n - 1.0) / (n + 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(x: &[f64]) -> Dependence {
        dependence(&Samples::new(x).unwrap()).unwrap()
    }

    fn ranks(x: &[f64]) -> Ranks {
        Ranks::new(&Samples::new(x).unwrap())
    }

    #[test]
    fn ties_share_the_mean_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 1.0, 2.0]).0, [3.0, -2.0, -2.0, 1.0]);
    }

    #[test]
    fn fewer_than_six_samples_have_no_dependence() {
        let five = Samples::new(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((dependence(&five), widening(&five)), (None, 1.0));
    }

    #[test]
    fn equal_samples_are_independent() {
        let expected =
            Dependence { correlation: 0.0, p_value: 1.0, significance: 0.05, widening: 1.0, is_checkable: true };
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
    fn absence_counts_from_20_samples_on_and_a_finding_always() {
        let swinging: Vec<f64> = (0..20).map(|i| f64::from(i % 2)).collect();
        assert_eq!(of(&swinging).check(), DependenceCheck::NotFound);
        assert_eq!(of(&swinging[..19]).check(), DependenceCheck::TooFewSamples);
        let rising: Vec<f64> = (0..12).map(f64::from).collect();
        assert_eq!(of(&rising).check(), DependenceCheck::Found);
    }

    #[test]
    fn the_significance_follows_from_the_number_of_samples() {
        let of_count = |count: u32| of(&(0..count).map(f64::from).collect::<Vec<_>>()).significance;
        assert_eq!([6, 19, 20, 24, 25, 1001].map(of_count), [0.01, 0.01, 0.05, 0.05, 0.01, 0.01]);
    }

    #[test]
    fn dependence_of_many_samples_is_computed() {
        let rising: Vec<f64> = (0..100_000).map(f64::from).collect();
        assert_eq!(of(&rising).p_value, 0.0);
        assert!(of(&rising).widening.is_finite());
    }
}

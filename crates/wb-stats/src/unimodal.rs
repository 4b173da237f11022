//! Discrete distributions with one mode, by the ratios of neighbouring probabilities.

/// The part of a distribution of counts that is not negligible.
pub(crate) struct Unimodal {
    /// The smallest count of the part.
    pub(crate) first: u64,
    /// The probabilities from that count on.
    pub(crate) masses: Vec<f64>,
}

impl Unimodal {
    /// The distribution of counts from `lowest` to `highest`, computed from the `mode` outwards and then normalised: no
    /// underflow, however many trials there are, and no loss of digits as by logarithms of factorials.
    ///
    /// `odds` is the probability of the next count relative to that of its argument. What is below `negligible`, relative
    /// to the mode, is left out.
    pub(crate) fn new([lowest, mode, highest]: [u64; 3], negligible: f64, odds: impl Fn(u64) -> f64) -> Self {
        let falling = |mass: &f64| *mass > negligible;
        let lower = (lowest..mode).rev().scan(1.0, |mass, count| {
            *mass /= odds(count);
            Some(*mass)
        });
        let upper = (mode..highest).scan(1.0, |mass, count| {
            *mass *= odds(count);
            Some(*mass)
        });
        let mut masses: Vec<f64> = lower.take_while(falling).collect();
        let first = mode - masses.len() as u64;
        masses.reverse();
        masses.push(1.0);
        masses.extend(upper.take_while(falling));
        let sum: f64 = masses.iter().sum();
        masses.iter_mut().for_each(|mass| *mass /= sum);
        Self { first, masses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binomial_distribution_is_built_from_its_mode() {
        // Four trials at one half.
        let binomial = Unimodal::new([0, 2, 4], 0.0, |count| (4 - count) as f64 / (count + 1) as f64);
        assert_eq!(binomial.first, 0);
        let expected = [1.0, 4.0, 6.0, 4.0, 1.0].map(|ways| ways / 16.0);
        assert!(binomial.masses.iter().zip(expected).all(|(mass, expected)| (mass - expected).abs() < 1e-15));
    }

    #[test]
    fn what_is_negligible_is_left_out() {
        let part = Unimodal::new([0, 5, 10], 0.4, |count| if count < 5 { 2.0 } else { 0.5 });
        assert_eq!((part.first, part.masses.len()), (4, 3));
    }
}

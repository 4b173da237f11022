//! Multiple testing: control of the false discovery rate, and of any false discovery at all.

/// The result of the Benjamini–Hochberg procedure.
#[derive(Debug, Clone, PartialEq)]
pub struct Discoveries {
    /// The adjusted p-values, in the order of the input.
    pub adjusted: Vec<f64>,
    /// The number of discoveries at the rate.
    pub count: usize,
}

/// Adjusts p-values so that, of those at or below `rate`, on average at most the fraction `rate` is false (Benjamini,
/// Hochberg 1995), for tests that are independent or positively dependent (Benjamini, Yekutieli 2001).
pub fn benjamini_hochberg(p: &[f64], rate: f64) -> Discoveries {
    let family = p.len() as f64;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|&one, &other| p[one].total_cmp(&p[other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut smallest: f64 = 1.0;
    for (rank, &position) in order.iter().enumerate().rev() {
        // Rounding must not make it smaller than the original value.
        smallest = smallest.min((p[position] * family / (rank + 1) as f64).max(p[position]));
        adjusted[position] = smallest;
    }
    let count = adjusted.iter().filter(|adjusted| **adjusted <= rate).count();
    Discoveries { adjusted, count }
}

/// Adjusts p-values so that the probability of any false discovery at or below a level is at most that level, however
/// the tests depend on each other (Holm 1979). In the order of the input.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|&one, &other| p[one].total_cmp(&p[other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, &position) in order.iter().enumerate() {
        largest = largest.max(p[position] * (p.len() - rank) as f64).min(1.0);
        adjusted[position] = largest;
    }
    adjusted
}

/// The confidence for the intervals of `discoveries` out of a family, such that on average at most the fraction `rate`
/// of them does not cover the truth: 1 − R·q/m (Benjamini, Yekutieli 2005). Zero discoveries count as one.
pub fn selected_confidence(rate: f64, discoveries: usize, family: usize) -> f64 {
    1.0 - rate * discoveries.max(1) as f64 / family.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_1995_has_four_discoveries() {
        // Table of Benjamini and Hochberg (1995), section 4: fifteen comparisons of two treatments.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        let discoveries = benjamini_hochberg(&p, 0.05);
        assert_eq!(discoveries.count, 4);
        assert!((discoveries.adjusted[3] - 0.035_625).abs() < 1e-12);
    }

    #[test]
    fn holms_adjustment_agrees_with_r() {
        // p.adjust(c(0.04, 0.01, 0.03, 0.005, 0.5), "holm")
        let adjusted = holm(&[0.04, 0.01, 0.03, 0.005, 0.5]);
        for (adjusted, expected) in adjusted.iter().zip([0.09, 0.04, 0.09, 0.025, 0.5]) {
            assert!((adjusted - expected).abs() < 1e-15, "{adjusted} is not {expected}");
        }
        assert_eq!((holm(&[]), holm(&[0.9, 0.8])), (vec![], vec![1.0, 1.0]));
    }

    #[test]
    fn a_single_p_value_is_not_adjusted() {
        assert_eq!(benjamini_hochberg(&[0.03], 0.05), Discoveries { adjusted: vec![0.03], count: 1 });
        assert!((selected_confidence(0.05, 1, 1) - 0.95).abs() < 1e-12);
        assert!((selected_confidence(0.05, 0, 0) - 0.95).abs() < 1e-12);
        assert_eq!(benjamini_hochberg(&[], 0.05).count, 0);
    }
}

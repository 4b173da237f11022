//! Many tests at once: how many of the small p-values are worth to be called discoveries.

/// What the procedure of Benjamini and Hochberg comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Discoveries {
    /// The adjusted p-values, in the order of the given ones.
    pub adjusted: Vec<f64>,
    /// How many are discoveries at the rate.
    pub count: usize,
}

/// Adjusts p-values so that of those at or below `rate` no larger share is false on average (Benjamini, Hochberg
/// 1995), for tests that are independent or positively dependent (Benjamini, Yekutieli 2001).
pub fn benjamini_hochberg(p: &[f64], rate: f64) -> Discoveries {
    let family = p.len() as f64;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|&one, &other| p[one].total_cmp(&p[other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (rank, &position) in order.iter().enumerate().rev() {
        // Rounding must not make it smaller than it was.
        least = least.min((p[position] * family / (rank + 1) as f64).max(p[position]));
        adjusted[position] = least;
    }
    let count = adjusted.iter().filter(|adjusted| **adjusted <= rate).count();
    Discoveries { adjusted, count }
}

/// The confidence at which intervals of `discoveries` out of a family are to be taken, so that on average no larger
/// share than `rate` of those misses: 1 − R·q/m (Benjamini, Yekutieli 2005). Without discoveries, as if there was one.
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
        let found = benjamini_hochberg(&p, 0.05);
        assert_eq!(found.count, 4);
        assert!((found.adjusted[3] - 0.035_625).abs() < 1e-12);
    }

    #[test]
    fn one_alone_is_not_adjusted() {
        assert_eq!(benjamini_hochberg(&[0.03], 0.05), Discoveries { adjusted: vec![0.03], count: 1 });
        assert!((selected_confidence(0.05, 1, 1) - 0.95).abs() < 1e-12);
        assert!((selected_confidence(0.05, 0, 0) - 0.95).abs() < 1e-12);
        assert_eq!(benjamini_hochberg(&[], 0.05).count, 0);
    }
}

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
    let family = DiscoveryFamily::new(p.to_vec(), p.len());
    Discoveries { adjusted: p.iter().map(|p| family.adjust(*p)).collect(), count: family.discoveries(rate) }
}

/// A family of p-values, only some of which can be discoveries. The procedure is Benjamini and Hochberg's, with 1 in
/// place of the other p-values. These remain valid that way, and make no room for false discoveries.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveryFamily {
    /// The p-values that can be discoveries, ascending.
    counted: Vec<f64>,
    size: f64,
    /// For each of them and for none, the least adjusted p-value from there on.
    least: Vec<f64>,
    /// The same with a smaller one beside them.
    least_with_another: Vec<f64>,
}

impl DiscoveryFamily {
    /// The p-values that can be discoveries, and the number of all.
    pub fn new(mut counted: Vec<f64>, size: usize) -> Self {
        counted.sort_unstable_by(f64::total_cmp);
        let mut family = Self { counted, size: size as f64, least: Vec::new(), least_with_another: Vec::new() };
        [family.least, family.least_with_another] = [0, 1].map(|others| {
            let mut least = vec![1.0; family.counted.len() + 1];
            for (index, p) in family.counted.iter().enumerate().rev() {
                least[index] = family.adjusted(*p, index + 1 + others).min(least[index + 1]);
            }
            least
        });
        family
    }

    /// The adjusted p-value: the smallest error rate at which `p` is a discovery. Its test must have one of the
    /// p-values that can be discoveries, which is at most as large as `p`.
    pub fn adjust(&self, p: f64) -> f64 {
        let rank = self.counted.partition_point(|other| *other <= p);
        let own = if rank > 0 { self.adjusted(p, rank) } else { 1.0 };
        own.min(self.least[rank])
    }

    /// The adjusted p-value of a test that has no p-value that can be a discovery, as if it had one.
    pub fn adjust_another(&self, p: f64) -> f64 {
        let below = self.counted.partition_point(|other| *other <= p);
        self.adjusted(p, below + 1).min(self.least_with_another[below])
    }

    /// The number of discoveries at a rate.
    pub fn discoveries(&self, rate: f64) -> usize {
        self.least[..self.counted.len()].partition_point(|least| *least <= rate)
    }

    fn adjusted(&self, p: f64, rank: usize) -> f64 {
        // Rounding must not make it smaller than the original value.
        (p * self.size / rank as f64).max(p).min(1.0)
    }
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
    fn what_cannot_be_a_discovery_makes_no_room() {
        let family = DiscoveryFamily::new(vec![0.03], 3);
        assert_eq!((family.discoveries(0.05), family.adjust(0.03)), (0, 0.09));
        // As if it could, beside what can.
        assert_eq!((family.adjust_another(0.001), family.adjust_another(0.04)), (0.003, 0.06));
        assert_eq!(family.adjust_another(0.02), (0.03_f64 * 3.0 / 2.0).min(0.06));
        assert_eq!(DiscoveryFamily::new(vec![], 1).adjust_another(0.03), 0.03);
    }

    #[test]
    fn an_aspect_of_a_test_is_significant_at_the_rate_of_its_adjusted_p_value() {
        let p = [0.001, 0.008, 0.039, 0.041, 0.3];
        let family = DiscoveryFamily::new(p.to_vec(), 8);
        for aspect in [0.001, 0.01, 0.02, 0.04, 0.2, 0.9] {
            let adjusted = family.adjust(aspect);
            let is_significant = |rate: f64| aspect <= rate * family.discoveries(rate) as f64 / 8.0 * (1.0 + 1e-12);
            for rate in [0.01, 0.05, 0.08, 0.1, 0.2, 0.5] {
                assert_eq!(adjusted <= rate, is_significant(rate), "{aspect} {rate}: {adjusted}");
            }
        }
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

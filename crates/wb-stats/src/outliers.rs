use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Samples;

/// Tukey's fences and what lies beyond them
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outliers {
    /// Lower quartile less 1.5 times the distance of the quartiles
    pub low_fence: f64,
    /// Upper quartile plus 1.5 times that distance
    pub high_fence: f64,
    /// The samples beyond either fence, by position in time order
    pub positions: Vec<usize>,
}

/// The samples that lie far out (Tukey, Exploratory Data Analysis, 1977), by type 7 quartiles.
///
/// For looking at, not for leaving out: of normal samples, a quarter of all sets of six have one by chance, a third of all sets of 30.
pub fn outliers(samples: &Samples) -> Outliers {
    let (q1, q3) = (samples.quantile(0.25), samples.quantile(0.75));
    let reach = 1.5 * (q3 - q1);
    let (low_fence, high_fence) = (q1 - reach, q3 + reach);
    let beyond = samples.in_order().iter().enumerate();
    let beyond = beyond.filter(|(_, x)| !(low_fence..=high_fence).contains(*x)).map(|(index, _)| index).collect();
    Outliers { low_fence, high_fence, positions: beyond }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_far_sample_is_named_by_its_place_in_time() {
        let found = outliers(&Samples::new(&[10.0, 99.0, 11.0, 12.0, 10.5, 11.5]).unwrap());
        assert_eq!(found.positions, [1]);
        assert!(found.high_fence < 99.0 && found.low_fence < 10.0);
    }

    #[test]
    fn equal_samples_have_no_outliers() {
        assert!(outliers(&Samples::new(&[0.1; 7]).unwrap()).positions.is_empty());
    }
}

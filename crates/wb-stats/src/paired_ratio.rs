use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{CONFIDENCE, Interval, SampleError, Samples, median_interval};

/// The ratio of two sides that were measured in pairs
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedRatio {
    /// Number of pairs
    pub n: usize,
    /// The median of the ratios a/b
    pub median: f64,
    /// The interval of that median at [`CONFIDENCE`]; absent below 6 pairs
    pub interval: Option<Interval>,
}

/// Why two lists have no paired ratio
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PairError {
    #[error("{a} and {b} samples: expected the same number on both sides")]
    Lengths {
        /// Number of samples of the first side
        a: usize,
        /// Number of samples of the second side
        b: usize,
    },
    /// A sample is zero or negative, so that the pair has no ratio
    #[error("pair {index} is {a} and {b}: expected both above zero")]
    NotPositive {
        /// Position in time order, from 0
        index: usize,
        /// The first side's sample
        a: f64,
        /// The second side's sample
        b: f64,
    },
    /// A side or the ratios are not valid samples
    #[error(transparent)]
    Sample(#[from] SampleError),
}

/// The median of aᵢ/bᵢ and its interval, for samples taken alternately: a disturbance of both samples of a pair cancels
/// out.
///
/// The ratios are ranked by their logarithms, so that exchanging the sides gives the reciprocal of everything. The
/// interval is that of [`median_interval`], hence distribution-free.
pub fn paired_ratio(a: &[f64], b: &[f64]) -> Result<PairedRatio, PairError> {
    if a.len() != b.len() {
        return Err(PairError::Lengths { a: a.len(), b: b.len() });
    }
    let (a, b) = (Samples::new(a)?, Samples::new(b)?);
    let logs = a.in_order().iter().zip(b.in_order()).enumerate().map(|(index, (&a, &b))| {
        if a > 0.0 && b > 0.0 { Ok(a.ln() - b.ln()) } else { Err(PairError::NotPositive { index, a, b }) }
    });
    let logs = Samples::new(&logs.collect::<Result<Vec<_>, _>>()?)?;
    let interval = median_interval(&logs, CONFIDENCE);
    Ok(PairedRatio {
        n: logs.count(),
        median: logs.median().exp(),
        interval: interval.map(|i| Interval { low: i.low.exp(), high: i.high.exp(), ..i }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_disturbance_cancels_out() {
        let ratio = paired_ratio(&[1.1, 2.2, 3.3, 44.0, 5.5, 6.6], &[1.0, 2.0, 3.0, 40.0, 5.0, 6.0]).unwrap();
        let interval = ratio.interval.unwrap();
        assert_eq!(ratio.n, 6);
        assert!((ratio.median - 1.1).abs() < 1e-12);
        assert!((interval.low - 1.1).abs() < 1e-12 && (interval.high - 1.1).abs() < 1e-12);
    }

    #[test]
    fn too_few_pairs_have_a_median_without_an_interval() {
        let ratio = paired_ratio(&[2.0, 8.0], &[1.0, 1.0]).unwrap();
        assert!((ratio.median - 4.0).abs() < 1e-12);
        assert_eq!(ratio.interval, None);
    }

    #[test]
    fn pairs_without_a_ratio_are_refused() {
        assert_eq!(paired_ratio(&[1.0], &[]), Err(PairError::Lengths { a: 1, b: 0 }));
        assert_eq!(paired_ratio(&[], &[]), Err(PairError::Sample(SampleError::Empty)));
        let zero = paired_ratio(&[1.0, 1.0], &[1.0, 0.0]).unwrap_err();
        assert_eq!(zero.to_string(), "pair 1 is 1 and 0: expected both above zero");
    }
}

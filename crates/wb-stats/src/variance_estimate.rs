//! Variances that are estimated with a limited number of degrees of freedom.

use statrs::distribution::StudentsT;

use crate::Interval;
use crate::student::student_quantile;

/// An estimate of a variance with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceEstimate {
    /// The variance; 0 or more.
    pub variance: f64,
    /// The degrees of freedom; `f64::INFINITY` for a variance that is known.
    pub degrees: f64,
}

impl VarianceEstimate {
    /// The variance of a log ratio whose interval is given: half its width on logarithms, divided by the quantile of
    /// Student's t with these degrees of freedom. `None` if an end is not above zero or not finite,
    /// or with less than one degree of freedom.
    pub fn from_interval(interval: &Interval, degrees: f64) -> Option<Self> {
        let half = (interval.high.ln() - interval.low.ln()) / 2.0;
        if interval.low > 0.0 { Self::from_half_width(half, interval.confidence, degrees) } else { None }
    }

    /// The variance of an estimate whose interval has this half width: divided by the quantile of Student's t with these
    /// degrees of freedom. `None` if the width is not finite, or with less than one degree of freedom.
    pub fn from_half_width(half: f64, confidence: f64, degrees: f64) -> Option<Self> {
        let valid = half.is_finite() && confidence > 0.0 && confidence < 1.0 && degrees >= 1.0;
        let student = StudentsT::new(0.0, 1.0, degrees).ok().filter(|_| valid)?;
        let quantile = student_quantile(&student, (1.0 + confidence) / 2.0);
        Some(Self { variance: (half.max(0.0) / quantile).powi(2), degrees })
    }

    /// The variance of a sum of independent terms, with the degrees of freedom of Satterthwaite (1946).
    pub fn sum(terms: &[Self]) -> Self {
        let variance = terms.iter().map(|term| term.variance).sum::<f64>();
        // Shares of the sum, since squares of variances can underflow.
        let uncertain = terms
            .iter()
            .filter(|term| term.variance > 0.0)
            .map(|term| (term.variance / variance).powi(2) / term.degrees)
            .sum::<f64>();
        // Without any variance there is no uncertainty; a variance that is known has none either.
        Self { variance, degrees: if uncertain > 0.0 { 1.0 / uncertain } else { f64::INFINITY } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_of_freedom_are_satterthwaites() {
        let term = |variance, degrees| VarianceEstimate { variance, degrees };
        let sum = VarianceEstimate::sum(&[term(2.0, 10.0), term(1.0, 5.0)]);
        assert_eq!(sum.variance, 3.0);
        assert!((sum.degrees - 9.0 / (4.0 / 10.0 + 1.0 / 5.0)).abs() < 1e-12);
        assert_eq!(VarianceEstimate::sum(&[term(2.0, 10.0), term(0.0, 0.0)]), term(2.0, 10.0));
        assert_eq!(VarianceEstimate::sum(&[term(0.0, 3.0)]).variance, 0.0);
        let known = VarianceEstimate::sum(&[term(1e-200, f64::INFINITY), term(1e-200, 8.0)]);
        assert!((known.degrees - 32.0).abs() < 1e-9);
    }

    #[test]
    fn the_variance_of_an_interval_gives_that_interval() {
        // t with 18 degrees of freedom: 2.100922 at 97.5 %.
        let half = 2.100_922 * 0.02_f64;
        let interval = Interval { low: (-half).exp(), high: half.exp(), confidence: 0.95 };
        let estimate = VarianceEstimate::from_interval(&interval, 18.0).unwrap();
        assert!((estimate.variance.sqrt() / 0.02 - 1.0).abs() < 1e-6);
        assert_eq!(VarianceEstimate::from_interval(&Interval { low: 0.0, ..interval }, 18.0), None);
        assert_eq!(VarianceEstimate::from_interval(&interval, 0.0), None);
        let point = Interval { low: 2.0, high: 2.0, confidence: 0.95 };
        assert_eq!(VarianceEstimate::from_interval(&point, 18.0).map(|estimate| estimate.variance), Some(0.0));
    }
}

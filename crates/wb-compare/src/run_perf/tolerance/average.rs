//! How the scores of several checks are averaged.

use wb_results::comparison::IdFormat;

use super::{Comparison, Options};

/// A mean of differences in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Average {
    /// The arithmetic mean, as in run-perf.
    Arithmetic,
    /// The geometric mean of the ratios, by which A is as much better than B as B is worse than A.
    Geometric,
}

impl Average {
    /// The mean of differences; `None` without any. A ratio of zero or less has no part in a geometric mean.
    pub(crate) fn of(self, percents: impl Iterator<Item = f64>) -> Option<f64> {
        let terms = percents.filter_map(|percent| self.term(percent));
        let (sum, count) = terms.fold((0.0, 0), |(sum, count), term| (sum + term, count + 1));
        (count > 0).then(|| self.percent(sum / f64::from(count)))
    }

    /// A score in percent with the sign by which positive is better: of a ratio its inverse.
    pub(super) fn oriented(self, score: f64, sign: f64) -> Option<f64> {
        // Without the sign of a negative zero.
        Some(self.percent(self.term(score)? * sign) + 0.0).filter(|percent| percent.is_finite())
    }

    /// What is summed for a difference.
    pub(crate) fn term(self, percent: f64) -> Option<f64> {
        match self {
            Self::Arithmetic => Some(percent),
            Self::Geometric => Some((percent / 100.0).ln_1p()).filter(|term| term.is_finite()),
        }
    }

    /// The difference in percent of a mean of terms.
    pub(super) fn percent(self, term: f64) -> f64 {
        match self {
            Self::Arithmetic => term,
            Self::Geometric => term.exp_m1() * 100.0,
        }
    }
}

impl Comparison<'_> {
    /// How the scores of these checks are averaged: unless [`Options::average`] says it, as in run-perf if they are in
    /// its layout. Scores of models are no ratios.
    pub fn average_of(&self, checks: impl IntoIterator<Item = usize>) -> Average {
        let Options { average, .. } = self.options;
        let is_ratio = |index: usize| {
            let check = self.checks[index];
            !self.models.iter().any(|model| model.entry(check.row, check.statistic).is_some())
                && average.map_or(self.id(index).id_format == IdFormat::Weighbridge, |it| it == Average::Geometric)
        };
        if checks.into_iter().all(is_ratio) { Average::Geometric } else { Average::Arithmetic }
    }

    /// The average improvement of checks in a build in percent; negative if worse. `None` if none has one.
    pub fn average_improvement(&self, checks: impl Iterator<Item = usize> + Clone, build: usize) -> Option<f64> {
        let average = self.average_of(checks.clone());
        average.of(checks.filter_map(|position| self.improvement(position, build, average)))
    }

    /// In percent, as a term of such an average; negative if worse. `None` if not finite or without a better direction.
    pub fn improvement(&self, check: usize, build: usize, average: Average) -> Option<f64> {
        let score = self.cell(check, build)?.score.filter(|score| score.is_finite())?;
        average.oriented(score, self.direction_sign(self.checks[check])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometric_mean_of_both_directions_is_symmetric() {
        let mean = |percents: &[f64], average: Average| average.of(percents.iter().copied()).unwrap();
        assert_eq!(mean(&[100.0, -50.0], Average::Arithmetic), 25.0);
        assert!(mean(&[100.0, -50.0], Average::Geometric).abs() < 1e-9);
        assert_eq!(Average::Geometric.of([-100.0].into_iter()), None);
        // Half the time is twice the speed.
        assert!((Average::Geometric.oriented(-50.0, -1.0).unwrap() - 100.0).abs() < 1e-9);
        assert_eq!(Average::Arithmetic.oriented(-50.0, -1.0), Some(50.0));
    }
}

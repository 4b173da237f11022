//! Summary statistics of scores.
//!
//! The tables correspond to run-perf's `per_type_stats` and `sum_stats`.

use wb_results::comparison::{Statistic, Status};
use wb_stats::Samples;

use super::Comparison;
use super::average::Average;
use super::pattern::{CheckPattern, Wildcards};
use crate::interner::Map;

/// The three tables of averages: by cases, by metric of a test, by profile.
pub const TABLES: [Wildcards; 3] = [Wildcards::PER_CASE, Wildcards::PER_TEST_METRIC, Wildcards::PER_PROFILE];

/// The distribution of scores, in percent, positive if better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    pub average: Average,
    pub count: usize,
    pub min: f64,
    pub first_quartile: f64,
    pub median: f64,
    pub third_quartile: f64,
    pub max: f64,
    /// The mean as if all positive scores were zero.
    pub negative_contribution: f64,
    /// The mean as if all negative scores were zero.
    pub positive_contribution: f64,
    /// The mean: the sum of both contributions, or the product of both as ratios if it is geometric.
    pub mean: f64,
}

impl Distribution {
    fn new(scores: &[f64], average: Average) -> Option<Self> {
        let samples = Samples::new(scores).ok()?;
        let mean = |part: fn(f64) -> f64| average.of(scores.iter().copied().map(part));
        Some(Self {
            average,
            count: samples.count(),
            min: samples.min(),
            first_quartile: samples.quantile(0.25),
            median: samples.median(),
            third_quartile: samples.quantile(0.75),
            max: samples.max(),
            negative_contribution: mean(|score| score.min(0.0))?,
            positive_contribution: mean(|score| score.max(0.0))?,
            mean: mean(|score| score)?,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SummaryRow<'a> {
    pub pattern: CheckPattern<'a>,
    pub means: Option<Distribution>,
    /// In percentage points.
    pub stddevs: Option<Distribution>,
}

impl<'a> Comparison<'a> {
    /// A table of averages over a build's primary checks, in the order of the checks; scores that are not finite are
    /// skipped, and so are those of metrics without a better direction.
    pub fn averages(&self, build: usize, wildcards: Wildcards) -> Vec<SummaryRow<'a>> {
        let mut checks: Map<CheckPattern<'a>, [Vec<usize>; 2]> = Map::default();
        for (index, check) in self.checks.iter().enumerate().filter(|(_, check)| check.primary) {
            let by_statistic = checks.entry(CheckPattern::new(&self.id(index), wildcards)).or_default();
            by_statistic[check.statistic as usize].push(index);
        }
        let row = |(pattern, checks): (_, [Vec<usize>; 2])| {
            let [means, stddevs] =
                Statistic::ALL.map(|statistic| self.distribution(build, &checks[statistic as usize]));
            SummaryRow { pattern, means, stddevs }
        };
        checks.into_iter().map(row).filter(|row| row.means.is_some() || row.stddevs.is_some()).collect()
    }

    /// The scores of a build's primary means with one of these statuses; `None` without any.
    pub fn score_distribution(&self, build: usize, statuses: &[Status]) -> Option<Distribution> {
        let has_status = |index: usize| self.cell(index, build).is_some_and(|cell| statuses.contains(&cell.status));
        let means = self.checks.iter().enumerate();
        let means = means.filter(|(_, check)| check.primary && check.statistic == Statistic::Mean);
        let checks: Vec<usize> = means.map(|(index, _)| index).filter(|index| has_status(*index)).collect();
        self.distribution(build, &checks)
    }

    fn distribution(&self, build: usize, checks: &[usize]) -> Option<Distribution> {
        // Differences of standard deviations are percentage points.
        let is_deviation = |position: &usize| self.checks[*position].statistic == Statistic::Stddev;
        let average =
            if checks.iter().any(is_deviation) { Average::Arithmetic } else { self.average_of(checks.iter().copied()) };
        let improvements = checks.iter().filter_map(|position| self.improvement(*position, build, average));
        Distribution::new(&improvements.collect::<Vec<f64>>(), average)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_sum_of_both_contributions() {
        let distribution = Distribution::new(&[-4.0, 1.0, 2.0, 5.0], Average::Arithmetic).unwrap();
        assert_eq!(
            (distribution.negative_contribution, distribution.positive_contribution, distribution.mean),
            (-1.0, 2.0, 1.0)
        );
        assert_eq!(
            (distribution.min, distribution.first_quartile, distribution.median, distribution.max),
            (-4.0, -0.25, 1.5, 5.0)
        );
        assert_eq!(Distribution::new(&[], Average::Arithmetic), None);
        let ratios = Distribution::new(&[-50.0, 100.0], Average::Geometric).unwrap();
        let factor = |percent: f64| 1.0 + percent / 100.0;
        let product = factor(ratios.negative_contribution) * factor(ratios.positive_contribution);
        assert!(ratios.mean.abs() < 1e-9 && (product - 1.0).abs() < 1e-9, "{ratios:?}");
    }
}

//! Summary statistics of scores.
//!
//! The tables correspond to run-perf's `per_type_stats` and `sum_stats`.

use wb_stats::Samples;

use super::pattern::{CheckPattern, Wildcards};
use super::{Comparison, Status};
use crate::id::Statistic;
use crate::interner::Map;

/// The three tables of averages: by cases, by metric of a test, by profile.
pub const TABLES: [Wildcards; 3] = [Wildcards::PER_CASE, Wildcards::PER_TEST_METRIC, Wildcards::PER_PROFILE];

/// The distribution of scores, in percent. The sum of `negative_contribution` and `positive_contribution` is the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    /// The number of scores.
    pub count: usize,
    /// The minimum.
    pub min: f64,
    /// The first quartile.
    pub first_quartile: f64,
    /// The median.
    pub median: f64,
    /// The third quartile.
    pub third_quartile: f64,
    /// The maximum.
    pub max: f64,
    /// The sum of all negative scores, divided by the number of all scores.
    pub negative_contribution: f64,
    /// The sum of all positive scores, divided by the number of all scores.
    pub positive_contribution: f64,
}

impl Distribution {
    /// The distribution of finite scores; `None` without any.
    fn of(scores: &[f64]) -> Option<Self> {
        let samples = Samples::new(scores).ok()?;
        let contribution =
            |counts: fn(&f64) -> bool| scores.iter().copied().filter(counts).sum::<f64>() / scores.len() as f64;
        Some(Self {
            count: samples.count(),
            min: samples.min(),
            first_quartile: samples.quantile(0.25),
            median: samples.median(),
            third_quartile: samples.quantile(0.75),
            max: samples.max(),
            negative_contribution: contribution(|score| *score < 0.0),
            positive_contribution: contribution(|score| *score > 0.0),
        })
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.negative_contribution + self.positive_contribution
    }
}

/// A row of a table of averages.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryRow<'a> {
    /// The pattern of the checks.
    pub pattern: CheckPattern<'a>,
    /// The scores of their means.
    pub means: Option<Distribution>,
    /// The scores of their standard deviations.
    pub stddevs: Option<Distribution>,
}

impl<'a> Comparison<'a> {
    /// A table of averages over a build's primary checks, in the order of the checks; scores that are not finite are
    /// skipped.
    pub fn averages(&self, build: usize, wildcards: Wildcards) -> Vec<SummaryRow<'a>> {
        let mut scores: Map<CheckPattern<'a>, [Vec<f64>; 2]> = Map::default();
        for (at, score) in self.finite_scores(build) {
            let by_statistic = scores.entry(CheckPattern::of(&self.id(at), wildcards)).or_default();
            by_statistic[self.checks[at].statistic as usize].push(score);
        }
        let row = |(pattern, scores): (_, [Vec<f64>; 2])| {
            let [means, stddevs] = Statistic::ALL.map(|statistic| Distribution::of(&scores[statistic as usize]));
            SummaryRow { pattern, means, stddevs }
        };
        scores.into_iter().map(row).collect()
    }

    /// The distribution of a build's primary scores with one of these statuses; `None` without any.
    pub fn score_distribution(&self, build: usize, statuses: &[Status]) -> Option<Distribution> {
        let has_status = |at: &usize| self.cell(*at, build).is_some_and(|cell| statuses.contains(&cell.status));
        let scores: Vec<_> =
            self.finite_scores(build).filter(|(at, _)| has_status(at)).map(|(_, score)| score).collect();
        Distribution::of(&scores)
    }

    fn finite_scores(&self, build: usize) -> impl Iterator<Item = (usize, f64)> {
        let primary = self.checks.iter().enumerate().filter(|(_, check)| check.primary);
        primary.filter_map(move |(at, _)| Some((at, self.cell(at, build)?.score.filter(|score| score.is_finite())?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_sum_of_both_contributions() {
        let distribution = Distribution::of(&[-4.0, 1.0, 2.0, 5.0]).unwrap();
        assert_eq!(
            (distribution.negative_contribution, distribution.positive_contribution, distribution.mean()),
            (-1.0, 2.0, 1.0)
        );
        assert_eq!(
            (distribution.min, distribution.first_quartile, distribution.median, distribution.max),
            (-4.0, -0.25, 1.5, 5.0)
        );
        assert_eq!(Distribution::of(&[]), None);
    }
}

//! Scores of many checks in a few figures.
//!
//! The tables are those of run-perf's `per_type_stats` and `sum_stats`.

use wb_stats::Samples;

use super::pattern::{CheckPattern, Wildcards};
use super::{Comparison, Status};
use crate::id::Statistic;
use crate::interner::Map;

/// The three tables of averages: by cases, by metric of a test, by profile.
pub const TABLES: [Wildcards; 3] = [Wildcards::CASES, Wildcards::METRIC_OF_TEST, Wildcards::PROFILE];

/// How scores are spread, in percent. Negatives and positives together are the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    /// How many there are.
    pub count: usize,
    /// The lowest.
    pub min: f64,
    /// A quarter is below.
    pub first_quartile: f64,
    /// Half is below.
    pub median: f64,
    /// A quarter is above.
    pub third_quartile: f64,
    /// The highest.
    pub max: f64,
    /// The sum of all below zero, divided by the count of all.
    pub negatives: f64,
    /// The sum of all above zero, divided by the count of all.
    pub positives: f64,
}

impl Distribution {
    /// Of finite scores; none without any.
    fn of(scores: &[f64]) -> Option<Self> {
        let samples = Samples::new(scores).ok()?;
        let mean = |counts: fn(&f64) -> bool| scores.iter().copied().filter(counts).sum::<f64>() / scores.len() as f64;
        Some(Self {
            count: samples.count(),
            min: samples.min(),
            first_quartile: samples.quantile(0.25),
            median: samples.median(),
            third_quartile: samples.quantile(0.75),
            max: samples.max(),
            negatives: mean(|score| *score < 0.0),
            positives: mean(|score| *score > 0.0),
        })
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.negatives + self.positives
    }
}

/// A row of a table of averages.
#[derive(Debug, Clone, PartialEq)]
pub struct AverageRow<'a> {
    /// Which checks.
    pub id: CheckPattern<'a>,
    /// The scores of their means.
    pub means: Option<Distribution>,
    /// The scores of their standard deviations.
    pub stddevs: Option<Distribution>,
}

impl<'a> Comparison<'a> {
    /// A table of averages over a build's primary checks, in the order of the checks; scores that are not finite are
    /// left out.
    pub fn averages(&self, build: usize, stars: Wildcards) -> Vec<AverageRow<'a>> {
        let mut scores: Map<CheckPattern<'a>, [Vec<f64>; 2]> = Map::default();
        for (at, score) in self.finite_scores(build) {
            let of_both = scores.entry(CheckPattern::of(&self.id(at), stars)).or_default();
            of_both[self.checks[at].statistic as usize].push(score);
        }
        let row = |(id, scores): (_, [Vec<f64>; 2])| {
            let [means, stddevs] = Statistic::ALL.map(|statistic| Distribution::of(&scores[statistic as usize]));
            AverageRow { id, means, stddevs }
        };
        scores.into_iter().map(row).collect()
    }

    /// How a build's primary scores are spread, those with some statuses only; none without any.
    pub fn spread(&self, build: usize, statuses: &[Status]) -> Option<Distribution> {
        let has = |at: &usize| self.cell(*at, build).is_some_and(|cell| statuses.contains(&cell.status));
        let scores: Vec<_> = self.finite_scores(build).filter(|(at, _)| has(at)).map(|(_, score)| score).collect();
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
    fn negatives_and_positives_make_the_mean() {
        let spread = Distribution::of(&[-4.0, 1.0, 2.0, 5.0]).unwrap();
        assert_eq!((spread.negatives, spread.positives, spread.mean()), (-1.0, 2.0, 1.0));
        assert_eq!((spread.min, spread.first_quartile, spread.median, spread.max), (-4.0, -0.25, 1.5, 5.0));
        assert_eq!(Distribution::of(&[]), None);
    }
}

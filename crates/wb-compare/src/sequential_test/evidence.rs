//! What the interim analyses of one variant have shown so far.

use wb_results::comparison::NegligibleRatios;
use wb_stats::{GroupSequentialTest, Interval, LogRatios};

use super::LOG_ZERO;

/// The evidence about a variant's ratio to the first, from all blocks so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evidence {
    /// Of the ratios, by block.
    logs: Vec<f64>,
    sorted: LogRatios,
    /// The sequential p-value of a difference.
    pub(super) difference: f64,
    /// The same, only of analyses in which the ratio was not negligible: differences that are not reported must not make
    /// room for others in the family. 1 without any.
    pub(super) relevant_difference: f64,
    /// The sequential p-values of a ratio below the upper, and above the lower negligible one.
    bounds: [f64; 2],
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            logs: Vec::new(),
            sorted: LogRatios::default(),
            difference: 1.0,
            relevant_difference: 1.0,
            bounds: [1.0; 2],
        }
    }
}

impl Evidence {
    pub(super) fn push(&mut self, log_ratio: f64, test: &GroupSequentialTest, negligible: NegligibleRatios) {
        self.logs.push(log_ratio);
        self.sorted.push(log_ratio);
        let exclusion = |ratio| test.exclusion(&self.sorted, ratio);
        let (Some(one), Some(low), Some(high)) =
            (exclusion(1.0), exclusion(negligible.low), exclusion(negligible.high))
        else {
            return;
        };
        let difference = one.below.min(one.above);
        self.difference = self.difference.min(difference);
        if difference < self.relevant_difference && self.ratio().is_some_and(|ratio| !negligible.contains(ratio)) {
            self.relevant_difference = difference;
        }
        self.bounds = [self.bounds[0].min(high.below), self.bounds[1].min(low.above)];
    }

    pub(super) fn blocks(&self) -> usize {
        self.logs.len()
    }

    /// `None` without blocks.
    pub(super) fn ratio(&self) -> Option<f64> {
        self.sorted.estimate()
    }

    /// Whether the estimate is the ratio of the samples. If it is 0 or infinite, one side is zero in all blocks; zeros
    /// beside other values have a direction, and no ratio.
    pub(super) fn has_ratio(&self) -> bool {
        let is_beyond = |log: &f64| log.abs() > -LOG_ZERO / 2.0;
        let is_finite = self.ratio().is_some_and(|ratio| ratio > 0.0 && ratio.is_finite());
        is_finite || self.logs.iter().all(is_beyond)
    }

    /// The smallest error probability with which the interval is within the negligible ratios.
    pub(super) fn equivalence(&self) -> f64 {
        self.bounds[0].max(self.bounds[1])
    }

    /// What the intervals of all analyses have in common; `None` with too few blocks, or nothing in common.
    pub(super) fn interval(&self, test: &GroupSequentialTest, error: f64) -> Option<Interval> {
        let mut sorted = self.sorted.clone();
        let mut common: Option<Interval> = None;
        // The last one is seldom wider than an earlier one.
        for log in self.logs.iter().rev() {
            let is_narrower = |than: Interval| {
                let excludes = |ratio| test.exclusion(&sorted, ratio);
                excludes(than.low).is_some_and(|p| p.above <= error)
                    || excludes(than.high).is_some_and(|p| p.below <= error)
            };
            if common.is_none_or(is_narrower) {
                common = match (common, test.interval(&sorted, error)) {
                    (Some(one), Some(other)) => {
                        Some(Interval { low: one.low.max(other.low), high: one.high.min(other.high), ..one })
                    }
                    (one, other) => one.or(other),
                };
            }
            sorted.remove(*log);
        }
        common.filter(|interval| interval.low <= interval.high)
    }
}

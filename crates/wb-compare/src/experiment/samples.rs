//! The samples of variants, and the blocks that they form.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::MetricKey;
use wb_results::comparison::AttemptCounts;
use wb_results::experiment::ComparedMetric;

use super::VariantInputs;
use crate::sequential_test::{CaseBlocks, InvalidBlock, MetricBlocks, SequentialTest, VariantAttempts};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantSamples {
    pub name: String,
    /// The variant as given on the command line, with secrets masked: `huge:param:huge-pages=always`.
    pub spec: String,
    /// For each metric of the case the values of the counted samples, each with its round ([`attempt_rounds`]).
    pub values: Vec<Vec<(u32, f64)>>,
    /// Counted or not.
    pub measured_rounds: BTreeSet<u32>,
    /// Of the rounds in which it had its turn.
    pub attempts: VariantAttempts,
    /// Counted samples that were disturbed by activity outside the workload.
    pub disturbed: usize,
    /// The failed attempts at the samples; at warm-ups, if it did not get beyond them.
    pub failures: AttemptCounts,
    /// Whether so many of its last attempts failed that it makes no more.
    pub makes_no_more: bool,
    /// `None` if there are enough samples.
    pub shortfall_reason: Option<String>,
    /// With fewer samples than required.
    pub is_given_up: bool,
    pub inputs: VariantInputs,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CaseSamples {
    /// Without the parameters that variants change.
    pub case: String,
    pub metrics: Vec<ComparedMetric>,
    pub variants: Vec<VariantSamples>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{metric}: {cause}")]
pub struct InvalidMetric {
    pub metric: MetricKey,
    #[source]
    pub cause: InvalidBlock,
}

impl CaseSamples {
    /// The first variant with each other one.
    pub(super) fn pairs(&self) -> impl Iterator<Item = [&VariantSamples; 2]> {
        let (first, others) = self.variants.split_first().unzip();
        let others = others.into_iter().flatten();
        others.filter_map(move |variant| Some([first?, variant]))
    }

    pub(super) fn blocks(&self, sequential_test: &SequentialTest) -> Result<CaseBlocks, InvalidMetric> {
        let metric = |(index, metric): (usize, &ComparedMetric)| {
            let values: Vec<&[(u32, f64)]> =
                self.variants.iter().map(|variant| variant.values[index].as_slice()).collect();
            let blocks = MetricBlocks { direction: metric.direction, blocks: blocks_by_round(&values) };
            let checked = sequential_test.check(&blocks);
            checked.map_err(|cause| InvalidMetric { metric: metric.metric.clone(), cause })?;
            Ok(blocks)
        };
        let metrics = self.metrics.iter().enumerate().map(metric).collect::<Result<_, _>>()?;
        let attempts = self.variants.iter().map(|variant| variant.attempts.clone()).collect();
        Ok(CaseBlocks { metrics, open_rounds: None, ended: self.ended_early(), attempts })
    }

    /// The variants, by index, without which the others were measured; none if there was nothing left to compare.
    fn ended_early(&self) -> BTreeSet<usize> {
        let rounds: Vec<u32> = self.variants.iter().map(|variant| variant.attempts.rounds).collect();
        let mut ended = left_behind(&rounds);
        ended.extend((0..).zip(&self.variants).filter(|(_, variant)| variant.is_given_up).map(|(index, _)| index));
        if ended.contains(&0) || ended.len() + 1 >= self.variants.len() { BTreeSet::new() } else { ended }
    }
}

/// The round of each attempt of a cell, in time order. `takes_turn` says whether the attempt was made at a sample and
/// ended by itself, if only by failing: each round gives one turn to every variant of a case. An interrupted attempt
/// takes none: it is repeated when the run is resumed, and the other variants wait.
pub fn attempt_rounds(takes_turn: impl IntoIterator<Item = bool>) -> impl Iterator<Item = u32> {
    // For the run and for the result alike: both must assign a sample to the same round.
    takes_turn.into_iter().scan(0, |turns, takes_turn| {
        let round = *turns;
        *turns += u32::from(takes_turn);
        Some(round)
    })
}

/// The variants, by index, that the first one has left behind, given the number of rounds of each: they ended early. In
/// the middle of a round the numbers differ by one.
pub fn left_behind(rounds: &[u32]) -> BTreeSet<usize> {
    let first = rounds.first().copied().unwrap_or(0);
    (0..rounds.len()).filter(|index| rounds[*index] + 1 < first).collect()
}

/// The samples of each round, in the order of the variants.
pub fn blocks_by_round(variants: &[&[(u32, f64)]]) -> BTreeMap<u32, Vec<Option<f64>>> {
    // By rounds, not by numbers of samples: after a failed attempt these are of different rounds, of which a drift
    // would count as a difference.
    let mut blocks: BTreeMap<u32, Vec<Option<f64>>> = BTreeMap::new();
    for (index, values) in variants.iter().enumerate() {
        for (round, value) in *values {
            blocks.entry(*round).or_insert_with(|| vec![None; variants.len()])[index] = Some(*value);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_samples_of_a_round() {
        let (one, other) = ([(0, 1.0), (2, 3.0)], [(0, 10.0), (1, 20.0), (2, 30.0)]);
        let blocks = [(0, [Some(1.0), Some(10.0)]), (1, [None, Some(20.0)]), (2, [Some(3.0), Some(30.0)])];
        let expected: BTreeMap<u32, Vec<Option<f64>>> =
            blocks.into_iter().map(|(round, block)| (round, block.to_vec())).collect();
        assert_eq!(blocks_by_round(&[&one, &other]), expected);
        assert_eq!(blocks_by_round(&[&[], &[]]), BTreeMap::new());
    }

    #[test]
    fn a_failed_attempt_takes_a_turn_and_an_interrupted_one_does_not() {
        let [warm_up, sample, failed, interrupted] = [false, true, true, false];
        let rounds: Vec<u32> = attempt_rounds([warm_up, sample, failed, sample, interrupted, sample]).collect();
        assert_eq!(rounds, [0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn variants_that_ended_early_are_left_behind() {
        assert_eq!(left_behind(&[9, 3, 8, 9, 10]), BTreeSet::from([1]));
        assert_eq!(left_behind(&[3, 9, 4]), BTreeSet::new(), "the first one ended");
    }
}

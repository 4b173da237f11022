//! Variants sampled in turns: how each stands to the first, and when that is clear enough to stop.
//!
//! Nothing is run here. Whoever measures gives all blocks so far, each with one sample of every variant taken in random
//! order, and is told after each whether another is needed. [`wb_stats::Looks`] has the rule; the rates at which it errs
//! stand in `docs/statistics.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Direction;
use wb_stats::GroupSequentialTest;

use crate::comparison::ConfidenceInterval;
use crate::statistical::Verdict;
use crate::statistical::verdict::judge;

/// How variants are held against each other. All of it is settled before the first block: whoever raises `most` after a
/// look errs more often than the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The most blocks that are measured.
    pub max_blocks: usize,
    /// A difference of less than so many percent does not matter.
    pub threshold: f64,
    /// The probability that any variant is wrongly said to differ, over all looks and all variants.
    pub error_rate: f64,
    /// Which way is better.
    pub direction: Direction,
}

impl Options {
    /// At most 30 blocks, 5 percent, a rate of 0.05.
    pub fn new(direction: Direction) -> Self {
        Self { max_blocks: 30, threshold: 5.0, error_rate: 0.05, direction }
    }
}

/// The rule for some variants.
#[derive(Debug, Clone, PartialEq)]
pub struct SequentialTest {
    variants: usize,
    sequential: GroupSequentialTest,
    min_blocks: usize,
    options: Options,
}

/// A rule by which nothing could be told.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SequentialTestError {
    /// There is nothing to compare with.
    #[error("variants are compared with the first: at least two are needed")]
    Alone,
    /// The rate is out of what the rule can hold.
    #[error("an error rate of {} % among {variants} variants is {} % for each: 0.05 % to 50 % are possible", .rate * 100.0, .rate_per_variant * 100.0)]
    Rate {
        /// As it was given.
        rate: f64,
        /// So many, the first included.
        variants: usize,
        /// The share of each variant but the first.
        rate_per_variant: f64,
    },
    /// However far apart variants are, so few blocks cannot show it.
    #[error("{most} blocks cannot tell {variants} variants apart at an error rate of {} %: at least {required} are needed", .rate * 100.0)]
    TooFew {
        /// So many there are at most.
        most: usize,
        /// So many variants, the first included.
        variants: usize,
        /// The rate.
        rate: f64,
        /// So many are enough.
        required: usize,
    },
}

/// How the variants stand after some blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantResults {
    /// So many blocks.
    pub blocks: usize,
    /// Whether another block is needed.
    pub state: StoppingState,
    /// Each variant but the first, against the first, in their order.
    pub variants: Vec<VariantResult>,
}

/// Whether another block is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoppingState {
    /// It is.
    Continue,
    /// Every variant has a verdict.
    Decided,
    /// There are as many as were wanted at most, and some variant has no verdict.
    AtLimit,
}

/// How a variant stands to the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantResult {
    /// The variant's samples over those of the first; none before the first block.
    pub ratio: Option<f64>,
    /// Where it lies, whenever and for whatever reason the blocks end; none where these are too few.
    pub interval: Option<ConfidenceInterval>,
    /// What follows.
    pub verdict: Verdict,
}

/// A sample that has no place in a block.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidBlock {
    /// There are more or fewer samples than variants.
    #[error("block {block} has {samples} samples of {variants} variants")]
    Size {
        /// Which, from 1.
        block: usize,
        /// So many has it.
        samples: usize,
        /// So many should it have.
        variants: usize,
    },
    /// A ratio of what is zero, negative or no number says nothing.
    #[error("block {block} has {value} of variant {variant}: ratios need finite samples above zero")]
    Value {
        /// Which, from 1.
        block: usize,
        /// Of which variant, from 1.
        variant: usize,
        /// What it is.
        value: f64,
    },
}

impl SequentialTest {
    /// The rule for so many variants, the first included. The error is shared among the others (Bonferroni).
    pub fn new(variants: usize, options: Options) -> Result<Self, SequentialTestError> {
        let Options { max_blocks: most, error_rate: rate, .. } = options;
        let others = variants.checked_sub(1).filter(|others| *others > 0).ok_or(SequentialTestError::Alone)?;
        let each = rate / others as f64;
        if !(0.0005..=0.5).contains(&each) {
            return Err(SequentialTestError::Rate { rate, variants, rate_per_variant: each });
        }
        let looks = |most: usize| GroupSequentialTest::new(&(1..=most).collect::<Vec<_>>(), each);
        let of_most = looks(most);
        let Some(earliest) = of_most.min_blocks() else {
            // A dozen or so are enough for any rate that is possible.
            let needed = (most + 1..).find(|most| looks(*most).min_blocks().is_some()).unwrap_or(usize::MAX);
            return Err(SequentialTestError::TooFew { most, variants, rate, required: needed });
        };
        Ok(Self { variants, sequential: of_most, min_blocks: earliest, options })
    }

    /// The most blocks.
    pub fn max_blocks(&self) -> usize {
        self.options.max_blocks
    }

    /// The fewest blocks after which a variant can have a verdict.
    pub fn min_blocks(&self) -> usize {
        self.min_blocks
    }

    /// How the variants stand after these blocks, each with one sample of every variant, in the order of the variants.
    /// Blocks beyond the most do not count.
    pub fn evaluate(&self, blocks: &[Vec<f64>]) -> Result<VariantResults, InvalidBlock> {
        let blocks = &blocks[..blocks.len().min(self.options.max_blocks)];
        for (block, samples) in (1..).zip(blocks) {
            if samples.len() != self.variants {
                return Err(InvalidBlock::Size { block, samples: samples.len(), variants: self.variants });
            }
            let bad = (1..).zip(samples).find(|(_, sample)| !(sample.is_finite() && **sample > 0.0));
            if let Some((variant, &value)) = bad {
                return Err(InvalidBlock::Value { block, variant, value });
            }
        }
        let variants: Vec<VariantResult> =
            (1..self.variants).map(|variant| self.evaluate_variant(blocks, variant)).collect();
        let decided = |standing: &VariantResult| standing.verdict != Verdict::Inconclusive;
        let state = match (variants.iter().all(decided), blocks.len() < self.options.max_blocks) {
            (true, _) => StoppingState::Decided,
            (false, true) => StoppingState::Continue,
            (false, false) => StoppingState::AtLimit,
        };
        Ok(VariantResults { blocks: blocks.len(), state, variants })
    }

    fn evaluate_variant(&self, blocks: &[Vec<f64>], variant: usize) -> VariantResult {
        let logs: Vec<f64> = blocks.iter().map(|samples| samples[variant].ln() - samples[0].ln()).collect();
        let Some(looked) = self.sequential.analyze(&logs) else {
            return VariantResult { ratio: None, interval: None, verdict: Verdict::Inconclusive };
        };
        let threshold = self.options.threshold / 100.0;
        let differs = looked.interval.is_some_and(|interval| !interval.contains(1.0));
        let verdict = judge(looked.estimate, looked.interval, differs, self.options.direction, threshold);
        VariantResult { ratio: Some(looked.estimate), interval: looked.interval.map(ConfidenceInterval::from), verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options { max_blocks: 20, threshold: 5.0, error_rate: 0.05, direction: Direction::Lower };

    /// Blocks of the first variant times each of these, a percent more or less.
    fn blocks(count: usize, factors: &[f64]) -> Vec<Vec<f64>> {
        let wobble = |at: usize| 1.0 + 0.002 * ((at * 7 % 11) as f64 - 5.0);
        let block = |at: usize| (0..).zip(factors).map(|(i, factor)| factor * wobble(at + 3 * i)).collect();
        (0..count).map(block).collect()
    }

    fn verdicts(standings: &VariantResults) -> Vec<Verdict> {
        standings.variants.iter().map(|standing| standing.verdict).collect()
    }

    #[test]
    fn each_variant_is_held_against_the_first() {
        let rule = SequentialTest::new(4, OPTIONS).unwrap();
        let standings = rule.evaluate(&blocks(15, &[1.0, 0.8, 1.0, 1.3])).unwrap();
        assert_eq!(verdicts(&standings), [Verdict::Improved, Verdict::Equivalent, Verdict::Regressed]);
        assert_eq!((standings.state, standings.blocks), (StoppingState::Decided, 15));
        let [first, ..] = standings.variants[..] else { panic!("three are held against the first") };
        let ci = first.interval.unwrap();
        assert!(ci.low <= 0.8 && 0.8 <= ci.high && (first.ratio.unwrap() - 0.8).abs() < 0.01, "{first:?}");
        assert!((ci.confidence - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn it_goes_on_until_every_variant_has_a_verdict_or_there_are_no_more_blocks() {
        let rule = SequentialTest::new(3, OPTIONS).unwrap();
        let none = rule.evaluate(&[]).unwrap();
        assert_eq!((none.state, none.variants[0].ratio), (StoppingState::Continue, None));
        let before = rule.evaluate(&blocks(rule.min_blocks() - 1, &[1.0, 2.0, 2.0])).unwrap();
        assert_eq!((before.state, before.variants[0].interval), (StoppingState::Continue, None));
        assert!(before.variants[0].ratio.is_some());
        let clear = rule.evaluate(&blocks(rule.min_blocks(), &[1.0, 2.0, 2.0])).unwrap();
        assert_eq!(clear.state, StoppingState::Decided);
        // As far apart as the threshold: neither beyond it nor within.
        let open = [1.0, 2.0, 1.05];
        assert_eq!(rule.evaluate(&blocks(19, &open)).unwrap().state, StoppingState::Continue);
        let last = rule.evaluate(&blocks(25, &open)).unwrap();
        assert_eq!((last.state, last.blocks), (StoppingState::AtLimit, 20));
        assert_eq!(verdicts(&last), [Verdict::Regressed, Verdict::Inconclusive]);
    }

    #[test]
    fn without_a_better_way_sides_differ() {
        let rule = SequentialTest::new(2, Options { direction: Direction::Neither, ..OPTIONS }).unwrap();
        let standings = rule.evaluate(&blocks(12, &[1.0, 1.5])).unwrap();
        assert_eq!((verdicts(&standings), standings.state), (vec![Verdict::Differs], StoppingState::Decided));
    }

    #[test]
    fn what_could_tell_nothing_is_refused() {
        assert_eq!(SequentialTest::new(1, OPTIONS), Err(SequentialTestError::Alone));
        assert!(matches!(
            SequentialTest::new(2, Options { error_rate: 0.0, ..OPTIONS }),
            Err(SequentialTestError::Rate { .. })
        ));
        assert!(matches!(
            SequentialTest::new(2, Options { error_rate: f64::NAN, ..OPTIONS }),
            Err(SequentialTestError::Rate { .. })
        ));
        for (variants, most, enough) in [(2, 5, 6), (2, 0, 6), (3, 4, 7)] {
            let error = SequentialTest::new(variants, Options { max_blocks: most, ..OPTIONS }).unwrap_err();
            assert!(matches!(error, SequentialTestError::TooFew { required, .. } if required == enough), "{error}");
            assert_eq!(
                SequentialTest::new(variants, Options { max_blocks: enough, ..OPTIONS }).unwrap().min_blocks(),
                enough
            );
        }
    }

    #[test]
    fn a_bad_block_is_named() {
        let rule = SequentialTest::new(2, OPTIONS).unwrap();
        let told = |blocks: &[Vec<f64>]| rule.evaluate(blocks).unwrap_err().to_string();
        assert_eq!(told(&[vec![1.0, 2.0], vec![1.0]]), "block 2 has 1 samples of 2 variants");
        let value = "block 1 has 0 of variant 2: ratios need finite samples above zero";
        assert_eq!(told(&[vec![1.0, 0.0]]), value);
    }
}

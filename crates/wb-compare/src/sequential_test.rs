//! Sequential test of variants sampled in interleaved order: how each compares with the first, and when to stop.
//!
//! Nothing is measured here. The caller passes all blocks so far, each with one sample of every variant taken in random
//! order, and learns after each block whether another one is needed. [`GroupSequentialTest`] decides; its error
//! rates are in `docs/statistics.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Direction;
use wb_stats::GroupSequentialTest;

use crate::comparison::ConfidenceInterval;
use crate::statistical::Verdict;
use crate::statistical::verdict::judge;

/// Settings of the test, fixed before the first block: raising `max_blocks` after an evaluation increases the
/// error rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The maximum number of blocks.
    pub max_blocks: usize,
    /// The smallest relevant difference, in percent.
    pub threshold: f64,
    /// The probability that any variant is wrongly reported as different, over all evaluations and all variants.
    pub error_rate: f64,
    /// The better direction.
    pub direction: Direction,
}

impl Options {
    /// At most 30 blocks, 5 percent, a rate of 0.05.
    pub fn new(direction: Direction) -> Self {
        Self { max_blocks: 30, threshold: 5.0, error_rate: 0.05, direction }
    }
}

/// The sequential test for a number of variants.
#[derive(Debug, Clone, PartialEq)]
pub struct SequentialTest {
    variants: usize,
    sequential: GroupSequentialTest,
    min_blocks: usize,
    options: Options,
}

/// Settings with which nothing could be decided.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SequentialTestError {
    /// Fewer than two variants.
    #[error("too few variants: at least two are required")]
    Alone,
    /// The error rate is out of range.
    #[error("invalid error rate of {} % for {variants} variants: expected 0.05 % to 50 % for each, found {} %", .rate * 100.0, .rate_per_variant * 100.0)]
    Rate {
        /// The requested error rate.
        rate: f64,
        /// The number of variants, the first included.
        variants: usize,
        /// The error rate of each variant but the first.
        rate_per_variant: f64,
    },
    /// The maximum number of blocks is too small to reach significance.
    #[error("too few blocks ({most}) for {variants} variants at an error rate of {} %: at least {required} are required", .rate * 100.0)]
    TooFew {
        /// The maximum number of blocks.
        most: usize,
        /// The number of variants, the first included.
        variants: usize,
        /// The error rate.
        rate: f64,
        /// The required number of blocks.
        required: usize,
    },
}

/// The results of the variants after a number of blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantResults {
    /// The number of blocks.
    pub blocks: usize,
    /// Whether another block is needed.
    pub state: StoppingState,
    /// The result of each variant but the first, in order.
    pub variants: Vec<VariantResult>,
}

/// Whether another block is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoppingState {
    /// Another block is needed.
    Continue,
    /// Every variant has a verdict.
    Decided,
    /// The maximum number of blocks is reached, and some variant has no verdict.
    AtLimit,
}

/// The comparison of a variant with the first variant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantResult {
    /// The ratio of the variant to the first; `None` before the first block.
    pub ratio: Option<f64>,
    /// The confidence interval of the ratio, valid for any stopping time; `None` with too few blocks.
    pub interval: Option<ConfidenceInterval>,
    /// How the variant compares with the first one.
    pub verdict: Verdict,
}

/// An invalid block.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidBlock {
    /// The number of samples is not the number of variants.
    #[error("block {block} has {samples} samples for {variants} variants")]
    Size {
        /// The number of the block, from 1.
        block: usize,
        /// The number of its samples.
        samples: usize,
        /// The expected number of samples.
        variants: usize,
    },
    /// A sample is not a finite value above zero, so it has no ratio.
    #[error("invalid sample {value} of variant {variant} in block {block}: expected a finite value above zero")]
    Value {
        /// The number of the block, from 1.
        block: usize,
        /// The number of the variant, from 1.
        variant: usize,
        /// The value.
        value: f64,
    },
}

impl SequentialTest {
    /// Creates the test for a number of variants, the first included. The error rate is divided among the others
    /// (Bonferroni).
    pub fn new(variants: usize, options: Options) -> Result<Self, SequentialTestError> {
        let Options { max_blocks: most, error_rate: rate, .. } = options;
        let others = variants.checked_sub(1).filter(|others| *others > 0).ok_or(SequentialTestError::Alone)?;
        let each = rate / others as f64;
        if !(0.0005..=0.5).contains(&each) {
            return Err(SequentialTestError::Rate { rate, variants, rate_per_variant: each });
        }
        let sequential_for = |blocks: usize| GroupSequentialTest::new(&(1..=blocks).collect::<Vec<_>>(), each);
        let sequential = sequential_for(most);
        let Some(earliest) = sequential.min_blocks() else {
            // A dozen or so are enough for any valid rate.
            let needed =
                (most + 1..).find(|blocks| sequential_for(*blocks).min_blocks().is_some()).unwrap_or(usize::MAX);
            return Err(SequentialTestError::TooFew { most, variants, rate, required: needed });
        };
        Ok(Self { variants, sequential, min_blocks: earliest, options })
    }

    /// The maximum number of blocks.
    pub fn max_blocks(&self) -> usize {
        self.options.max_blocks
    }

    /// The minimum number of blocks after which a variant can have a verdict.
    pub fn min_blocks(&self) -> usize {
        self.min_blocks
    }

    /// Evaluates the variants after these blocks, each with one sample of every variant, in the order of the variants.
    /// Blocks beyond the maximum are ignored.
    pub fn evaluate(&self, blocks: &[Vec<f64>]) -> Result<VariantResults, InvalidBlock> {
        let blocks = &blocks[..blocks.len().min(self.options.max_blocks)];
        for (block, samples) in (1..).zip(blocks) {
            if samples.len() != self.variants {
                return Err(InvalidBlock::Size { block, samples: samples.len(), variants: self.variants });
            }
            let invalid = (1..).zip(samples).find(|(_, sample)| !(sample.is_finite() && **sample > 0.0));
            if let Some((variant, &value)) = invalid {
                return Err(InvalidBlock::Value { block, variant, value });
            }
        }
        let variants: Vec<VariantResult> =
            (1..self.variants).map(|variant| self.evaluate_variant(blocks, variant)).collect();
        let is_decided = |result: &VariantResult| result.verdict != Verdict::Inconclusive;
        let state = match (variants.iter().all(is_decided), blocks.len() < self.options.max_blocks) {
            (true, _) => StoppingState::Decided,
            (false, true) => StoppingState::Continue,
            (false, false) => StoppingState::AtLimit,
        };
        Ok(VariantResults { blocks: blocks.len(), state, variants })
    }

    fn evaluate_variant(&self, blocks: &[Vec<f64>], variant: usize) -> VariantResult {
        let logs: Vec<f64> = blocks.iter().map(|samples| samples[variant].ln() - samples[0].ln()).collect();
        let Some(result) = self.sequential.analyze(&logs) else {
            return VariantResult { ratio: None, interval: None, verdict: Verdict::Inconclusive };
        };
        let threshold = self.options.threshold / 100.0;
        let differs = result.interval.is_some_and(|interval| !interval.contains(1.0));
        let verdict = judge(result.estimate, result.interval, differs, self.options.direction, threshold);
        VariantResult { ratio: Some(result.estimate), interval: result.interval.map(ConfidenceInterval::from), verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options { max_blocks: 20, threshold: 5.0, error_rate: 0.05, direction: Direction::Lower };

    /// Blocks of the first variant multiplied by these factors, with 1 % noise.
    fn blocks(count: usize, factors: &[f64]) -> Vec<Vec<f64>> {
        let wobble = |at: usize| 1.0 + 0.002 * ((at * 7 % 11) as f64 - 5.0);
        let block = |at: usize| (0..).zip(factors).map(|(i, factor)| factor * wobble(at + 3 * i)).collect();
        (0..count).map(block).collect()
    }

    fn verdicts(results: &VariantResults) -> Vec<Verdict> {
        results.variants.iter().map(|result| result.verdict).collect()
    }

    #[test]
    fn each_variant_is_compared_with_the_first() {
        let test = SequentialTest::new(4, OPTIONS).unwrap();
        let results = test.evaluate(&blocks(15, &[1.0, 0.8, 1.0, 1.3])).unwrap();
        assert_eq!(verdicts(&results), [Verdict::Improved, Verdict::Equivalent, Verdict::Regressed]);
        assert_eq!((results.state, results.blocks), (StoppingState::Decided, 15));
        let [first, ..] = results.variants[..] else { panic!("three variants are compared with the first") };
        let ci = first.interval.unwrap();
        assert!(ci.low <= 0.8 && 0.8 <= ci.high && (first.ratio.unwrap() - 0.8).abs() < 0.01, "{first:?}");
        assert!((ci.confidence - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn it_continues_until_every_variant_has_a_verdict_or_the_limit_is_reached() {
        let test = SequentialTest::new(3, OPTIONS).unwrap();
        let none = test.evaluate(&[]).unwrap();
        assert_eq!((none.state, none.variants[0].ratio), (StoppingState::Continue, None));
        let before = test.evaluate(&blocks(test.min_blocks() - 1, &[1.0, 2.0, 2.0])).unwrap();
        assert_eq!((before.state, before.variants[0].interval), (StoppingState::Continue, None));
        assert!(before.variants[0].ratio.is_some());
        let clear = test.evaluate(&blocks(test.min_blocks(), &[1.0, 2.0, 2.0])).unwrap();
        assert_eq!(clear.state, StoppingState::Decided);
        // The difference equals the threshold: neither beyond it nor within.
        let undecided = [1.0, 2.0, 1.05];
        assert_eq!(test.evaluate(&blocks(19, &undecided)).unwrap().state, StoppingState::Continue);
        let last = test.evaluate(&blocks(25, &undecided)).unwrap();
        assert_eq!((last.state, last.blocks), (StoppingState::AtLimit, 20));
        assert_eq!(verdicts(&last), [Verdict::Regressed, Verdict::Inconclusive]);
    }

    #[test]
    fn without_a_better_direction_the_verdict_is_differs() {
        let test = SequentialTest::new(2, Options { direction: Direction::Neither, ..OPTIONS }).unwrap();
        let results = test.evaluate(&blocks(12, &[1.0, 1.5])).unwrap();
        assert_eq!((verdicts(&results), results.state), (vec![Verdict::Differs], StoppingState::Decided));
    }

    #[test]
    fn settings_that_can_decide_nothing_are_refused() {
        assert_eq!(SequentialTest::new(1, OPTIONS), Err(SequentialTestError::Alone));
        assert!(matches!(
            SequentialTest::new(2, Options { error_rate: 0.0, ..OPTIONS }),
            Err(SequentialTestError::Rate { .. })
        ));
        assert!(matches!(
            SequentialTest::new(2, Options { error_rate: f64::NAN, ..OPTIONS }),
            Err(SequentialTestError::Rate { .. })
        ));
        for (variants, most, required) in [(2, 5, 6), (2, 0, 6), (3, 4, 7)] {
            let error = SequentialTest::new(variants, Options { max_blocks: most, ..OPTIONS }).unwrap_err();
            assert!(matches!(error, SequentialTestError::TooFew { required, .. } if required == required), "{error}");
            assert_eq!(
                SequentialTest::new(variants, Options { max_blocks: required, ..OPTIONS }).unwrap().min_blocks(),
                required
            );
        }
    }

    #[test]
    fn an_invalid_block_is_an_error() {
        let test = SequentialTest::new(2, OPTIONS).unwrap();
        let message = |blocks: &[Vec<f64>]| test.evaluate(blocks).unwrap_err().to_string();
        assert_eq!(message(&[vec![1.0, 2.0], vec![1.0]]), "block 2 has 1 samples for 2 variants");
        let value = "invalid sample 0 of variant 2 in block 1: expected a finite value above zero";
        assert_eq!(message(&[vec![1.0, 0.0]]), value);
    }
}

//! Sequential test of variants sampled in interleaved order: how each compares with the first, and when to stop.
//!
//! Nothing is measured here. The caller passes all blocks so far and learns after each round (one block of every case)
//! which cases need another one. A block has one sample of every variant of a case, taken in random order; without the
//! sample of a variant it says nothing about that variant, without that of the first nothing at all.
//!
//! Each comparison, of a variant with the first in a metric of a case, has a p-value that is valid whenever sampling
//! stops ([`GroupSequentialTest`]). All comparisons of all cases are one family (Benjamini and Hochberg), analyzed anew
//! after each round. P-values only decrease, so that a case that has stopped keeps its verdicts. Failed attempts are
//! another family: while more blocks could decide whether a variant fails more or less often than the first, its case
//! goes on. Start with [`SequentialTest`]; the error rates are in `docs/statistics.md`.

mod evidence;
mod failures;
mod family;

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{Class, Direction, pluralize};
use wb_results::experiment::{StoppingState, VariantResult, VariantVerdict};
use wb_stats::GroupSequentialTest;

use crate::direction::is_speed;
pub(crate) use failures::FailureComparison;
pub use failures::VariantAttempts;
use family::Family;

/// Settings, fixed before the first block: changing the numbers of blocks after an evaluation increases the error rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Fewer blocks are not evaluated.
    pub min_blocks: usize,
    pub max_blocks: usize,
    /// The smallest relevant difference, in percent.
    pub threshold: f64,
    /// The false discovery rate: the maximum average share of equal variants among those reported as different, over
    /// all evaluations and all comparisons. For a single comparison, it is the probability of a false positive.
    pub error_rate: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_blocks: 0, max_blocks: 30, threshold: 5.0, error_rate: 0.05 }
    }
}

/// The sequential test of the metrics of all cases, each with the same number of variants.
#[derive(Debug, Clone, PartialEq)]
pub struct SequentialTest {
    /// Of all cases.
    metrics: usize,
    variants: usize,
    sequential: GroupSequentialTest,
    min_blocks: usize,
    options: Options,
}

/// Settings with which nothing could be decided.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SequentialTestError {
    #[error("too few variants: at least two are required")]
    Alone,
    #[error("invalid error rate of {} %: expected 0.05 % to 50 %", .rate * 100.0)]
    Rate { rate: f64 },
    #[error("too few blocks ({most}) for {} at an error rate of {} %: at least {required} are required", pluralize(*.family, "comparison"), .rate * 100.0)]
    TooFew { most: usize, family: usize, rate: f64, required: usize },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct CaseBlocks {
    pub metrics: Vec<MetricBlocks>,
    /// The number of rounds measured so far; `None` if no more are. Rounds that a case still lacks are not analyzed yet.
    pub open_rounds: Option<u32>,
    /// The variants, by index, that ended before the others: no more blocks are taken for their sake.
    pub ended: BTreeSet<usize>,
    /// Of each variant; their failures are compared, too. Empty if they are not known.
    pub attempts: Vec<VariantAttempts>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricBlocks {
    pub direction: Direction,
    /// The counted samples of each round, in the order of the variants; `None` where a variant has none.
    pub blocks: BTreeMap<u32, Vec<Option<f64>>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CaseResult {
    /// Whether another block is needed, or attempts of the variants that are left.
    pub state: StoppingState,
    pub metrics: Vec<MetricResult>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricResult {
    /// The number of evaluated blocks of the variant with the most: blocks with a sample of it and one of the first.
    pub blocks: usize,
    /// The result of each variant but the first, in order.
    pub variants: Vec<VariantResult>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidBlock {
    #[error("block {block} has {samples} samples for {variants} variants")]
    Size {
        /// From 1.
        block: u32,
        samples: usize,
        variants: usize,
    },
    #[error(
        "invalid sample {value} of variant {variant} in block {block}: expected a finite value that is not below zero, or \
         the same in the whole block"
    )]
    Value {
        /// From 1.
        block: u32,
        /// From 1.
        variant: usize,
        value: f64,
    },
}

impl SequentialTest {
    /// `metrics` is the total over all cases; `variants` includes the first.
    pub fn new(metrics: usize, variants: usize, options: Options) -> Result<Self, SequentialTestError> {
        let Options { min_blocks: least, max_blocks: most, error_rate: rate, .. } = options;
        let others = variants.checked_sub(1).filter(|others| *others > 0).ok_or(SequentialTestError::Alone)?;
        if !(0.0005..=0.5).contains(&rate) {
            return Err(SequentialTestError::Rate { rate });
        }
        // No error is spent on analyses that decide nothing.
        let sequential_for = |blocks: usize| GroupSequentialTest::new(&(least.max(1)..=blocks).collect::<Vec<_>>());
        let sequential = sequential_for(most);
        let family = metrics.max(1) * others;
        // A single variant that differs can be found among equal ones.
        let is_enough = |test: &GroupSequentialTest| test.min_blocks(rate / family as f64).is_some();
        let Some(min_blocks) = sequential.min_blocks(rate).filter(|_| is_enough(&sequential)) else {
            let required = (most + 1..MANY_BLOCKS).find(|blocks| is_enough(&sequential_for(*blocks)));
            return Err(SequentialTestError::TooFew { most, family, rate, required: required.unwrap_or(MANY_BLOCKS) });
        };
        Ok(Self { metrics, variants, sequential, min_blocks, options })
    }

    pub fn max_blocks(&self) -> usize {
        self.options.max_blocks
    }

    /// The minimum number of blocks after which a variant can have a verdict.
    pub fn min_blocks(&self) -> usize {
        self.min_blocks
    }

    pub fn error_rate(&self) -> f64 {
        self.options.error_rate
    }

    pub fn family(&self) -> usize {
        self.metrics.max(1) * (self.variants - 1)
    }

    /// Evaluates all cases, but no blocks after a case's last verdict or the maximum. Fails as [`Self::check`].
    pub fn evaluate(&self, cases: &[CaseBlocks]) -> Result<Vec<CaseResult>, InvalidBlock> {
        self.check_all(cases)?;
        Ok(Family::analyze(self, cases).results())
    }

    /// For each case, whether it needs another block, and the number of evaluated blocks of the metric with the most.
    /// Fails as [`Self::check`].
    pub fn states(&self, cases: &[CaseBlocks]) -> Result<Vec<(StoppingState, usize)>, InvalidBlock> {
        self.check_all(cases)?;
        Ok(Family::analyze(self, cases).states())
    }

    fn check_all(&self, cases: &[CaseBlocks]) -> Result<(), InvalidBlock> {
        cases.iter().flat_map(|case| &case.metrics).try_for_each(|metric| self.check(metric))
    }

    /// Fails if a sample has no ratio to the first of its block, or a block has another number of variants.
    pub fn check(&self, metric: &MetricBlocks) -> Result<(), InvalidBlock> {
        for (round, samples) in &metric.blocks {
            let block = round + 1;
            if samples.len() != self.variants {
                return Err(InvalidBlock::Size { block, samples: samples.len(), variants: self.variants });
            }
            let Some(first) = samples[0] else { continue };
            let is_invalid = |(variant, sample): (usize, &Option<f64>)| {
                let value = sample.filter(|sample| log_ratio(first, *sample).is_none())?;
                Some(InvalidBlock::Value { block, variant, value })
            };
            if let Some(invalid) = (1..).zip(samples).find_map(is_invalid) {
                return Err(invalid);
            }
        }
        Ok(())
    }
}

fn verdict_of_ratio(ratio: f64, direction: Direction) -> VariantVerdict {
    match direction {
        Direction::Neither => VariantVerdict::Differs,
        Direction::Higher if ratio > 1.0 => VariantVerdict::Better,
        Direction::Lower if ratio < 1.0 => VariantVerdict::Better,
        Direction::Higher | Direction::Lower => VariantVerdict::Worse,
    }
}

/// Faster and slower in place of better and worse, if the class is one of speed.
pub(crate) fn verdict_of_class(verdict: VariantVerdict, class: Class) -> VariantVerdict {
    match verdict {
        VariantVerdict::Better if is_speed(class) => VariantVerdict::Faster,
        VariantVerdict::Worse if is_speed(class) => VariantVerdict::Slower,
        other => other,
    }
}

/// The logarithm of the ratio of two samples; `None` if they have none. Equal ones have it, also where both are zero.
fn log_ratio(first: f64, other: f64) -> Option<f64> {
    let is_valid = [first, other].iter().all(|sample| sample.is_finite() && *sample >= 0.0);
    let is_equal = first == other && first.is_finite();
    let log = |sample: f64| if sample == 0.0 { LOG_ZERO } else { sample.ln() };
    (is_valid || is_equal).then(|| if is_equal { 0.0 } else { log(other) - log(first) })
}

/// Stands for the logarithm of zero: below those of all ratios, and so that means with those are beyond the range of
/// numbers, too, whereas infinities of both signs have no mean. The test is of ranks, so that its size does not matter.
const LOG_ZERO: f64 = -1e5;

/// More blocks than any family requires.
const MANY_BLOCKS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options { min_blocks: 0, max_blocks: 20, threshold: 5.0, error_rate: 0.05 };

    /// Blocks of the first variant multiplied by these factors, with 1 % noise.
    fn blocks(count: usize, factors: &[f64]) -> CaseBlocks {
        let wobble = |index: usize| 1.0 + 0.002 * ((index * 7 % 11) as f64 - 5.0);
        let block = |index: usize| (0..).zip(factors).map(|(i, factor)| Some(factor * wobble(index + 3 * i))).collect();
        one_metric(Direction::Lower, (0..count).map(|index| (index as u32, block(index))).collect())
    }

    fn one_metric(direction: Direction, blocks: BTreeMap<u32, Vec<Option<f64>>>) -> CaseBlocks {
        CaseBlocks { metrics: vec![MetricBlocks { direction, blocks }], ..CaseBlocks::default() }
    }

    fn evaluate(test: &SequentialTest, case: CaseBlocks) -> CaseResult {
        test.evaluate(&[case]).unwrap().remove(0)
    }

    fn verdicts(result: &CaseResult) -> Vec<VariantVerdict> {
        result.metrics.iter().flat_map(|metric| &metric.variants).map(|result| result.verdict).collect()
    }

    #[test]
    fn each_variant_is_compared_with_the_first() {
        let test = SequentialTest::new(1, 4, OPTIONS).unwrap();
        let result = evaluate(&test, blocks(15, &[1.0, 0.8, 1.0, 1.3]));
        assert_eq!(verdicts(&result), [VariantVerdict::Better, VariantVerdict::Equivalent, VariantVerdict::Worse]);
        assert_eq!(result.state, StoppingState::Decided);
        assert!((test.min_blocks()..15).contains(&result.metrics[0].blocks), "later blocks are ignored: {result:?}");
        let [first, second, _] = result.metrics[0].variants[..] else {
            panic!("three variants are compared with the first")
        };
        let ci = first.interval.unwrap();
        assert!(ci.low <= 0.8 && 0.8 <= ci.high && (first.ratio.unwrap() - 0.8).abs() < 0.01, "{first:?}");
        assert!((ci.confidence - (1.0 - 0.05 * 2.0 / 3.0)).abs() < 1e-12, "two of three differ");
        assert!(first.p_value.unwrap() < first.adjusted_p_value.unwrap() && first.adjusted_p_value.unwrap() <= 0.05);
        assert!(second.p_value.unwrap() > 0.05, "{second:?}");
    }

    #[test]
    fn it_continues_until_every_variant_has_a_verdict_or_the_limit_is_reached() {
        let test = SequentialTest::new(1, 3, OPTIONS).unwrap();
        let none = evaluate(&test, blocks(0, &[]));
        assert_eq!((none.state, none.metrics[0].variants[0].ratio), (StoppingState::Continue, None));
        let before = evaluate(&test, blocks(test.min_blocks() - 1, &[1.0, 2.0, 2.0]));
        assert_eq!((before.state, before.metrics[0].variants[0].interval), (StoppingState::Continue, None));
        assert!(before.metrics[0].variants[0].ratio.is_some());
        let clear = evaluate(&test, blocks(test.min_blocks(), &[1.0, 2.0, 2.0]));
        assert_eq!(clear.state, StoppingState::Decided);
        // The difference equals the threshold: neither beyond it nor within.
        let undecided = [1.0, 2.0, 1.05];
        assert_eq!(evaluate(&test, blocks(19, &undecided)).state, StoppingState::Continue);
        let last = evaluate(&test, blocks(25, &undecided));
        assert_eq!((last.state, last.metrics[0].blocks), (StoppingState::AtLimit, 20));
        assert_eq!(verdicts(&last), [VariantVerdict::Worse, VariantVerdict::Inconclusive]);
    }

    #[test]
    fn the_more_cases_differ_the_less_evidence_each_of_them_needs() {
        let test = SequentialTest::new(4, 2, OPTIONS).unwrap();
        let clear = test.min_blocks();
        let all = vec![blocks(clear, &[1.0, 1.5]); 4];
        assert_eq!(test.states(&all).unwrap(), [(StoppingState::Decided, clear); 4]);
        let mut one = vec![blocks(clear, &[1.0, 1.05]); 4];
        one[0] = all[0].clone();
        assert_eq!(test.states(&one).unwrap()[0], (StoppingState::Continue, clear));
    }

    // Later rounds of other cases are analysed again in the same family.
    #[test]
    fn a_case_that_has_stopped_keeps_its_result() {
        let test = SequentialTest::new(2, 2, OPTIONS).unwrap();
        let at = |clear, other| test.evaluate(&[blocks(clear, &[1.0, 1.5]), blocks(other, &[1.0, 1.05])]).unwrap();
        let first = (1..20).map(|count| at(count, count)).find(|all| all[0].state == StoppingState::Decided).unwrap();
        let blocks = first[0].metrics[0].blocks;
        assert_eq!(at(20, 20)[0], first[0]);
        assert_eq!(at(blocks, 20)[0], first[0]);
    }

    #[test]
    fn a_case_is_measured_until_all_its_metrics_are_decided() {
        let test = SequentialTest::new(2, 2, OPTIONS).unwrap();
        let with = |count: usize, factor: f64| {
            let [mut rate, latency] =
                [[1.0, 1.5], [1.0, factor]].map(|factors| blocks(count, &factors).metrics.remove(0));
            rate.direction = Direction::Higher;
            CaseBlocks { metrics: vec![rate, latency], ..CaseBlocks::default() }
        };
        let clear = test.min_blocks();
        assert_eq!(test.family(), 2);
        let both = evaluate(&test, with(clear, 1.5));
        assert_eq!(
            (both.state, verdicts(&both)),
            (StoppingState::Decided, vec![VariantVerdict::Better, VariantVerdict::Worse])
        );
        // The second metric differs by the threshold, which neither verdict fits.
        let one = evaluate(&test, with(clear, 1.05));
        assert_eq!((one.state, verdicts(&one)[1]), (StoppingState::Continue, VariantVerdict::Inconclusive));
        let last = evaluate(&test, with(25, 1.05));
        assert_eq!((last.state, last.metrics[0].blocks), (StoppingState::AtLimit, 20));
        assert_eq!(verdicts(&last), [VariantVerdict::Better, VariantVerdict::Inconclusive]);
        // A metric that some samples lack has fewer blocks.
        let mut lacking = with(clear, 1.5);
        lacking.metrics[1].blocks.remove(&0);
        let lacking = evaluate(&test, lacking);
        assert_eq!((lacking.state, lacking.metrics[1].blocks), (StoppingState::Continue, clear - 1));
    }

    /// What is not measured yet could change what the others need.
    #[test]
    fn a_round_is_analyzed_when_every_open_case_has_it() {
        let test = SequentialTest::new(2, 2, OPTIONS).unwrap();
        let open = |count: usize| CaseBlocks { open_rounds: Some(count as u32), ..blocks(count, &[1.0, 1.5]) };
        let (early, late) = (test.min_blocks() - 1, test.min_blocks());
        assert_eq!(test.states(&[open(late), open(early)]).unwrap(), [(StoppingState::Continue, early); 2]);
        assert_eq!(test.states(&[open(late), open(late)]).unwrap(), [(StoppingState::Decided, late); 2]);
        let ended = CaseBlocks { open_rounds: None, ..open(early) };
        let alone = test.evaluate(&[open(20), ended]).unwrap();
        assert_eq!((alone[0].state, alone[1].state), (StoppingState::Decided, StoppingState::Continue));
    }

    /// Equal sides with rare large differences, beside many small ones that are certain.
    #[test]
    fn differences_within_the_threshold_make_no_room_for_others() {
        let test = SequentialTest::new(20, 2, OPTIONS).unwrap();
        let mut cases = vec![blocks(20, &[1.0, 1.03]); 20];
        let other = |index: usize| if index % 4 == 3 { 0.98 } else { 1.0 + 0.02 * (1 + index % 9) as f64 };
        let doubtful = |index: usize| vec![Some(1.0), Some(other(index))];
        cases[0].metrics[0].blocks = (0..20).map(|index| (index as u32, doubtful(index))).collect();
        let results = test.evaluate(&cases).unwrap();
        let [doubtful] = results[0].metrics[0].variants[..] else { panic!("one variant is compared with the first") };
        assert!(doubtful.p_value.unwrap() < 0.02, "{doubtful:?}");
        assert_eq!(doubtful.verdict, VariantVerdict::Inconclusive, "{doubtful:?}");
    }

    #[test]
    fn evaluations_that_decide_nothing_cost_nothing() {
        let all = SequentialTest::new(1, 2, OPTIONS).unwrap();
        let last = SequentialTest::new(1, 2, Options { min_blocks: 20, ..OPTIONS }).unwrap();
        assert_eq!(last.min_blocks(), 20);
        let p =
            |test: &SequentialTest| evaluate(test, blocks(20, &[1.0, 1.06])).metrics[0].variants[0].p_value.unwrap();
        assert_eq!(evaluate(&last, blocks(19, &[1.0, 2.0])).state, StoppingState::Continue);
        assert!(p(&last) < p(&all), "{} {}", p(&last), p(&all));
    }

    #[test]
    fn without_a_better_direction_the_verdict_is_differs() {
        let test = SequentialTest::new(1, 2, OPTIONS).unwrap();
        let mut case = blocks(12, &[1.0, 1.5]);
        case.metrics[0].direction = Direction::Neither;
        let result = evaluate(&test, case);
        assert_eq!((verdicts(&result), result.state), (vec![VariantVerdict::Differs], StoppingState::Decided));
    }

    #[test]
    fn settings_that_can_decide_nothing_are_refused() {
        assert_eq!(SequentialTest::new(1, 1, OPTIONS), Err(SequentialTestError::Alone));
        for rate in [0.0, f64::NAN, 0.6] {
            let refused = SequentialTest::new(1, 2, Options { error_rate: rate, ..OPTIONS });
            assert!(matches!(refused, Err(SequentialTestError::Rate { .. })), "{rate}");
        }
        for (cases, variants, most, required) in [(1, 2, 5, 6), (1, 2, 0, 6), (1, 3, 4, 7), (40, 2, 6, 11)] {
            let options = |max_blocks| Options { max_blocks, ..OPTIONS };
            let error = SequentialTest::new(cases, variants, options(most)).unwrap_err();
            assert!(
                matches!(error, SequentialTestError::TooFew { required: needed, .. } if needed == required),
                "{error}"
            );
            assert!(SequentialTest::new(cases, variants, options(required)).is_ok());
        }
    }

    /// The result of the second variant after up to twelve blocks.
    fn two(direction: Direction, sample: impl Fn(u32) -> [f64; 2]) -> VariantResult {
        let test = SequentialTest::new(1, 2, OPTIONS).unwrap();
        let blocks = (0..12).map(|index| (index, sample(index).map(Some).to_vec())).collect();
        evaluate(&test, one_metric(direction, blocks)).metrics[0].variants[0]
    }

    #[test]
    fn samples_that_are_all_zero_are_equal() {
        assert_eq!(two(Direction::Neither, |_| [0.0; 2]).verdict, VariantVerdict::Equivalent);
    }

    /// There is no clearer difference. Its ratio is zero or infinite, and has no interval.
    #[test]
    fn samples_that_are_all_zero_differ_from_others() {
        let level = |position: u32| 1000.0 + f64::from(position * 7 % 5);
        for (direction, stopped, started) in [
            (Direction::Higher, VariantVerdict::Worse, VariantVerdict::Better),
            (Direction::Lower, VariantVerdict::Better, VariantVerdict::Worse),
            (Direction::Neither, VariantVerdict::Differs, VariantVerdict::Differs),
        ] {
            let result = two(direction, |position| [level(position), 0.0]);
            assert_eq!((result.verdict, result.ratio, result.interval), (stopped, Some(0.0), None));
            assert!(result.adjusted_p_value.unwrap() <= 0.05, "{result:?}");
            let result = two(direction, |position| [0.0, level(position)]);
            assert_eq!((result.verdict, result.ratio, result.interval), (started, None, None));
        }
    }

    #[test]
    fn zeros_beside_other_values_have_a_direction_and_no_ratio() {
        let level = |position: u32| 1000.0 + f64::from(position * 7 % 5);
        let one =
            two(Direction::Higher, |position| [level(position), if position == 5 { 0.0 } else { level(position + 2) }]);
        assert!(one.ratio.is_some_and(|ratio| (0.99..1.01).contains(&ratio)), "{one:?}");
        assert_ne!(one.verdict, VariantVerdict::Worse);
        // Half of a side is zero: it is less, but by no ratio.
        let half = two(Direction::Higher, |position| {
            [level(position), if position % 2 == 0 { 0.0 } else { level(position + 2) * 0.9 }]
        });
        assert_eq!((half.verdict, half.ratio, half.interval), (VariantVerdict::Worse, None, None));
        // Zeros on either side are as many signs in both directions.
        let both =
            two(
                Direction::Higher,
                |position| if position % 2 == 0 { [level(position), 0.0] } else { [0.0, level(position)] },
            );
        assert_eq!(both.verdict, VariantVerdict::Inconclusive, "{both:?}");
    }

    #[test]
    fn a_block_without_a_sample_says_nothing_about_that_variant_alone() {
        let test = SequentialTest::new(1, 3, OPTIONS).unwrap();
        let mut case = blocks(15, &[1.0, 1.2, 0.7]);
        for (round, block) in &mut case.metrics[0].blocks {
            block[2] = block[2].filter(|_| round % 3 > 0);
        }
        let result = evaluate(&test, case.clone()).metrics.remove(0);
        assert_eq!(
            (result.blocks, result.variants.iter().map(|one| one.blocks).collect::<Vec<_>>()),
            (12, vec![Some(12), Some(8)])
        );
        assert_eq!(result.variants[0].verdict, VariantVerdict::Worse);
        assert!((result.variants[1].ratio.unwrap() - 0.7).abs() < 0.01);
        // Without the first, there is nothing to compare with.
        for block in case.metrics[0].blocks.values_mut() {
            block[0] = None;
        }
        assert_eq!(evaluate(&test, case).metrics[0].blocks, 0);
    }

    #[test]
    fn variants_that_ended_early_keep_no_other_from_a_decision() {
        let test = SequentialTest::new(1, 3, OPTIONS).unwrap();
        let mut case = blocks(15, &[1.0, 1.5, 1.0]);
        for block in case.metrics[0].blocks.values_mut() {
            block[2] = None;
        }
        assert_eq!(evaluate(&test, case.clone()).state, StoppingState::Continue);
        case.ended = BTreeSet::from([2]);
        let result = evaluate(&test, case.clone());
        assert_eq!((result.state, verdicts(&result)[0]), (StoppingState::Decided, VariantVerdict::Worse));
        assert!(result.metrics[0].blocks < 15, "{result:?}");
        case.metrics[0].blocks.retain(|round, _| *round < 3);
        assert_eq!(evaluate(&test, case.clone()).state, StoppingState::Continue);
        case.ended = BTreeSet::from([1, 2]);
        assert_eq!(evaluate(&test, case).state, StoppingState::AtLimit, "no more blocks are taken");
    }

    #[test]
    fn an_invalid_block_is_an_error() {
        let test = SequentialTest::new(1, 2, OPTIONS).unwrap();
        let message = |blocks: &[&[f64]]| {
            let samples = |samples: &&[f64]| samples.iter().copied().map(Some).collect();
            let blocks = (0..).zip(blocks.iter().map(samples)).collect();
            test.evaluate(&[one_metric(Direction::Lower, blocks)]).unwrap_err().to_string()
        };
        assert_eq!(message(&[&[1.0, 2.0], &[1.0]]), "block 2 has 1 samples for 2 variants");
        let value = "invalid sample -1 of variant 2 in block 1: expected a finite value that is not below zero, or the same in the whole block";
        assert_eq!(message(&[&[1.0, -1.0]]), value);
    }
}

//! Group-sequential comparison of two sides that are sampled interleaved, with interim analyses until the result is
//! clear.

use std::sync::LazyLock;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Interval;
use crate::selection::{PairValues, WalshAverages};

/// Number of simulated sequences of blocks that determine the boundaries.
const SIMULATIONS: usize = 40_000;
const SEED: u64 = 6;

/// Probabilities of a positive sign with which sequences are simulated, in equal shares. Sequences with mostly equal
/// signs make small p-values precise.
const SIGN_PROBABILITIES: [f64; 3] = [0.5, 0.7, 0.9];

/// The exponent ρ of the spending function: 1 spends evenly over the blocks, more spends later.
const SPENDING_EXPONENT: f64 = 1.5;

/// The steps of p-values, from [`SMALLEST_P`] to [`LARGEST_P`]: each is larger by 2.3 %. 5 % is one of them.
const STEPS_PER_DECADE: f64 = 100.0;
const ANCHOR: f64 = 0.05;
const SMALLEST_P: f64 = 1e-7;
const LARGEST_P: f64 = 0.5;

/// A group-sequential Wilcoxon signed-rank test with alpha spending: the numbers of blocks of the interim analyses, and
/// for every error probability their critical values, such that equal sides are declared different with at most that
/// probability over all analyses together.
///
/// Each block has one sample of either side, in random order. If the sides are equal, the sign of each block's
/// difference is random whatever its size. The Wilcoxon signed-rank statistic (Wilcoxon 1945) of n blocks then has a
/// distribution that depends on n alone; so does the joint distribution for the first n and the first m > n blocks, as
/// long as the sizes have no lasting trend. It is simulated here with a fixed seed, weighted where the signs are not
/// drawn evenly (importance sampling). The error α that may be spent up to the fraction t of all blocks is α·t^ρ (Kim,
/// DeMets 1987; spending functions: Lan, DeMets 1983).
///
/// What is declared different at one error probability is so at every larger one. So each analysis has a p-value: the
/// smallest error probability with which it would declare the sides different. The smallest p-value of all analyses so
/// far is valid whenever and for whatever reason sampling stops (sequential p-value: Liu, Anderson 2008).
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSequentialTest {
    looks: Vec<Look>,
}

/// An interim analysis.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    blocks: usize,
    /// For each of [`P_VALUES`], the largest sum of ranks that has it or a smaller one; `None` if there is none.
    critical: Vec<Option<usize>>,
}

/// The possible p-values below 1, ascending.
static P_VALUES: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let steps = |p: f64| ((p / ANCHOR).log10() * STEPS_PER_DECADE).round() as i32;
    (steps(SMALLEST_P)..=steps(LARGEST_P)).map(|step| ANCHOR * 10f64.powf(f64::from(step) / STEPS_PER_DECADE)).collect()
});

/// The logarithms of the ratios of blocks, ascending.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogRatios(Vec<f64>);

impl LogRatios {
    /// Adds a block, given as the logarithm of the other side's sample over this side's.
    ///
    /// # Panics
    /// If it is not a number.
    pub fn push(&mut self, log_ratio: f64) {
        assert!(!log_ratio.is_nan(), "a ratio of samples above zero is a number");
        self.0.insert(self.0.partition_point(|other| *other < log_ratio), log_ratio);
    }

    /// Removes a block that was added.
    pub fn remove(&mut self, log_ratio: f64) {
        let position = self.0.partition_point(|other| *other < log_ratio);
        self.0.remove(position);
    }

    /// The median of the means of all pairs of blocks, as a ratio (Hodges, Lehmann 1963); `None` without blocks.
    pub fn estimate(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| WalshAverages(&self.0).median().exp())
    }

    /// The numbers of means of pairs at or below a value, and at or above it: the sums of ranks of either sign
    /// around it, with what is equal to it in both.
    fn rank_sums(&self, value: f64) -> [usize; 2] {
        let all = &self.0;
        let (mut up_to, mut below) = (0, 0);
        // The larger one of a pair is, the fewer others have a mean with it at or below the value.
        let (mut end, mut end_below) = (all.len(), all.len());
        for (index, one) in all.iter().enumerate() {
            end -= all[..end].iter().rev().take_while(|other| (one + **other) / 2.0 > value).count();
            end_below -= all[..end_below].iter().rev().take_while(|other| (one + **other) / 2.0 >= value).count();
            up_to += end.saturating_sub(index);
            below += end_below.saturating_sub(index);
        }
        [up_to, all.len() * (all.len() + 1) / 2 - below]
    }
}

impl FromIterator<f64> for LogRatios {
    fn from_iter<T: IntoIterator<Item = f64>>(logs: T) -> Self {
        let mut ratios = Self::default();
        logs.into_iter().for_each(|log| ratios.push(log));
        ratios
    }
}

/// The p-values of an interim analysis: the smallest error probabilities with which the interval of the ratio excludes
/// a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExclusionP {
    /// For an interval that ends below the value.
    pub below: f64,
    /// For an interval that begins above the value.
    pub above: f64,
}

impl GroupSequentialTest {
    /// A test with analyses after these numbers of blocks, in ascending order. The precision is that of the simulation:
    /// a fiftieth of a p-value. The time grows with the square of the last number; 1,000 blocks take seconds.
    pub fn new(blocks: &[usize]) -> Self {
        let max_blocks = blocks.last().copied().unwrap_or(0);
        let mut null = NullSimulation::new();
        let mut looks = Vec::with_capacity(blocks.len());
        for n in 1..=max_blocks {
            null.toss();
            if blocks.binary_search(&n).is_ok() {
                let spendable = (n as f64 / max_blocks as f64).powf(SPENDING_EXPONENT);
                looks.push(Look { blocks: n, critical: null.spend(spendable) });
            }
        }
        Self { looks }
    }

    /// The fewest blocks after which a difference can be declared with this error probability; `None` if no analysis
    /// can.
    pub fn min_blocks(&self, error: f64) -> Option<usize> {
        self.looks.iter().find(|look| look.critical(error).is_some()).map(|look| look.blocks)
    }

    /// The p-values of the analysis of these blocks alone; `None` if none is planned for their number.
    pub fn exclusion(&self, blocks: &LogRatios, ratio: f64) -> Option<ExclusionP> {
        let look = self.look(blocks)?;
        let [up_to, from] = blocks.rank_sums(ratio.ln());
        Some(ExclusionP { below: look.p_value(from), above: look.p_value(up_to) })
    }

    /// The confidence interval of the ratio by the analysis of these blocks. With the given error probability, some
    /// analysis's interval does not contain the true value (repeated confidence intervals: Jennison, Turnbull 1989), so
    /// that it is valid to stop at any of them. `None` if there are too few blocks, or no analysis is planned for their
    /// number.
    pub fn interval(&self, blocks: &LogRatios, error: f64) -> Option<Interval> {
        let critical = self.look(blocks)?.critical(error)?;
        let means = WalshAverages(&blocks.0);
        let last = means.count() - 1;
        Some(Interval {
            low: means.nth(critical).exp(),
            high: means.nth(last - critical).exp(),
            confidence: 1.0 - error,
        })
    }

    fn look(&self, blocks: &LogRatios) -> Option<&Look> {
        let index = self.looks.binary_search_by_key(&blocks.0.len(), |look| look.blocks).ok()?;
        Some(&self.looks[index])
    }
}

impl Look {
    /// The largest sum of ranks at which the sides differ, with this error probability.
    fn critical(&self, error: f64) -> Option<usize> {
        // A step that is equal but for rounding counts.
        let count = P_VALUES.partition_point(|p| *p <= error * (1.0 + 1e-9));
        *self.critical.get(count.checked_sub(1)?)?
    }

    /// The p-value of a sum of ranks; 1 if it is above [`LARGEST_P`].
    fn p_value(&self, sum: usize) -> f64 {
        let position = self.critical.partition_point(|critical| critical.is_none_or(|critical| critical < sum));
        P_VALUES.get(position).copied().unwrap_or(1.0)
    }
}

/// Sequences of blocks under the null hypothesis, and the error probability that the analyses have spent of them.
struct NullSimulation {
    random: ChaCha8Rng,
    sequences: Vec<NullSequence>,
    /// For each of [`P_VALUES`], the probability of it or a smaller one in the analyses so far.
    spent: Vec<f64>,
}

impl NullSimulation {
    fn new() -> Self {
        let sequence = |index| NullSequence {
            positive: Vec::new(),
            positive_count: 0,
            sum: 0,
            positive_probability: SIGN_PROBABILITIES[index % SIGN_PROBABILITIES.len()],
            step: P_VALUES.len(),
        };
        Self {
            random: ChaCha8Rng::seed_from_u64(SEED),
            sequences: (0..SIMULATIONS).map(sequence).collect(),
            spent: vec![0.0; P_VALUES.len()],
        }
    }

    fn toss(&mut self) {
        for sequence in &mut self.sequences {
            sequence.toss(&mut self.random);
        }
    }

    /// Spends the error of an analysis, up to this fraction of every p-value; returns the critical sums of the
    /// p-values.
    ///
    /// Starting from the smallest sum, each gets the smallest p-value that is not below the p-values of smaller sums,
    /// and with which neither this sum nor a larger one exceeds the spendable error.
    fn spend(&mut self, spendable: f64) -> Vec<Option<usize>> {
        let weights = null_weights(self.sequences.first().map_or(0, |sequence| sequence.positive.len()));
        self.sequences.sort_by_key(NullSequence::smaller_sum);
        let mut critical = vec![None; P_VALUES.len()];
        let mut step = 0;
        for equal in self.sequences.chunk_by_mut(|one, other| one.smaller_sum() == other.smaller_sum()) {
            // What each step would be charged, from the largest step of these sequences down.
            let mut improving: Vec<(usize, f64)> = equal
                .iter()
                .filter(|sequence| sequence.step > step)
                .map(|sequence| (sequence.step, weights[sequence.positive_count]))
                .collect();
            improving.sort_unstable_by_key(|(index, _)| std::cmp::Reverse(*index));
            let mut charges = vec![0.0; improving.first().map_or(step, |(index, _)| *index) - step];
            let (mut charge, mut next) = (0.0, improving.iter().peekable());
            for index in (step..step + charges.len()).rev() {
                while let Some((_, weight)) = next.next_if(|(largest, _)| *largest > index) {
                    charge += weight;
                }
                if self.spent[index] + charge > P_VALUES[index] * spendable {
                    charges.drain(..=index - step);
                    step = index + 1;
                    break;
                }
                charges[index - step] = charge;
            }
            if step == P_VALUES.len() {
                break;
            }
            for (spent, charge) in self.spent[step..].iter_mut().zip(charges) {
                *spent += charge;
            }
            critical[step] = Some(equal[0].smaller_sum());
            for sequence in equal {
                sequence.step = sequence.step.min(step);
            }
        }
        for index in 1..critical.len() {
            critical[index] = critical[index].max(critical[index - 1]);
        }
        critical
    }
}

/// The weight of each sequence of n blocks with 0, 1, … n positive signs: its probability with even signs over that
/// with which it is simulated, and divided by the number of sequences.
fn null_weights(blocks: usize) -> Vec<f64> {
    let n = blocks as i32;
    // Relative to even signs. Both signs are treated alike, so that their order does not matter.
    let relative = |probability: f64, positive: i32| {
        let odds = |positive: i32| (2.0 * probability).powi(positive) * (2.0 * (1.0 - probability)).powi(n - positive);
        (odds(positive) + odds(n - positive)) / 2.0
    };
    let simulated = |positive: i32| -> f64 { SIGN_PROBABILITIES.iter().map(|p| relative(*p, positive)).sum() };
    let share = SIGN_PROBABILITIES.len() as f64 / SIMULATIONS as f64;
    (0..=n).map(|positive| share / simulated(positive)).collect()
}

/// A sequence of blocks: differences with random signs and sizes.
struct NullSequence {
    /// Whether the sign is positive, by ascending size.
    positive: Vec<bool>,
    /// The number of positive signs.
    positive_count: usize,
    /// The sum of the ranks with a positive sign.
    sum: usize,
    /// The probability of a positive sign.
    positive_probability: f64,
    /// The index of its smallest p-value so far; the number of p-values if it had none.
    step: usize,
}

impl NullSequence {
    fn toss(&mut self, random: &mut ChaCha8Rng) {
        let index = random.random_range(0..=self.positive.len());
        let positive = random.random_bool(self.positive_probability);
        // The rank of every larger difference increases by one.
        let larger = self.positive[index..].iter().filter(|positive| **positive).count();
        self.sum += larger + if positive { index + 1 } else { 0 };
        self.positive.insert(index, positive);
        self.positive_count += usize::from(positive);
    }

    /// The smaller one of the rank sums of both signs.
    fn smaller_sum(&self) -> usize {
        let n = self.positive.len();
        self.sum.min(n * (n + 1) / 2 - self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_analysis_is_the_signed_rank_test() {
        // Exact: 6 blocks reach 2/64 with the sum 0; 10 blocks 0.0488 with 8 (Hollander, Wolfe, table A.4).
        let critical = |n: usize| GroupSequentialTest::new(&[n]).looks[0].critical(0.05);
        assert_eq!([critical(5), critical(6), critical(10), critical(15)], [None, Some(0), Some(8), Some(25)]);
    }

    /// All signs are equal with probability 2/2ⁿ, which is the smallest p-value of n blocks.
    #[test]
    fn small_p_values_are_precise() {
        for n in [8, 12, 16, 20] {
            let p = GroupSequentialTest::new(&[n]).looks[0].p_value(0);
            let exact = 2.0 * 0.5f64.powi(n as i32);
            assert!((p / exact - 1.0).abs() < 0.06, "{n} blocks: {p}, exactly {exact}");
        }
    }

    #[test]
    fn frequent_analyses_have_stricter_boundaries() {
        let often = GroupSequentialTest::new(&(1..=15).collect::<Vec<_>>());
        let criticals: Vec<_> = often.looks.iter().map(|look| look.critical(0.05)).collect();
        assert!(criticals.is_sorted() && criticals.len() == 15, "{criticals:?}");
        assert!(criticals.last().unwrap().is_some_and(|last| last < 25), "{criticals:?}");
        let earliest = often.min_blocks(0.05).unwrap();
        assert!((7..=9).contains(&earliest) && often.looks[earliest - 2].critical(0.05).is_none(), "{criticals:?}");
        assert_eq!(GroupSequentialTest::new(&[5]).min_blocks(0.05), None);
    }

    /// What is significant at one error probability is so at every larger one, and the interval agrees with the
    /// p-value.
    #[test]
    fn analyses_are_nested_and_invert() {
        let test = GroupSequentialTest::new(&(1..=20).collect::<Vec<_>>());
        assert!(test.looks.iter().all(|look| look.critical.is_sorted()));
        let logs: LogRatios = (0..20).map(|index| 0.04 + 0.01 * f64::from(index * 7 % 11 - 5)).collect();
        let ExclusionP { above, below } = test.exclusion(&logs, 1.0).unwrap();
        assert!(above < 0.01 && below == 1.0, "{above} {below}");
        for (error, excluded) in [(above, true), (above * 0.97, false)] {
            assert_eq!(test.interval(&logs, error).unwrap().low > 1.0, excluded, "{error}");
        }
    }

    #[test]
    fn consistent_blocks_have_a_narrow_interval_that_inverts_with_the_sides() {
        let test = GroupSequentialTest::new(&[8]);
        let logs = [0.10, 0.11, 0.09, 0.10, 0.12, 0.10, 0.08, 0.11];
        let (one, other): (LogRatios, LogRatios) =
            (logs.into_iter().collect(), logs.map(|log| -log).into_iter().collect());
        assert!((one.estimate().unwrap() * other.estimate().unwrap() - 1.0).abs() < 1e-12);
        let [one, other] = [one, other].map(|logs| test.interval(&logs, 0.05).unwrap());
        assert!((one.low * other.high - 1.0).abs() < 1e-12 && one.low > 1.08 && one.high < 1.13);
        assert_eq!(test.interval(&logs[..7].iter().copied().collect(), 0.05), None);
    }

    /// Equal logarithms are on both sides of their value.
    #[test]
    fn equal_sides_are_not_excluded() {
        let test = GroupSequentialTest::new(&[8]);
        let equal: LogRatios = std::iter::repeat_n(0.0, 8).collect();
        assert_eq!(test.exclusion(&equal, 1.0), Some(ExclusionP { below: 1.0, above: 1.0 }));
        assert_eq!(equal.estimate(), Some(1.0));
    }
}

//! Two sides sampled in turns, looked at again and again until it is clear how they stand to each other.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Interval;

/// So many sequences of blocks decide how far out a look has to be.
const SIMULATIONS: usize = 40_000;
const SEED: u64 = 6;

/// At which numbers of blocks the sides are looked at, and how far out they must be then, so that over all looks together
/// sides that differ in nothing are told apart with no more than a given probability.
///
/// Each block has one sample of either side, in random order. If the sides differ in nothing, the sign of each block's
/// difference is a coin's toss whatever its size, so that the Wilcoxon signed-rank statistic (Wilcoxon 1945) of n blocks
/// has a distribution that depends on n alone, and those of the first n and the first m > n a joint one, where sizes
/// neither rise nor fall for long. It is drawn here, with a fixed seed. How much of the error may be spent by each look is α·t^ρ at the share t of all blocks (Kim, DeMets 1987;
/// spending as such: Lan, DeMets 1983).
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSequentialTest {
    boundaries: Vec<Boundary>,
    error: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Boundary {
    blocks: usize,
    /// The sides differ where the smaller of both sums of ranks is at most this; none where they cannot yet.
    critical: Option<usize>,
}

/// How much is spent early: 1 is as much in each block, more is later.
const SPENDING_EXPONENT: f64 = 1.5;

/// How one side stands to another after some blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterimResult {
    /// The other side over this one: the median of the means of all pairs of blocks, of logarithms (Hodges, Lehmann
    /// 1963).
    pub estimate: f64,
    /// Where it lies. All intervals of all looks together have the truth in them with the confidence (repeated confidence
    /// intervals: Jennison, Turnbull 1989), so that whoever stops at one of them may rely on it. None where so few blocks
    /// allow none.
    pub interval: Option<Interval>,
}

impl GroupSequentialTest {
    /// Looks at these numbers of blocks, which rise; all together err with this probability, as near as drawing tells it:
    /// 0.05 to within 0.001, 0.001 to within 0.00016. Time grows with the square of the last number; 1,000 take seconds.
    pub fn new(blocks: &[usize], error: f64) -> Self {
        let most = blocks.last().copied().unwrap_or(0);
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        // Those that are not told apart yet.
        let mut sequences = vec![NullSequence::default(); SIMULATIONS];
        let mut boundaries = Vec::with_capacity(blocks.len());
        for n in 1..=most {
            for sequence in &mut sequences {
                sequence.toss(&mut random);
            }
            if blocks.binary_search(&n).is_err() {
                continue;
            }
            let spendable = error * (n as f64 / most as f64).powf(SPENDING_EXPONENT);
            let gone = SIMULATIONS - sequences.len();
            let left = ((SIMULATIONS as f64 * spendable).floor() as usize).saturating_sub(gone);
            let mut sums: Vec<usize> = sequences.iter().map(NullSequence::smaller_sum).collect();
            sums.sort_unstable();
            // The largest value that no more than those left are at or below.
            let critical = sums.get(left).and_then(|beyond| beyond.checked_sub(1)).filter(|_| left > 0);
            sequences.retain(|sequence| critical.is_none_or(|critical| sequence.smaller_sum() > critical));
            boundaries.push(Boundary { blocks: n, critical });
        }
        Self { boundaries, error }
    }

    /// The fewest blocks after which sides may be told apart; none where no look can.
    pub fn min_blocks(&self) -> Option<usize> {
        self.boundaries.iter().find(|look| look.critical.is_some()).map(|look| look.blocks)
    }

    /// Looks at the sides after so many blocks, of each the logarithm of the other side's sample over this one's; none
    /// where no look is due, or a logarithm is no number.
    pub fn analyze(&self, blocks: &[f64]) -> Option<InterimResult> {
        let look = self.boundaries.iter().find(|look| look.blocks == blocks.len())?;
        if blocks.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let n = blocks.len();
        let mut means = Vec::with_capacity(n * (n + 1) / 2);
        for (at, one) in blocks.iter().enumerate() {
            means.extend(blocks[at..].iter().map(|other| (one + other) / 2.0));
        }
        let last = means.len() - 1;
        let mut nth = |position: usize| *means.select_nth_unstable_by(position, f64::total_cmp).1;
        let interval = look.critical.map(|critical| Interval {
            low: nth(critical).exp(),
            high: nth(last - critical).exp(),
            confidence: 1.0 - self.error,
        });
        let centre = (nth(last / 2) + nth(last.div_ceil(2))) / 2.0;
        Some(InterimResult { estimate: centre.exp(), interval })
    }
}

/// Blocks whose differences have signs and sizes by chance alone.
#[derive(Clone, Default)]
struct NullSequence {
    /// Whether the sign is positive, in the order of the sizes.
    positive: Vec<bool>,
    /// The sum of the ranks of those that are.
    sum: usize,
}

impl NullSequence {
    fn toss(&mut self, random: &mut ChaCha8Rng) {
        let (at, positive) = (random.random_range(0..=self.positive.len()), random.random());
        // Each that is larger moves up by one.
        let larger = self.positive[at..].iter().filter(|positive| **positive).count();
        self.sum += larger + if positive { at + 1 } else { 0 };
        self.positive.insert(at, positive);
    }

    /// Of the ranks of either sign, the smaller sum.
    fn smaller_sum(&self) -> usize {
        let n = self.positive.len();
        self.sum.min(n * (n + 1) / 2 - self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_look_is_the_signed_rank_test() {
        // Exact: 6 blocks reach 2/64 with the sum 0; 10 blocks 0.0488 with 8 (Hollander, Wolfe, table A.4).
        let critical = |n: usize| GroupSequentialTest::new(&[n], 0.05).boundaries[0].critical;
        assert_eq!([critical(5), critical(6), critical(10), critical(15)], [None, Some(0), Some(8), Some(25)]);
    }

    #[test]
    fn looking_often_asks_for_more_each_time() {
        let often = GroupSequentialTest::new(&(1..=15).collect::<Vec<_>>(), 0.05);
        let criticals: Vec<_> = often.boundaries.iter().map(|look| look.critical).collect();
        assert!(criticals.is_sorted() && criticals.len() == 15, "{criticals:?}");
        assert!(criticals.last().unwrap().is_some_and(|last| last < 25), "{criticals:?}");
        let earliest = often.min_blocks().unwrap();
        assert!((7..=9).contains(&earliest) && often.boundaries[earliest - 2].critical.is_none(), "{criticals:?}");
        assert_eq!(GroupSequentialTest::new(&[5], 0.05).min_blocks(), None);
    }

    #[test]
    fn blocks_that_agree_have_a_narrow_interval_and_turn_with_the_sides() {
        let looks = GroupSequentialTest::new(&[8], 0.05);
        let logs = [0.10, 0.11, 0.09, 0.10, 0.12, 0.10, 0.08, 0.11];
        let one = looks.analyze(&logs).unwrap();
        let other = looks.analyze(&logs.map(|log| -log)).unwrap();
        assert!((one.estimate * other.estimate - 1.0).abs() < 1e-12);
        let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
        assert!((one.low * other.high - 1.0).abs() < 1e-12 && one.low > 1.08 && one.high < 1.13);
        assert_eq!(looks.analyze(&logs[..7]), None);
        assert_eq!(looks.analyze(&[f64::NAN; 8]), None);
    }
}

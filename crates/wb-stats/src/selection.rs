//! Selection among values of all pairs of samples, without writing the pairs down: memory for as many values as there
//! are samples, and time for 64 passes over them at most.
//!
//! The number of pairs at or below a value is counted in one pass over sorted samples, and the value of a rank found by
//! bisection, of the bits of floating-point numbers rather than of their values: their order is that of the numbers, so
//! the search ends, with exactly the value that sorting all pairs would give. The literature selects by random or
//! weighted pivots (Monahan 1984; Johnson, Mizoguchi 1978) with as many passes.

/// Up to this number, the pairs themselves are selected from.
const FEW: usize = 1024;

/// Values of all pairs, of which those at or below a value can be counted in linear time.
pub(crate) trait PairValues {
    /// The number of pairs; more than 0.
    fn count(&self) -> usize;
    /// The smallest and the largest value.
    fn range(&self) -> (f64, f64);
    /// The number of values whose [`order`] is at most `limit`.
    fn count_up_to(&self, limit: u64) -> usize;
    /// The values whose [`order`] is above `low` and at most `high`.
    fn between(&self, low: u64, high: u64) -> Vec<f64>;
    /// The number of samples, and so of values that may be in memory at the same time.
    fn samples(&self) -> usize;

    /// The value of a rank, from 0, in ascending order.
    fn nth(&self, rank: usize) -> f64 {
        let (smallest, largest) = self.range();
        // `low` is below the value, with `below` pairs at or below it; `high` is not, with `up_to` pairs.
        let (mut low, mut below) = (order(smallest) - 1, 0);
        let (mut high, mut up_to) = (order(largest), self.count());
        while up_to - below > self.samples().max(FEW) {
            if high - low == 1 {
                return number(high);
            }
            let middle = low + (high - low) / 2;
            match self.count_up_to(middle) {
                count if count > rank => (high, up_to) = (middle, count),
                count => (low, below) = (middle, count),
            }
        }
        let mut values = self.between(low, high);
        *values.select_nth_unstable_by(rank - below, f64::total_cmp).1
    }

    fn median(&self) -> f64 {
        let last = self.count() - 1;
        let lower = self.nth(last / 2);
        let upper = if last.is_multiple_of(2) { lower } else { self.nth(last / 2 + 1) };
        (lower + upper) / 2.0
    }
}

/// The differences of every sample of one side from every sample of another one, both ascending and not empty.
pub(crate) struct Differences<'a> {
    pub(crate) from: &'a [f64],
    pub(crate) to: &'a [f64],
}

impl PairValues for Differences<'_> {
    fn count(&self) -> usize {
        self.from.len() * self.to.len()
    }

    fn range(&self) -> (f64, f64) {
        let (from, to) = (self.from, self.to);
        (to[0] - from[from.len() - 1], to[to.len() - 1] - from[0])
    }

    fn count_up_to(&self, limit: u64) -> usize {
        // The larger a sample of this side, the more of the other side have to be left out.
        let mut above = 0;
        let counts = self.to.iter().map(|to| {
            above += self.from[above..].iter().take_while(|from| order(to - **from) > limit).count();
            self.from.len() - above
        });
        counts.sum()
    }

    fn between(&self, low: u64, high: u64) -> Vec<f64> {
        let (mut above_high, mut above_low) = (0, 0);
        let values = self.to.iter().flat_map(|to| {
            above_high += self.from[above_high..].iter().take_while(|from| order(to - **from) > high).count();
            above_low += self.from[above_low..].iter().take_while(|from| order(to - **from) > low).count();
            self.from[above_high..above_low].iter().map(move |from| to - from)
        });
        values.collect()
    }

    fn samples(&self) -> usize {
        self.from.len() + self.to.len()
    }
}

/// The Walsh averages: the means of all pairs of ascending samples, each of which also forms a pair with itself.
pub(crate) struct WalshAverages<'a>(pub(crate) &'a [f64]);

impl WalshAverages<'_> {
    /// For each sample, the number of samples from itself on whose mean with it is at or below `limit`.
    fn counts(&self, limit: u64) -> impl Iterator<Item = usize> {
        let all = self.0;
        let mut end = all.len();
        all.iter().enumerate().map(move |(index, one)| {
            end -= all[..end].iter().rev().take_while(|other| order((one + **other) / 2.0) > limit).count();
            end.saturating_sub(index)
        })
    }
}

impl PairValues for WalshAverages<'_> {
    fn count(&self) -> usize {
        self.0.len() * (self.0.len() + 1) / 2
    }

    fn range(&self) -> (f64, f64) {
        (self.0[0], self.0[self.0.len() - 1])
    }

    fn count_up_to(&self, limit: u64) -> usize {
        self.counts(limit).sum()
    }

    fn between(&self, low: u64, high: u64) -> Vec<f64> {
        let ends = self.counts(low).zip(self.counts(high)).enumerate();
        let values = ends.flat_map(|(index, (from, to))| {
            self.0[index + from..index + to].iter().map(move |other| (self.0[index] + other) / 2.0)
        });
        values.collect()
    }

    fn samples(&self) -> usize {
        self.0.len()
    }
}

const SIGN: u64 = 1 << 63;

/// The position of a number in the order of all floating-point numbers.
fn order(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The number at a position: the inverse of [`order`].
fn number(order: u64) -> f64 {
    f64::from_bits(if order & SIGN == 0 { !order } else { order & !SIGN })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Samples with ties, zeros of both signs, and magnitudes from the smallest to the largest.
    fn sample() -> impl Strategy<Value = f64> {
        prop_oneof![
            (-5_i32..5).prop_map(f64::from),
            Just(-0.0),
            -1e3..1e3,
            (-150_i32..150).prop_map(|exponent| 10_f64.powi(exponent)),
            Just(5e-324),
        ]
    }

    fn sorted(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// Compares every rank, or some of many, with sorting.
    fn assert_ranks(values: &impl PairValues, naive: Vec<f64>) {
        let naive = sorted(naive);
        assert_eq!(values.count(), naive.len());
        let step = (naive.len() / 50).max(1);
        for rank in (0..naive.len()).step_by(step).chain([naive.len() - 1]) {
            assert_eq!(values.nth(rank), naive[rank], "rank {rank} of {}", naive.len());
        }
        let last = naive.len() - 1;
        assert_eq!(values.median(), (naive[last / 2] + naive[last.div_ceil(2)]) / 2.0);
    }

    proptest! {
        #[test]
        fn the_order_of_bits_is_that_of_numbers(one in sample(), other in sample()) {
            prop_assert_eq!(order(one).cmp(&order(other)), one.total_cmp(&other));
            prop_assert_eq!(number(order(one)).to_bits(), one.to_bits());
        }

        #[test]
        fn differences_have_the_ranks_of_sorted_ones(
            from in prop::collection::vec(sample(), 1..80), to in prop::collection::vec(sample(), 1..80)
        ) {
            let (from, to) = (sorted(from), sorted(to));
            let naive = to.iter().flat_map(|to| from.iter().map(move |from| to - from)).collect();
            assert_ranks(&Differences { from: &from, to: &to }, naive);
        }

        #[test]
        fn walsh_averages_have_the_ranks_of_sorted_ones(all in prop::collection::vec(sample(), 1..120)) {
            let all = sorted(all);
            let naive = (0..all.len()).flat_map(|index| all[index..].iter().map(|other| (all[index] + other) / 2.0).collect::<Vec<_>>());
            assert_ranks(&WalshAverages(&all), naive.collect());
        }
    }

    #[test]
    fn zeros_of_both_signs_are_selected() {
        let (from, to) = ([-1.0, 0.0], [0.0, 1.0]);
        let differences = Differences { from: &from, to: &to };
        assert_eq!([0, 1, 2, 3].map(|rank| differences.nth(rank)), [0.0, 1.0, 1.0, 2.0]);
        assert_eq!(WalshAverages(&[-0.0, 0.0]).median(), 0.0);
    }

    // The search bisects between bits of numbers, of which equal samples leave one.
    #[test]
    fn equal_samples_end_the_search() {
        let all = vec![3.25; 5000];
        assert_eq!(Differences { from: &all, to: &all }.median(), 0.0);
        assert_eq!(WalshAverages(&all).median(), 3.25);
    }

    // Writing down all pairs of 50,000 samples took 20 GB.
    #[test]
    fn a_million_samples_need_memory_for_as_many_values() {
        let all: Vec<f64> = (0..1_000_000).map(|n| f64::from(n) * 1e-3).collect();
        let differences = Differences { from: &all, to: &all };
        assert_eq!(differences.median(), 0.0);
        assert!((differences.nth(differences.count() / 10) / -552.786 - 1.0).abs() < 1e-3);
    }
}

//! The null distribution of the ranks that one side's samples have in a tail.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

/// The samples beyond a threshold, ascending, and how many samples there are in all.
pub(crate) struct TailRanks {
    /// Midranks within the tail, doubled so that they are whole numbers.
    doubled: Vec<usize>,
    doubled_sum_of_b: usize,
    ties: bool,
    n: usize,
    m: usize,
}

impl TailRanks {
    /// `tail` has the samples of the tail, and whether each is of the second side; the sides have `n` and `m` samples.
    pub(crate) fn new(mut tail: Vec<(f64, bool)>, n: usize, m: usize) -> Self {
        tail.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let mut ranks = Self { doubled: Vec::with_capacity(tail.len()), doubled_sum_of_b: 0, ties: false, n, m };
        for equal in tail.chunk_by(|one, other| one.0 == other.0) {
            let doubled = 2 * ranks.doubled.len() + equal.len() + 1;
            ranks.doubled.extend(equal.iter().map(|_| doubled));
            ranks.doubled_sum_of_b += doubled * equal.iter().filter(|(_, of_b)| *of_b).count();
            ranks.ties |= equal.len() > 1;
        }
        ranks
    }

    /// The two-sided p-value of the sum of the second side's ranks, over all ways to assign the samples to the sides.
    pub(crate) fn p_value(&self) -> f64 {
        // Without ties the sums are even, and half as many.
        let (masses, observed) = if self.ties {
            (compute_masses(&self.doubled, self.n, self.m).into(), self.doubled_sum_of_b)
        } else {
            (untied_masses(self.doubled.len(), self.n, self.m), self.doubled_sum_of_b / 2)
        };
        let (below, above) = (masses[..=observed].iter().sum::<f64>(), masses[observed..].iter().sum::<f64>());
        (2.0 * below.min(above)).min(1.0)
    }
}

thread_local! {
    static CACHE: RefCell<HashMap<[usize; 3], Rc<[f64]>>> = RefCell::default();
}

/// Cached, since many comparisons have the same sizes.
fn untied_masses(tail: usize, n: usize, m: usize) -> Rc<[f64]> {
    let compute = || compute_masses(&(1..=tail).collect::<Vec<_>>(), n, m).into();
    CACHE.with_borrow_mut(|cache| Rc::clone(cache.entry([tail, n, m]).or_insert_with(compute)))
}

/// The probability of each sum of the second side's ranks, if each way to assign `n + m` samples to the sides is as
/// probable: by recursion over the samples of the tail, as in the shift algorithm (Streitberg, Röhmel 1986).
fn compute_masses(ranks: &[usize], n: usize, m: usize) -> Vec<f64> {
    let max_sum = ranks.iter().sum::<usize>();
    // masses[k][s]: the probability that k of the samples so far are of the second side, with ranks that sum to s.
    let mut masses = vec![vec![0.0_f64; max_sum + 1]; ranks.len().min(m) + 1];
    masses[0][0] = 1.0;
    let mut reached = 0;
    for (assigned, &rank) in ranks.iter().enumerate() {
        let left = (n + m - assigned) as f64;
        for k in (0..=assigned.min(m)).rev() {
            let of_b = (m - k) as f64 / left;
            let (lower, upper) = masses.split_at_mut(k + 1);
            let from = &mut lower[k][..=reached];
            if let Some(to) = upper.first_mut() {
                to[rank..].iter_mut().zip(from.iter()).for_each(|(to, from)| *to += of_b * from);
            }
            from.iter_mut().for_each(|mass| *mass *= 1.0 - of_b);
        }
        reached += rank;
    }
    (0..=max_sum).map(|sum| masses.iter().map(|row| row[sum]).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against all ways to choose three of seven samples, of which the upper four are the tail.
    #[test]
    fn masses_are_those_of_all_assignments() {
        let scores = [0, 0, 0, 1, 2, 3, 4_usize];
        let mut counts = [0.0; 11];
        for set in (0..1_u32 << 7).filter(|set| set.count_ones() == 3) {
            let sum: usize = (0..7).filter(|bit| set >> bit & 1 == 1).map(|bit| scores[bit]).sum();
            counts[sum] += 1.0 / 35.0;
        }
        let masses = compute_masses(&scores[3..], 4, 3);
        assert_eq!(masses.len(), counts.len());
        masses.iter().zip(counts).for_each(|(mass, count)| assert!((mass - count).abs() < 1e-12));
    }

    #[test]
    fn with_ties_ranks_are_means() {
        let ranks = TailRanks::new(vec![(5.0, true), (3.0, false), (5.0, false), (9.0, true)], 6, 6);
        assert_eq!((&ranks.doubled[..], ranks.doubled_sum_of_b, ranks.ties), (&[2, 5, 5, 8][..], 13, true));
    }

    #[test]
    fn both_ways_agree_without_ties() {
        let tail = |count: u32| (0..count).map(|index| (f64::from(index), index % 3 > 0)).collect::<Vec<_>>();
        let ranks = TailRanks::new(tail(12), 20, 30);
        let doubled = TailRanks { ties: true, ..TailRanks::new(tail(12), 20, 30) };
        assert!((ranks.p_value() - doubled.p_value()).abs() < 1e-12);
        assert_eq!(TailRanks::new(Vec::new(), 3, 3).p_value(), 1.0);
    }
}

//! Whether variants fail more or less often than the first one, and whether more rounds would tell.

use std::collections::BTreeSet;

use wb_results::comparison::AttemptCounts;
use wb_stats::benjamini_hochberg;

use crate::failure_test::FailureTest;

/// The share of the error rate at which failures end the sampling of a case, looked at after each round. At the end
/// they are tested with the whole rate: both together err at most at the rate, as the tests of this crate simulate.
const EARLY_SHARE: f64 = 0.1;

/// Factor by which the p-value expected at the end may exceed the error rate for more blocks to be taken: twice as many
/// failures as expected are not rare.
const EXPECTED_EXCESS: f64 = 4.0;

/// The number of attempts up to which it is calculated how many would decide.
const MANY_ATTEMPTS: u32 = 100_000;

/// The attempts of a variant at the samples of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariantAttempts {
    /// The number of rounds in which it had its turn, with one attempt each.
    pub rounds: u32,
    /// The rounds in which its attempt failed, by number.
    pub failed: BTreeSet<u32>,
    /// The attempts at warm-ups, before the first round.
    pub warm_ups: AttemptCounts,
}

impl VariantAttempts {
    pub fn of_rounds(failed: impl IntoIterator<Item = bool>) -> Self {
        let mut attempts = Self::default();
        for is_failed in failed {
            attempts.failed.extend(is_failed.then_some(attempts.rounds));
            attempts.rounds += 1;
        }
        attempts
    }

    pub(super) fn compared(pair: [&Self; 2], rounds: u32) -> [AttemptCounts; 2] {
        Self::with_warm_ups(pair, pair.map(|one| one.counts(rounds)))
    }

    /// Adds the warm-ups of each of two variants to its attempts if the other variant failed in its own, so that
    /// attempts at the same are compared. A variant that failed in its warm-ups has no other attempts.
    pub(crate) fn with_warm_ups(pair: [&Self; 2], attempts: [AttemptCounts; 2]) -> [AttemptCounts; 2] {
        let [first, other] = pair.map(Self::failed_in_warm_up);
        let [of_first, of_other] = pair.map(|one| one.warm_ups);
        let add = |attempts: AttemptCounts, warm_ups, is_added| if is_added { attempts + warm_ups } else { attempts };
        [add(attempts[0], of_first, other && !first), add(attempts[1], of_other, first && !other)]
    }

    fn failed_in_warm_up(&self) -> bool {
        self.rounds == 0 && self.warm_ups.failed > 0
    }

    /// Counts the attempts of the first `rounds` rounds, or those at warm-ups if there were no rounds.
    fn counts(&self, rounds: u32) -> AttemptCounts {
        if self.failed_in_warm_up() {
            return self.warm_ups;
        }
        AttemptCounts { failed: self.failed.range(..rounds).count() as u32, attempts: self.rounds.min(rounds) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FailureComparison {
    counts: [AttemptCounts; 2],
    /// The p-value, adjusted for the family.
    pub(crate) adjusted: f64,
    /// The factor from the p-value to the adjusted one.
    correction: f64,
}

impl FailureComparison {
    /// Compares pairs of the first and another variant as one family; `None` for those without a failure.
    pub(crate) fn compare_all(pairs: &[[AttemptCounts; 2]], error_rate: f64) -> Vec<Option<Self>> {
        // Failures beside no attempt say nothing yet.
        let p_value = |pair: &[AttemptCounts; 2]| FailureTest::new(*pair).map_or(1.0, |test| test.p_value);
        let p_values: Vec<f64> = pairs.iter().map(p_value).collect();
        let adjusted = benjamini_hochberg(&p_values, error_rate).adjusted;
        let comparison = |((counts, p_value), adjusted): ((&[AttemptCounts; 2], f64), f64)| {
            // One that is cut at 1 has that of the largest p-value.
            let correction = if adjusted < 1.0 { adjusted / p_value } else { pairs.len() as f64 };
            let has_failures = counts.iter().any(|side| side.failed > 0);
            has_failures.then_some(Self { counts: *counts, adjusted, correction })
        };
        pairs.iter().zip(p_values).zip(adjusted).map(comparison).collect()
    }

    /// Whether the other variant fails more often, significantly or not.
    pub(crate) fn is_higher(&self) -> bool {
        let [first, other] = self.counts.map(share);
        other > first
    }

    /// Whether the shares differ, and not significantly.
    pub(crate) fn is_undecided(&self, error_rate: f64) -> bool {
        let [first, other] = self.counts.map(share);
        first != other && self.adjusted > error_rate
    }

    /// Whether more rounds are needed: the shares differ, but not yet with enough certainty to stop. With `limits`
    /// attempts and as many failures as so far, or somewhat more, the certainty would suffice. A variant that makes no
    /// more attempts has no limit; the attempts of the other one are worth making only if all of its own failed.
    pub(super) fn is_open(&self, limits: [Option<u32>; 2], error_rate: f64) -> bool {
        let [first, other] = self.counts.map(share);
        self.can_grow(limits.map(|limit| limit.is_some()))
            && first != other
            && self.adjusted > error_rate * EARLY_SHARE
            && self.projected_p(limits) <= error_rate * EXPECTED_EXCESS
    }

    /// The smallest number of attempts that would decide, of variants that make more, if the share of failures stays as
    /// it is. `None` if the shares are equal, decided already or differ too little, or no further attempts count.
    pub(crate) fn attempts_to_decide(&self, makes_more: [bool; 2], error_rate: f64) -> Option<u32> {
        let growing = self.counts.into_iter().zip(makes_more).filter(|(_, makes_more)| *makes_more);
        let attempts = growing.map(|(counts, _)| counts.attempts).max()?;
        if !self.is_undecided(error_rate) || !self.can_grow(makes_more) {
            return None;
        }
        let limits = |attempts: u32| makes_more.map(|makes_more| makes_more.then_some(attempts));
        let decides = |attempts: &u32| self.projected_p(limits(*attempts)) <= error_rate;
        // A percent is exact enough.
        let steps = std::iter::successors(Some(attempts + 1), |position| Some(position + 1 + position / 100));
        steps.take_while(|attempts| *attempts <= MANY_ATTEMPTS).find(decides)
    }

    /// Whether both variants make more attempts, or one does beside a variant all of whose attempts failed. Any other
    /// variant that was given up ended because its last attempts failed in a row: its share of failures is too high to
    /// justify more attempts of the other variant.
    fn can_grow(&self, makes_more: [bool; 2]) -> bool {
        let is_complete = |(counts, makes_more): (&AttemptCounts, bool)| makes_more || counts.failed == counts.attempts;
        makes_more != [false; 2] && self.counts.iter().zip(makes_more).all(is_complete)
    }

    /// The p-value in the family after this number of attempts of each, if the shares of failures stay as they are.
    fn projected_p(&self, attempts: [Option<u32>; 2]) -> f64 {
        let project = |counts: AttemptCounts, attempts: Option<u32>| {
            // Without a number, a side makes no more attempts.
            let attempts = attempts.unwrap_or(0).max(counts.attempts);
            AttemptCounts { failed: (share(counts) * f64::from(attempts)).round() as u32, attempts }
        };
        let projected = [project(self.counts[0], attempts[0]), project(self.counts[1], attempts[1])];
        // As if the others in the family stayed as they are.
        FailureTest::new(projected).map_or(1.0, |test| (test.p_value * self.correction).min(1.0))
    }
}

fn share(AttemptCounts { failed, attempts }: AttemptCounts) -> f64 {
    f64::from(failed) / f64::from(attempts.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(first: [u32; 2], other: [u32; 2]) -> FailureComparison {
        let pair = [first, other].map(|[failed, attempts]| AttemptCounts { failed, attempts });
        FailureComparison::compare_all(&[pair], 0.05).remove(0).expect("something failed")
    }

    #[test]
    fn attempts_of_the_first_rounds_are_counted() {
        let attempts = VariantAttempts::of_rounds([false, true, true, false]);
        let counts = |rounds: u32| (attempts.counts(rounds).failed, attempts.counts(rounds).attempts);
        assert_eq!([0, 1, 2, 3, 9].map(counts), [(0, 0), (0, 1), (1, 2), (2, 3), (2, 4)]);
    }

    /// Whichever of the two fails more.
    #[test]
    fn a_third_beside_none_is_worth_more_rounds_and_a_thirteenth_is_not() {
        for swap in [false, true] {
            let of = |failed: u32, attempts: u32| {
                let sides = [[0, attempts], [failed, attempts]];
                compare(sides[usize::from(swap)], sides[usize::from(!swap)])
            };
            let third = of(4, 13);
            assert!(third.is_undecided(0.05) && third.is_open([Some(40); 2], 0.05), "{third:?}");
            let needed = third.attempts_to_decide([true; 2], 0.05).unwrap();
            assert!((14..=20).contains(&needed), "{needed}");
            let once = of(1, 13);
            assert!(once.is_undecided(0.05) && !once.is_open([Some(40); 2], 0.05), "{once:?}");
            assert!((60..120).contains(&once.attempts_to_decide([true; 2], 0.05).unwrap()), "{once:?}");
            // Significant, but not enough to stop for it.
            let more = of(6, 16);
            assert!(!more.is_undecided(0.05) && more.is_open([Some(40); 2], 0.05), "{more:?}");
            assert_eq!(more.attempts_to_decide([true; 2], 0.05), None);
            let clear = of(10, 24);
            assert!(!clear.is_undecided(0.05) && !clear.is_open([Some(40); 2], 0.05), "{clear:?}");
            assert_eq!(of(10, 24).is_higher(), !swap);
        }
    }

    #[test]
    fn equal_shares_are_not_undecided() {
        for [failed, attempts] in [[1, 13], [13, 13]] {
            let equal = compare([failed, attempts], [failed, attempts]);
            assert!(
                !equal.is_undecided(0.05) && !equal.is_open([Some(1000); 2], 0.05) && !equal.is_higher(),
                "{equal:?}"
            );
            assert_eq!(equal.attempts_to_decide([true; 2], 0.05), None);
        }
    }

    #[test]
    fn a_larger_family_needs_more_attempts() {
        let pair = [[0, 13], [4, 13]].map(|[failed, attempts]| AttemptCounts { failed, attempts });
        let none = [AttemptCounts { failed: 0, attempts: 13 }; 2];
        let needed = |others: usize| {
            let pairs: Vec<_> = std::iter::once(pair).chain(std::iter::repeat_n(none, others)).collect();
            FailureComparison::compare_all(&pairs, 0.05)[0].unwrap().attempts_to_decide([true; 2], 0.05).unwrap()
        };
        assert!(needed(0) < needed(9) && needed(9) < needed(99), "{} {} {}", needed(0), needed(9), needed(99));
    }

    /// One that always crashes makes no more attempts; those of the other one decide alone.
    #[test]
    fn a_variant_that_makes_no_more_attempts_is_decided_by_those_of_the_other() {
        for (crashed, open) in [(1, 18), (3, 2), (10, 1)] {
            for swap in [false, true] {
                let turn = |mut pair: [[u32; 2]; 2]| {
                    pair.rotate_left(usize::from(swap));
                    pair
                };
                let [first, other] = turn([[0, open], [crashed, crashed]]);
                let more = if swap { [None, Some(30)] } else { [Some(30), None] };
                let comparison = compare(first, other);
                assert_eq!(comparison.is_open(more, 0.05), comparison.adjusted > 0.005, "{comparison:?}");
                if comparison.is_undecided(0.05) {
                    let needed = comparison.attempts_to_decide(more.map(|it| it.is_some()), 0.05).unwrap();
                    let [first, other] = turn([[0, needed], [crashed, crashed]]);
                    assert!(!compare(first, other).is_undecided(0.05), "{needed} of {comparison:?}");
                    let [first, other] = turn([[0, needed - 1], [crashed, crashed]]);
                    assert!(compare(first, other).is_undecided(0.05), "{needed} of {comparison:?}");
                }
                assert!(!comparison.is_open([None; 2], 0.05), "neither makes more");
                let [first, other] = turn([[0, open], [crashed, crashed + 1]]);
                let survived = compare(first, other);
                assert!(!survived.is_open(more, 0.05), "only its last attempts failed");
                assert_eq!(survived.attempts_to_decide(more.map(|it| it.is_some()), 0.05), None);
                assert_eq!(comparison.attempts_to_decide([false; 2], 0.05), None);
            }
        }
    }

    // A variant that fails in its warm-ups was given up before any number of blocks could call it worse.
    #[test]
    fn warm_ups_count_beside_one_that_failed_in_its_own() {
        let counts = |failed: u32, attempts: u32| AttemptCounts { failed, attempts };
        let good = VariantAttempts { warm_ups: counts(0, 1), ..VariantAttempts::of_rounds([false, true, false]) };
        let cold = VariantAttempts { warm_ups: counts(3, 3), ..VariantAttempts::default() };
        assert_eq!(VariantAttempts::compared([&good, &cold], 9), [counts(1, 4), counts(3, 3)]);
        assert_eq!(VariantAttempts::compared([&cold, &good], 9), [counts(3, 3), counts(1, 4)]);
        assert_eq!(VariantAttempts::compared([&good, &good], 9), [counts(1, 3); 2]);
        assert_eq!(VariantAttempts::compared([&cold, &cold], 9), [counts(3, 3); 2]);
    }
}

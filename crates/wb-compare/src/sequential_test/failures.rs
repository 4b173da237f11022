//! Whether variants fail more or less often than the first one, and whether more rounds would tell.

use std::collections::BTreeSet;

use wb_stats::benjamini_hochberg;

use crate::build::AttemptCounts;
use crate::failure_test::FailureTest;

/// The share of the error rate at which failures end the sampling of a case. It is looked at after each round, and the
/// verdict once more at the end, with the whole rate: both together err at most at the rate, as the tests of this crate
/// simulate.
const EARLY_SHARE: f64 = 0.1;

/// By how much the p-value that is to be expected at the end may exceed the error rate for more blocks to be taken: twice as
/// many failures as to be expected are not rare.
const EXPECTED_EXCESS: f64 = 4.0;

/// The number of attempts up to which it is calculated how many would decide.
const MANY_ATTEMPTS: u32 = 100_000;

/// The attempts of a variant at the samples of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariantAttempts {
    /// The number of rounds in which it had its turn, with one attempt each.
    pub rounds: u32,
    /// Those in which the attempt failed.
    pub failed: BTreeSet<u32>,
}

impl VariantAttempts {
    /// Collects whether the attempt of each round failed.
    pub fn of_rounds(failed: impl IntoIterator<Item = bool>) -> Self {
        let mut attempts = Self::default();
        for is_failed in failed {
            attempts.failed.extend(is_failed.then_some(attempts.rounds));
            attempts.rounds += 1;
        }
        attempts
    }

    /// Those of the first rounds.
    pub(super) fn counts(&self, rounds: u32) -> AttemptCounts {
        AttemptCounts { failed: self.failed.range(..rounds).count() as u32, attempts: self.rounds.min(rounds) }
    }
}

/// The comparison of a variant's failed attempts with those of the first variant, in a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FailureComparison {
    counts: [AttemptCounts; 2],
    /// The p-value, adjusted for the family.
    pub(crate) adjusted: f64,
    /// What the adjustment multiplies it with.
    correction: f64,
}

impl FailureComparison {
    /// Compares pairs of the first and another variant as one family; `None` for those without a failure.
    pub(crate) fn compare_all(pairs: &[[AttemptCounts; 2]], error_rate: f64) -> Vec<Option<Self>> {
        let tests: Vec<Option<FailureTest>> = pairs.iter().map(|pair| FailureTest::of(*pair)).collect();
        let p_values: Vec<f64> = tests.iter().map(|test| test.as_ref().map_or(1.0, |test| test.p_value)).collect();
        let adjusted = benjamini_hochberg(&p_values, error_rate).adjusted;
        let comparison = |((test, counts), adjusted): ((Option<FailureTest>, &[AttemptCounts; 2]), f64)| {
            // One that is cut at 1 has that of the largest p-value.
            let correction = if adjusted < 1.0 { adjusted / test.as_ref()?.p_value } else { pairs.len() as f64 };
            test.map(|_| Self { counts: *counts, adjusted, correction })
        };
        tests.into_iter().zip(pairs).zip(adjusted).map(comparison).collect()
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

    /// Whether more rounds are needed: the shares differ, but not yet with enough certainty to stop for it, and with as many
    /// attempts as `limit`, of which as many fail as so far or somewhat more, they would.
    pub(super) fn is_open(&self, limit: u32, error_rate: f64) -> bool {
        let [first, other] = self.counts.map(share);
        first != other
            && self.adjusted > error_rate * EARLY_SHARE
            && self.projected_p(limit) <= error_rate * EXPECTED_EXCESS
    }

    /// The smallest number of attempts of either variant that would decide, if as many of them fail as so far; `None` if the
    /// shares are equal, are decided already, or differ too little.
    pub(crate) fn attempts_to_decide(&self, error_rate: f64) -> Option<u32> {
        let attempts =
            self.counts.map(|counts| counts.attempts).into_iter().max().filter(|_| self.is_undecided(error_rate))?;
        let decides = |attempts: &u32| self.projected_p(*attempts) <= error_rate;
        // A percent is exact enough.
        let steps = std::iter::successors(Some(attempts + 1), |at| Some(at + 1 + at / 100));
        steps.take_while(|attempts| *attempts <= MANY_ATTEMPTS).find(decides)
    }

    /// The p-value in the family after this number of attempts, if as many of them fail as so far.
    fn projected_p(&self, attempts: u32) -> f64 {
        let project = |counts: AttemptCounts| {
            let attempts = attempts.max(counts.attempts);
            AttemptCounts { failed: (share(counts) * f64::from(attempts)).round() as u32, attempts }
        };
        // As if the others in the family stayed as they are.
        FailureTest::of(self.counts.map(project)).map_or(1.0, |test| (test.p_value * self.correction).min(1.0))
    }
}

/// The share of failed attempts.
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
            assert!(third.is_undecided(0.05) && third.is_open(40, 0.05), "{third:?}");
            let needed = third.attempts_to_decide(0.05).unwrap();
            assert!((14..=20).contains(&needed), "{needed}");
            let once = of(1, 13);
            assert!(once.is_undecided(0.05) && !once.is_open(40, 0.05), "{once:?}");
            assert!((60..120).contains(&once.attempts_to_decide(0.05).unwrap()), "{once:?}");
            // Significant, but not enough to stop for it.
            let more = of(6, 16);
            assert!(!more.is_undecided(0.05) && more.is_open(40, 0.05), "{more:?}");
            assert_eq!(more.attempts_to_decide(0.05), None);
            let clear = of(10, 24);
            assert!(!clear.is_undecided(0.05) && !clear.is_open(40, 0.05), "{clear:?}");
            assert_eq!(of(10, 24).is_higher(), !swap);
        }
    }

    #[test]
    fn equal_shares_are_not_undecided() {
        for [failed, attempts] in [[1, 13], [13, 13]] {
            let equal = compare([failed, attempts], [failed, attempts]);
            assert!(!equal.is_undecided(0.05) && !equal.is_open(1000, 0.05) && !equal.is_higher(), "{equal:?}");
            assert_eq!(equal.attempts_to_decide(0.05), None);
        }
    }

    #[test]
    fn a_larger_family_needs_more_attempts() {
        let pair = [[0, 13], [4, 13]].map(|[failed, attempts]| AttemptCounts { failed, attempts });
        let none = [AttemptCounts { failed: 0, attempts: 13 }; 2];
        let needed = |others: usize| {
            let pairs: Vec<_> = std::iter::once(pair).chain(std::iter::repeat_n(none, others)).collect();
            FailureComparison::compare_all(&pairs, 0.05)[0].unwrap().attempts_to_decide(0.05).unwrap()
        };
        assert!(needed(0) < needed(9) && needed(9) < needed(99), "{} {} {}", needed(0), needed(9), needed(99));
    }
}

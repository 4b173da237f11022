//! Whether variants fail more often than the first one.

use wb_results::comparison::AttemptCounts;

use super::{CaseSamples, VariantSamples};
use crate::sequential_test::{FailureComparison, VariantAttempts};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VariantFailures {
    /// Adjusted; `None` if nothing failed, or for the first variant.
    pub(super) p_value: Option<f64>,
    pub(super) rose: bool,
    pub(super) is_undecided: bool,
    pub(super) attempts_to_decide: Option<u32>,
    /// Of the first variant and of this one; `None` for the first variant.
    pub(super) counts: Option<[AttemptCounts; 2]>,
}

impl VariantFailures {
    /// All cases are one family.
    pub(super) fn compare_all(cases: &[CaseSamples], error_rate: f64) -> Vec<Vec<Self>> {
        let pairs: Vec<[&VariantSamples; 2]> = cases.iter().flat_map(CaseSamples::pairs).collect();
        let counts = |pair: &[&VariantSamples; 2]| {
            VariantAttempts::with_warm_ups(pair.map(|one| &one.attempts), pair.map(|one| one.failures))
        };
        let counts: Vec<[AttemptCounts; 2]> = pairs.iter().map(counts).collect();
        let comparisons = FailureComparison::compare_all(&counts, error_rate).into_iter().zip(counts).zip(pairs);
        let mut all = comparisons.map(|((comparison, counts), pair)| {
            let makes_more = pair.map(|one| !one.makes_no_more);
            let comparison = comparison.filter(|_| counts.iter().all(|side| side.attempts > 0));
            Self { counts: Some(counts), ..Self::new(comparison, makes_more, error_rate) }
        });
        let case = |case: &CaseSamples| {
            let others = case.variants.len().saturating_sub(1);
            std::iter::once(Self::default()).chain(all.by_ref().take(others)).collect()
        };
        cases.iter().map(case).collect()
    }

    pub(super) fn is_significant(&self, error_rate: f64) -> bool {
        self.p_value.is_some_and(|p_value| p_value <= error_rate)
    }

    fn new(comparison: Option<FailureComparison>, makes_more: [bool; 2], error_rate: f64) -> Self {
        comparison.map_or_else(Self::default, |it| Self {
            p_value: Some(it.adjusted),
            rose: it.is_higher() && it.adjusted <= error_rate,
            is_undecided: it.is_undecided(error_rate),
            attempts_to_decide: it.attempts_to_decide(makes_more, error_rate),
            counts: None,
        })
    }
}

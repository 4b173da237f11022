//! Whether variants fail more often than the first one.

use super::CaseSamples;
use crate::build::AttemptCounts;
use crate::sequential_test::FailureComparison;

/// The comparison of a variant's failed attempts with those of the first variant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VariantFailures {
    /// Adjusted; `None` if nothing failed, or for the first variant.
    pub(super) p_value: Option<f64>,
    pub(super) rose: bool,
    pub(super) is_undecided: bool,
    pub(super) attempts_to_decide: Option<u32>,
}

impl VariantFailures {
    /// Compares the variants of all cases as one family.
    pub(super) fn compare_all(cases: &[CaseSamples], error_rate: f64) -> Vec<Vec<Self>> {
        let pairs: Vec<[AttemptCounts; 2]> = cases.iter().flat_map(CaseSamples::failure_pairs).collect();
        let comparisons = FailureComparison::compare_all(&pairs, error_rate).into_iter();
        let mut all = comparisons.map(|comparison| Self::new(comparison, error_rate));
        let case = |case: &CaseSamples| {
            let others = case.variants.len().saturating_sub(1);
            std::iter::once(Self::default()).chain(all.by_ref().take(others)).collect()
        };
        cases.iter().map(case).collect()
    }

    fn new(comparison: Option<FailureComparison>, error_rate: f64) -> Self {
        comparison.map_or_else(Self::default, |it| Self {
            p_value: Some(it.adjusted),
            rose: it.is_higher() && it.adjusted <= error_rate,
            is_undecided: it.is_undecided(error_rate),
            attempts_to_decide: it.attempts_to_decide(error_rate),
        })
    }
}

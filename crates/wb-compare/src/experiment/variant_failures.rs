//! Whether variants fail more often than the first one.

use wb_stats::benjamini_hochberg;

use super::CaseSamples;
use crate::failure_test::FailureTest;

/// The comparison of a variant's failed attempts with those of the first variant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VariantFailures {
    /// Adjusted; `None` if nothing failed, or for the first variant.
    pub(super) p_value: Option<f64>,
    pub(super) rose: bool,
}

impl VariantFailures {
    /// Compares the variants of all cases as one family.
    pub(super) fn compare_all(cases: &[CaseSamples], error_rate: f64) -> Vec<Vec<Self>> {
        let tests: Vec<Option<FailureTest>> = cases.iter().flat_map(CaseSamples::failure_tests).collect();
        let p_values: Vec<f64> = tests.iter().map(|test| test.as_ref().map_or(1.0, |test| test.p_value)).collect();
        let adjusted = benjamini_hochberg(&p_values, error_rate).adjusted;
        let compared = |(test, adjusted): (Option<FailureTest>, f64)| match test {
            Some(test) => Self { p_value: Some(adjusted), rose: test.rose && adjusted <= error_rate },
            None => Self::default(),
        };
        let mut all = tests.into_iter().zip(adjusted).map(compared);
        let case = |case: &CaseSamples| {
            let others = case.variants.len().saturating_sub(1);
            std::iter::once(Self::default()).chain(all.by_ref().take(others)).collect()
        };
        cases.iter().map(case).collect()
    }
}

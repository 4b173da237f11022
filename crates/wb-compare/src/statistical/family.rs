//! All primary metrics as one family: the correction of their p-values.
//!
//! Each metric is one hypothesis by its aspects. Cells in which attempts failed are a family of their own, by their
//! failures: otherwise a certain difference elsewhere would decide whether a few failures are significant.

use wb_results::comparison::TestPValues;
use wb_stats::{DiscoveryFamily, selected_confidence};

pub(super) struct Families {
    pub(super) aspects: Family,
    pub(super) failures: Family,
}

pub(super) struct Family {
    /// From the samples alone, and with the noise between runs.
    p_values: [DiscoveryFamily; 2],
    size: usize,
    error_rate: f64,
}

impl Family {
    /// `checks` are the p-values of reported aspects of each tested hypothesis; `None` where nothing would be reported.
    pub(super) fn new(checks: &[[Option<f64>; 2]], error_rate: f64) -> Self {
        // A certain difference within the threshold is not reported. As a rejection it would have others reported at
        // larger p-values.
        let counted = |index: usize| checks.iter().filter_map(|p| p[index]).collect();
        let p_values = [0, 1].map(|index| DiscoveryFamily::new(counted(index), checks.len()));
        Self { p_values, size: checks.len(), error_rate }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Hypotheses that differ with the noise between runs.
    pub(super) fn discoveries(&self) -> usize {
        self.p_values[1].discoveries(self.error_rate)
    }

    pub(super) fn confidence(&self) -> f64 {
        selected_confidence(self.error_rate, self.discoveries(), self.size)
    }

    pub(super) fn check(&self, relevant_p: [Option<f64>; 2]) -> CheckFamily<'_> {
        CheckFamily { family: Some((self, relevant_p.map(|p| p.is_some()))), error_rate: self.error_rate }
    }
}

/// The place of a hypothesis on a check in its family.
pub(super) struct CheckFamily<'a> {
    /// With whether it counts in it, by the samples alone and with the noise between runs.
    family: Option<(&'a Family, [bool; 2])>,
    error_rate: f64,
}

impl CheckFamily<'_> {
    /// A check without others, or one that decides nothing.
    pub(super) fn alone(error_rate: f64) -> Self {
        Self { family: None, error_rate }
    }

    /// Completes the p-values by the samples alone and with the noise between runs.
    pub(super) fn adjust(&self, alone: [f64; 2], in_check: [f64; 2]) -> [TestPValues; 2] {
        [0, 1].map(|index| {
            let in_family = match &self.family {
                Some((family, is_counted)) if is_counted[index] => family.p_values[index].adjust(in_check[index]),
                Some((family, _)) => family.p_values[index].adjust_another(in_check[index]),
                None => in_check[index],
            };
            TestPValues { alone: alone[index], in_check: in_check[index], in_family }
        })
    }

    pub(super) fn is_significant(&self, p: &TestPValues) -> bool {
        p.in_family <= self.error_rate
    }

    /// The largest p-value that is significant whatever the others are.
    pub(super) fn least_critical(&self) -> f64 {
        self.error_rate / self.family.as_ref().map_or(1, |(family, _)| family.size.max(1)) as f64
    }

    pub(super) fn confidence(&self) -> f64 {
        self.family.as_ref().map_or(1.0 - self.error_rate, |(family, _)| family.confidence())
    }
}

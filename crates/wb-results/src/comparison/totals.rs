//! The number of checks by verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of checks by verdict; of standard deviations only of those that tolerances decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// Primary checks that improved, or are better than the reference.
    pub better: usize,
    /// Better by more than half the tolerance.
    pub minor_gain: usize,
    /// Without a relevant difference.
    pub equivalent: usize,
    /// Worse by more than half the tolerance.
    pub minor_loss: usize,
    /// Primary checks that regressed, or are worse than the reference.
    pub worse: usize,
    /// Different, where neither direction is better.
    pub differs: usize,
    /// Different by their samples, but no more than runs of one build may be.
    #[serde(default)]
    pub unconfirmed: usize,
    /// Without a verdict yet.
    pub inconclusive: usize,
    /// Only in the last build; does not fail.
    #[serde(default)]
    pub new: usize,
    /// Only in the first build, or in one of two parts of one run.
    pub missing: usize,
    /// Primary means that the last build has, but not in all of its runs.
    #[serde(default)]
    pub partly_missing: usize,
    /// Without a valid value.
    pub invalid: usize,
    /// Tests and cells that ended in an error, in the first build and in the last.
    pub errors: usize,
    /// With different definitions, so that nothing was compared.
    pub incomparable: usize,
    /// Checks that are not primary and decide nothing.
    pub not_primary: usize,
    /// Checks that are not primary and got worse or were not compared.
    #[serde(default)]
    pub not_primary_failed: usize,
    /// How many of the primary checks above are standard deviations.
    #[serde(default)]
    pub standard_deviations: DeviationTotals,
    /// Deciding groups of several checks that got worse.
    pub groups_regressed: usize,
    /// Deciding groups of several checks that got better.
    pub groups_improved: usize,
}

/// The number of primary standard deviations that tolerances decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DeviationTotals {
    /// With a value on both sides.
    pub compared: usize,
    /// Better than the reference by more than the tolerance.
    pub better: usize,
    /// Worse than the reference by more than the tolerance.
    pub worse: usize,
    /// Missing, invalid or incomparable.
    pub not_compared: usize,
}

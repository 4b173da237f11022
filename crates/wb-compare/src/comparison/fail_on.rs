//! The verdicts that fail a comparison.

use wb_model::Direction;
use wb_results::comparison::{CheckResult, ComparisonMethod, FinalVerdict, Statistic};

/// Verdicts that fail a comparison in addition to regressions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailOn {
    pub gain: bool,
    /// Checks missing, invalid or incomparable, and tests with an error; if they do not fail, the comparison is
    /// incomplete.
    pub missing: bool,
    pub strictness: Strictness,
}

/// The checks without a certain verdict that fail a comparison. Each level includes those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strictness {
    #[default]
    Regressions,
    Unconfirmed,
    Inconclusive,
}

impl FailOn {
    /// Whether a primary check fails the comparison; an unconfirmed check fails it only if it may be worse.
    pub fn fails_check(self, check: &CheckResult) -> bool {
        let is_directed = check.direction != Direction::Neither;
        let may_be_worse = check.statistics.as_ref().is_none_or(|statistics| statistics.may_be_worse);
        // A standard deviation decides nothing where statistics decide.
        let is_decisive = check.statistic == Statistic::Mean || check.decided_by == ComparisonMethod::Tolerance;
        is_decisive
            && self.fails(check.final_verdict)
            && (check.final_verdict != FinalVerdict::Unconfirmed || may_be_worse || self.gain && is_directed)
    }

    /// Whether a verdict fails the comparison: worse, not compared, or requested to fail.
    pub fn fails(self, decided: FinalVerdict) -> bool {
        match decided {
            better if better.is_better() => self.gain,
            FinalVerdict::Unconfirmed => self.strictness >= Strictness::Unconfirmed,
            FinalVerdict::Inconclusive => self.strictness >= Strictness::Inconclusive,
            other => other.is_failure(),
        }
    }
}

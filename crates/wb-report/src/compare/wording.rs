//! Words for the sides of a comparison: builds, where one follows the other, or parts of one run, which are
//! alternatives.

use serde::Serialize;
use wb_compare::Builds;
use wb_results::comparison::{ComparisonResult, FinalVerdict};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    Builds,
    /// Alternatives, of which none regressed.
    Alternatives,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct PageWords {
    sides: &'static str,
    pub(super) side: &'static str,
    /// Whether sides have scores and groups; parts of one run have none.
    averages: bool,
}

impl Wording {
    pub(super) fn new(outcome: &ComparisonResult) -> Self {
        if outcome.within_run.is_some() { Self::Alternatives } else { Self::Builds }
    }

    pub(super) fn of_builds(builds: &Builds) -> Self {
        if builds.within_run().is_some() { Self::Alternatives } else { Self::Builds }
    }

    /// The name of a total; its name for builds is given.
    pub(super) fn total(self, of_builds: &'static str) -> &'static str {
        match (self, of_builds) {
            (Self::Alternatives, "improved") => "better",
            (Self::Alternatives, "regressed") => "worse",
            _ => of_builds,
        }
    }

    pub(super) fn page_words(self) -> PageWords {
        match self {
            Self::Builds => PageWords { sides: "Builds", side: "build", averages: true },
            Self::Alternatives => PageWords { sides: "Parts of one run", side: "part", averages: false },
        }
    }

    /// What the methods found that fails a comparison.
    pub(super) fn failed_by(self, outcome: &ComparisonResult) -> &'static str {
        let totals = &outcome.totals;
        let worse = totals.worse + totals.groups_regressed > 0;
        let failing = || outcome.checks.iter().filter(|check| check.fails).map(|check| check.final_verdict);
        let only = |is: fn(FinalVerdict) -> bool| failing().next().is_some() && failing().all(is);
        let better = only(FinalVerdict::is_better) || (failing().next().is_none() && totals.groups_improved > 0);
        match self {
            Self::Builds if worse => "regression by",
            Self::Alternatives if worse => "worse by",
            Self::Builds if better => "improvement by",
            Self::Alternatives if better => "better by",
            _ if only(|verdict| verdict == FinalVerdict::Unconfirmed) => "unconfirmed by",
            _ if only(|verdict| verdict == FinalVerdict::Inconclusive) => "inconclusive by",
            _ => "failed by",
        }
    }
}

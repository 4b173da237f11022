//! What is compared: builds, of which one follows the other, or parts of one run, which are alternatives.

use serde::Serialize;
use wb_compare::{Builds, ComparisonResult};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    /// Builds, of which one follows the other.
    Builds,
    /// Parts of one run, which are alternatives: none of them regressed.
    Alternatives,
}

/// Words of the page.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct PageWords {
    /// The heading of the table of both sides.
    sides: &'static str,
    /// What a side is.
    pub(super) side: &'static str,
    /// Whether sides have scores and groups, which parts of one run have not.
    averages: bool,
}

impl Wording {
    pub(super) fn of(outcome: &ComparisonResult) -> Self {
        if outcome.within_run.is_some() { Self::Alternatives } else { Self::Builds }
    }

    pub(super) fn of_builds(builds: &Builds) -> Self {
        if builds.within_run().is_some() { Self::Alternatives } else { Self::Builds }
    }

    /// The name of the number of checks with a verdict, of which the name for builds is given.
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

    /// What the methods found that fail a comparison.
    pub(super) fn failed_by(self, outcome: &ComparisonResult) -> &'static str {
        let totals = &outcome.totals;
        let better = totals.better + totals.groups_improved;
        match (self, totals.worse + totals.groups_regressed, better, totals.unconfirmed) {
            (_, 0, 0, 1..) => "unconfirmed by",
            (_, 0, 1.., 1..) => "failed by",
            (Self::Builds, 0, ..) => "improvement by",
            (Self::Alternatives, 0, ..) => "better by",
            (Self::Builds, ..) => "regression by",
            (Self::Alternatives, ..) => "worse by",
        }
    }
}

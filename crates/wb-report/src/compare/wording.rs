//! The words for verdicts: a build gains or loses, a part of a run is better or worse than another one.

use serde::Serialize;
use wb_compare::comparison::{CheckResult, FinalVerdict};
use wb_compare::{Builds, CheckId, ComparisonResult, Statistic};
use wb_model::Class;

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

    /// A verdict on any check.
    pub(super) fn verdict(self, verdict: FinalVerdict) -> &'static str {
        match (self, verdict) {
            (Self::Alternatives, FinalVerdict::Gain) => "better",
            (Self::Alternatives, FinalVerdict::MinorGain) => "slightly better",
            (Self::Alternatives, FinalVerdict::MinorLoss) => "slightly worse",
            (Self::Alternatives, FinalVerdict::Loss) => "worse",
            _ => verdict.as_str(),
        }
    }

    /// The name of the number of checks with a verdict, of which the name for builds is given.
    pub(super) fn total(self, of_builds: &'static str) -> &'static str {
        match (self, of_builds) {
            (Self::Alternatives, "gain" | "gains") => "better",
            (Self::Alternatives, "minor gains") => "slightly better",
            (Self::Alternatives, "minor losses") => "slightly worse",
            (Self::Alternatives, "loss" | "losses") => "worse",
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
        let better = totals.gains + totals.groups_improved;
        match (self, totals.losses + totals.groups_regressed, better, totals.unconfirmed) {
            (_, 0, 0, 1..) => "unconfirmed by",
            (_, 0, 1.., 1..) => "failed by",
            (Self::Builds, 0, ..) => "improvement by",
            (Self::Alternatives, 0, ..) => "better by",
            (Self::Builds, ..) => "regression by",
            (Self::Alternatives, ..) => "worse by",
        }
    }
}

/// The verdict on a check. Parts of one run are faster or slower where that is meant.
pub(super) fn verdict_word(check: &CheckResult) -> &'static str {
    let is_speed = |id: CheckId<'_>| matches!(id.class, Class::Throughput | Class::Latency);
    let is_speed = check.statistic == Statistic::Mean && CheckId::parse(&check.id).is_ok_and(is_speed);
    match (&check.sides, check.final_verdict) {
        (None, verdict) => verdict.as_str(),
        (Some(_), FinalVerdict::Gain) if is_speed => "faster",
        (Some(_), FinalVerdict::MinorGain) if is_speed => "slightly faster",
        (Some(_), FinalVerdict::MinorLoss) if is_speed => "slightly slower",
        (Some(_), FinalVerdict::Loss) if is_speed => "slower",
        (Some(_), verdict) => Wording::Alternatives.verdict(verdict),
    }
}

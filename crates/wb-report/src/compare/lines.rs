//! A line for each error, check and group.

use wb_compare::ComparisonResult;
use wb_compare::comparison::{CheckResult, FinalVerdict};
use wb_compare::tolerance::Status;
use wb_model::pluralize;

use super::Verbosity;
use super::figures::{describe_error, explain_check, format_signed, readable_id, tone};
use crate::text::{Style, Tone};

/// The tests and cells of the first and the last build that ended in an error.
pub(super) fn error_lines(outcome: &ComparisonResult, style: Style) -> String {
    outcome
        .errors()
        .map(|(build, place, text)| line("error", Tone::Bad, place, &describe_error(build, text), style))
        .collect()
}

/// Those of the checks that are to be shown: of the primary ones what is better as well as what is worse.
pub(super) fn check_lines(outcome: &ComparisonResult, shown: Verbosity, style: Style) -> String {
    let looked_at = |check: &&CheckResult| {
        let is_change =
            !matches!(check.final_verdict, FinalVerdict::MinorGain | FinalVerdict::Equal | FinalVerdict::MinorLoss);
        shown == Verbosity::All || (check.primary && is_change)
    };
    outcome
        .checks
        .iter()
        .filter(looked_at)
        .map(|check| {
            line(check.final_verdict.as_str(), tone(check.final_verdict), &check.id, &explain_check(check), style)
        })
        .collect()
}

/// Those of the groups that are to be shown.
pub(super) fn group_lines(outcome: &ComparisonResult, shown: Verbosity, style: Style) -> String {
    let is_change = |status: Status| matches!(status, Status::Regression | Status::Improvement);
    let looked_at =
        outcome.groups.iter().filter(|group| shown == Verbosity::All || (group.decides && is_change(group.status)));
    looked_at
        .map(|group| {
            let tone = match group.status {
                Status::Regression => Tone::Bad,
                Status::Improvement => Tone::Good,
                _ => Tone::Plain,
            };
            let decides = if group.decides { "" } else { ", decides nothing here" };
            let why = format!(
                "{} % of ±{:.2} %, {}{decides}",
                format_signed(group.score),
                group.tolerance,
                pluralize(group.members, "check")
            );
            line(&format!("group {}", group.status), tone, &group.id, &why, style)
        })
        .collect()
}

/// The word, the identifier, and beneath it the reason.
fn line(word: &str, tone: Tone, id: &str, why: &str, style: Style) -> String {
    format!("{} {}\n{}", style.paint(&format!("{word:12}"), tone), readable_id(id), style.indent(13, why))
}

//! A line for each error, check and group.

use wb_compare::Outcome;
use wb_compare::outcome::{Checked, Decided};
use wb_compare::tolerance::Status;
use wb_model::counted;

use super::Shown;
use super::figures::{failed, readable, signed, tone, why};
use crate::text::{Style, Tone};

/// The tests and cells of the first and the last build that ended in an error.
pub(super) fn errors(outcome: &Outcome, style: Style) -> String {
    outcome.errors().map(|(build, place, text)| line("error", Tone::Bad, place, &failed(build, text), style)).collect()
}

/// Those of the checks that are to be shown: of the primary ones what is better as well as what is worse.
pub(super) fn checks(outcome: &Outcome, shown: Shown, style: Style) -> String {
    let looked_at = |check: &&Checked| {
        let is_change = !matches!(check.decided, Decided::MinorGain | Decided::Equal | Decided::MinorLoss);
        shown == Shown::All || (check.primary && is_change)
    };
    outcome
        .checks
        .iter()
        .filter(looked_at)
        .map(|check| line(check.decided.as_str(), tone(check.decided), &check.id, &why(check), style))
        .collect()
}

/// Those of the groups that are to be shown.
pub(super) fn groups(outcome: &Outcome, shown: Shown, style: Style) -> String {
    let is_change = |status: Status| matches!(status, Status::Regression | Status::Improvement);
    let looked_at =
        outcome.groups.iter().filter(|group| shown == Shown::All || (group.decides && is_change(group.status)));
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
                signed(group.score),
                group.tolerance,
                counted(group.members, "check")
            );
            line(&format!("group {}", group.status), tone, &group.id, &why, style)
        })
        .collect()
}

/// The word, the identifier, and beneath it the reason.
fn line(word: &str, tone: Tone, id: &str, why: &str, style: Style) -> String {
    format!("{} {}\n{}", style.paint(&format!("{word:12}"), tone), readable(id), style.indented(13, why))
}

//! A line for each check and group.

use wb_compare::Outcome;
use wb_compare::outcome::{Checked, Decided};
use wb_compare::tolerance::Status;

use super::figures::{tone, why};
use crate::text::{Style, Tone};

/// What is worse, not sure or not there, among primary checks; with `all` every check.
pub(super) fn checks(outcome: &Outcome, all: bool, style: Style) -> String {
    let looked_at = |check: &&Checked| {
        let alarming =
            !matches!(check.decided, Decided::Gain | Decided::MinorGain | Decided::Equal | Decided::MinorLoss);
        all || (check.primary && alarming)
    };
    outcome
        .checks
        .iter()
        .filter(looked_at)
        .map(|check| line(check.decided.as_str(), tone(check.decided), &check.id, &why(check), style))
        .collect()
}

/// Groups that got worse; with `all` every group.
pub(super) fn groups(outcome: &Outcome, all: bool, style: Style) -> String {
    let looked_at = outcome.groups.iter().filter(|group| all || (group.decides && group.status == Status::Regression));
    looked_at
        .map(|group| {
            let tone = if group.status == Status::Regression { Tone::Bad } else { Tone::Plain };
            let decides = if group.decides { "" } else { ", decides nothing here" };
            let why = format!("{:+.2} % of ±{:.2} %, {} checks{decides}", group.score, group.tolerance, group.members);
            line(&format!("group {}", group.status), tone, &group.id, &why, style)
        })
        .collect()
}

/// The word, the identifier, and beneath it the reason.
fn line(word: &str, tone: Tone, id: &str, why: &str, style: Style) -> String {
    format!("{} {id}\n{}", style.paint(&format!("{word:12}"), tone), style.indented(13, why))
}

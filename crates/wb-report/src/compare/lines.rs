//! Renders a line for each error, check and group.

use wb_results::comparison::{CheckGroupResult, CheckResult, ComparisonResult, FinalVerdict};

use super::Verbosity;
use super::failures::has_undecisive_failures;
use super::figures::{describe_error, explain_check, explain_group, readable_id, tone};
use super::findings::{BuildFindings, group_findings};
use crate::text::{Style, Tone};

pub(super) fn error_lines(outcome: &ComparisonResult, style: Style) -> String {
    outcome
        .errors()
        .map(|(build, location, text)| line("error", Tone::Bad, location, &describe_error(&build, text), style))
        .collect()
}

/// Whether a check is listed among the changes: primary, and more than a small difference, with other failures, or not
/// in all runs.
pub(super) fn is_listed(check: &CheckResult) -> bool {
    check.primary && (check.final_verdict.is_notable() || check.lacking.iter().any(|runs| !runs.is_empty()))
        || has_undecisive_failures(check)
}

pub(super) fn check_lines(outcome: &ComparisonResult, verbosity: Verbosity, style: Style) -> String {
    let is_selected = |check: &&CheckResult| verbosity == Verbosity::All || is_listed(check);
    outcome
        .checks
        .iter()
        .filter(is_selected)
        .map(|check| {
            line(check.final_verdict.as_str(), tone(check.final_verdict), &check.id, &explain_check(check), style)
        })
        .collect()
}

pub(super) fn finding_lines(outcome: &ComparisonResult, style: Style) -> String {
    let findings = group_findings(outcome, |build| format!("`{build}`"));
    if findings.is_empty() {
        return String::new();
    }
    let line = |BuildFindings { builds, cells, text }| style.indent(2, &format!("{builds}, {cells}: {text}"));
    style.heading("findings") + &findings.into_iter().map(line).collect::<String>()
}

/// The groups that got worse or better, if they decide or show many small changes that none of their checks shows. Of
/// the latter, groups with the same checks are shown once.
pub(super) fn revealing_groups(outcome: &ComparisonResult) -> Vec<&CheckGroupResult> {
    let is_change = |verdict: FinalVerdict| verdict.is_worse() || verdict.is_better();
    let mut shown: Vec<&CheckGroupResult> = Vec::new();
    for group in outcome.groups.iter().filter(|group| is_change(group.final_verdict)) {
        let reveals = group.notable_members + group.notable_without_score == 0 && group.members > 1;
        let is_shown = |other: &&CheckGroupResult| (other.members, other.score) == (group.members, group.score);
        if group.decides || reveals && !shown.iter().any(is_shown) {
            shown.push(group);
        }
    }
    shown
}

pub(super) fn group_lines(outcome: &ComparisonResult, verbosity: Verbosity, style: Style) -> String {
    let groups: Vec<&CheckGroupResult> = match verbosity {
        Verbosity::All => outcome.groups.iter().collect(),
        Verbosity::Changes => revealing_groups(outcome),
    };
    groups
        .into_iter()
        .map(|group| {
            let tone = match group.final_verdict {
                FinalVerdict::Regressed if group.decides => Tone::Bad,
                FinalVerdict::Regressed => Tone::Doubtful,
                FinalVerdict::Improved => Tone::Good,
                _ => Tone::Plain,
            };
            line(&format!("group {}", group.final_verdict.as_str()), tone, &group.id, &explain_group(group), style)
        })
        .collect()
}

fn line(word: &str, tone: Tone, id: &str, reason: &str, style: Style) -> String {
    format!("{} {}\n{}", style.paint(&format!("{word:12}"), tone), readable_id(id), style.indent(13, reason))
}

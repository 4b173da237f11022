//! Failed attempts that differ between both sides.

use std::collections::BTreeMap;

use wb_compare::comparison::BuildCheck;
use wb_compare::statistical::{AspectComparison, Verdict};
use wb_results::comparison::{AttemptCounts, Certainty, CheckResult, ComparisonMethod, StatisticalSummary};

use wb_stats::CONFIDENCE;

use super::short_names::short_cell_name;
use crate::phrasing::format_p_value;

/// The failed attempts of a check that is worse by them alone: `0 of 10 → 9 of 19 failed`.
pub(super) fn describe_failures_alone(judged: &BuildCheck<'_>) -> Option<String> {
    let statistics = judged.by_statistics.filter(|it| it.failures_rose())?;
    let is_worse = |it: &AspectComparison| it.alone == Verdict::Regressed && it.certainty == Certainty::Runs;
    let alone = judged.decided_by == ComparisonMethod::Statistical && !statistics.aspects.iter().any(is_worse);
    alone.then(|| describe_failed(statistics.failures))
}

/// `0 of 10 → 9 of 19 failed`.
pub(super) fn describe_failed(sides: [AttemptCounts; 2]) -> String {
    let [reference, judged] = sides.map(|side| format!("{} of {}", side.failed, side.attempts));
    format!("{reference} → {judged} failed")
}

/// Whether attempts of a check fail more or less often on one side, and that does not decide.
pub(super) fn has_undecisive_failures(check: &CheckResult) -> bool {
    undecisive_failures(check).is_some()
}

fn undecisive_failures(check: &CheckResult) -> Option<[AttemptCounts; 2]> {
    let decides = |statistics: &StatisticalSummary| {
        statistics.failures_rose && check.final_verdict.is_worse() && check.decided_by == ComparisonMethod::Statistical
    };
    let statistics = check.statistics.as_ref().filter(|statistics| check.primary && !decides(statistics))?;
    let [reference, judged] = statistics.failures;
    let [of_reference, of_judged] = [(reference, judged), (judged, reference)]
        .map(|(side, other)| u64::from(side.failed) * u64::from(other.attempts));
    (of_reference != of_judged && reference.attempts > 0 && judged.attempts > 0).then_some(statistics.failures)
}

/// `; new failed in 3 of 11 attempts at fio bs=4k, old in none`, of the cell whose shares of failures differ most: all
/// metrics of a cell have its failures.
pub(super) fn describe_undecisive_failures(
    [reference, judged]: &[String; 2],
    checks: &[&CheckResult],
    cell_name: impl Fn(&str) -> String,
) -> String {
    let share = |side: AttemptCounts| f64::from(side.failed) / f64::from(side.attempts);
    let size = |[reference, judged]: &[AttemptCounts; 2]| (share(*judged) - share(*reference)).abs();
    let differing: BTreeMap<String, [AttemptCounts; 2]> =
        checks.iter().filter_map(|check| Some((short_cell_name(&check.id), undecisive_failures(check)?))).collect();
    let Some((cell, most)) = differing.iter().max_by(|(_, one), (_, other)| size(one).total_cmp(&size(other))) else {
        return String::new();
    };
    let [of_reference, of_judged] = *most;
    let is_it = |check: &&&CheckResult| short_cell_name(&check.id) == *cell;
    let certainty =
        checks.iter().find(is_it).and_then(|check| check.statistics.as_ref()).map(describe_failure_certainty);
    let certainty = certainty.unwrap_or_default();
    let (more, less) = if share(of_judged) > share(of_reference) {
        ((judged, of_judged), (reference, of_reference))
    } else {
        ((reference, of_reference), (judged, of_judged))
    };
    let other = match less.1.failed {
        0 => "none".to_owned(),
        failed => format!("{failed} of {}", less.1.attempts),
    };
    let others = match differing.len() - 1 {
        0 => String::new(),
        1 => " (failures differ in one more cell)".to_owned(),
        others => format!(" (failures differ in {others} more cells)"),
    };
    format!(
        "; {} failed in {} of {} attempts at {}, {} in {other}{certainty}{others}",
        more.0,
        more.1.failed,
        more.1.attempts,
        cell_name(cell),
        less.0
    )
}

/// `, undecided (p 0.2105)`: how certain it is that attempts fail more often on one side; empty if unknown.
pub(super) fn describe_failure_certainty(statistics: &StatisticalSummary) -> String {
    let Some(failures) = statistics.failure_rates.filter(|it| it.difference != 0.0) else { return String::new() };
    // What became less frequent has no part in the family.
    let p_value = if failures.difference > 0.0 { failures.p_value.in_family } else { failures.p_value.alone };
    let p_value_text = format_p_value(p_value);
    if p_value <= 1.0 - CONFIDENCE { format!(", p {p_value_text}") } else { format!(", undecided (p {p_value_text})") }
}

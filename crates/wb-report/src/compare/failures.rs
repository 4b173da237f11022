//! Failed attempts that differ between both sides.

use wb_compare::AttemptCounts;
use wb_compare::comparison::{BuildCheck, CheckResult, ComparisonMethod};
use wb_compare::statistical::{AspectComparison, Certainty, Verdict};

/// The failed attempts of a check that is worse by them alone: `0 of 10 → 9 of 19 failed`.
pub(super) fn describe_failures_alone(judged: &BuildCheck<'_>) -> Option<String> {
    let statistics = judged.by_statistics.filter(|it| it.failures_rose())?;
    let is_worse = |it: &AspectComparison| it.alone == Verdict::Regressed && it.certainty == Certainty::Runs;
    let alone = judged.decided_by == ComparisonMethod::Statistical && !statistics.aspects.iter().any(is_worse);
    alone.then(|| describe_failed(statistics.failures))
}

/// The failed attempts of both sides: `0 of 10 → 9 of 19 failed`.
pub(super) fn describe_failed(sides: [AttemptCounts; 2]) -> String {
    let [reference, judged] = sides.map(|side| format!("{} of {}", side.failed, side.attempts));
    format!("{reference} → {judged} failed")
}

/// Whether attempts of a check fail more or less often on one side, and that does not decide.
pub(super) fn has_undecisive_failures(check: &CheckResult) -> bool {
    undecisive_failures(check).is_some()
}

fn undecisive_failures(check: &CheckResult) -> Option<[AttemptCounts; 2]> {
    let statistics = check.statistics.as_ref().filter(|statistics| check.primary && !statistics.failures_rose)?;
    let [reference, judged] = statistics.failures;
    let [of_reference, of_judged] = [(reference, judged), (judged, reference)]
        .map(|(side, other)| u64::from(side.failed) * u64::from(other.attempts));
    (of_reference != of_judged && reference.attempts > 0 && judged.attempts > 0).then_some(statistics.failures)
}

/// `; new failed in 3 of 11 attempts, old in none`, of the check whose shares of failures differ most.
pub(super) fn describe_undecisive_failures([reference, judged]: &[String; 2], checks: &[&CheckResult]) -> String {
    let share = |side: AttemptCounts| f64::from(side.failed) / f64::from(side.attempts);
    let size = |[reference, judged]: &[AttemptCounts; 2]| (share(*judged) - share(*reference)).abs();
    let differing: Vec<[AttemptCounts; 2]> = checks.iter().filter_map(|check| undecisive_failures(check)).collect();
    let Some(most) = differing.iter().max_by(|one, other| size(one).total_cmp(&size(other))) else {
        return String::new();
    };
    let [of_reference, of_judged] = *most;
    let (more, less) = match share(of_judged) > share(of_reference) {
        true => ((judged, of_judged), (reference, of_reference)),
        false => ((reference, of_reference), (judged, of_judged)),
    };
    let other = match less.1.failed {
        0 => "none".to_owned(),
        failed => format!("{failed} of {}", less.1.attempts),
    };
    let others = match differing.len() - 1 {
        0 => String::new(),
        1 => " (failures differ in one more check)".to_owned(),
        others => format!(" (failures differ in {others} more checks)"),
    };
    format!("; {} failed in {} of {} attempts, {} in {other}{others}", more.0, more.1.failed, more.1.attempts, less.0)
}

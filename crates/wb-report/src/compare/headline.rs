//! A comparison in one sentence.

use std::collections::BTreeSet;

use wb_compare::statistical::threshold::DEFAULT_PERCENT;
use wb_results::comparison::{
    AspectSummary, AttemptCounts, Certainty, CheckResult, ComparisonMethod, ComparisonResult, FinalVerdict, Statistic,
};

use super::change_size::{
    adjective, describe_changed, describe_ranges, describe_signed_interval, has, is_statistical, is_worse_by_estimate,
    is_worse_by_failures_alone,
};
use super::failures::describe_undecisive_failures;
use super::figures::{difference, format_signed, format_signed_percent, magnitude};
use super::lines::revealing_groups;
use super::parts::describe_parts;
use super::short_names::{cell_id, short_cell_name, short_location, short_name};
use super::threshold_range::ThresholdRange;

/// A comparison in one sentence: what regressed, what improved, and how many other checks have each verdict.
pub fn headline(outcome: &ComparisonResult) -> String {
    headline_with(outcome, |build| format!("`{build}`"), str::to_owned)
}

pub(super) fn headline_with(
    outcome: &ComparisonResult,
    build_name: impl Fn(&str) -> String,
    check_name: impl Fn(&str) -> String,
) -> String {
    let is_primary_mean = |check: &&CheckResult| check.primary && check.statistic == Statistic::Mean;
    let primary: Vec<&CheckResult> = outcome.checks.iter().filter(is_primary_mean).collect();
    let deviations = outcome.totals.standard_deviations;
    let [reference, .., judged] = &outcome.builds[..] else { return String::new() };
    let mut sentence = match &outcome.within_run {
        None => describe_sides([&reference.name, &judged.name].map(|name| build_name(name)), &primary, &check_name),
        Some(within_run) => describe_parts(within_run, &primary, &build_name, &check_name),
    };
    match deviations.worse {
        0 => {}
        1 => sentence += "; one standard deviation is worse",
        worse => sentence += &format!("; {worse} standard deviations are worse"),
    }
    match deviations.not_compared {
        0 => {}
        1 => sentence += "; one standard deviation could not be compared",
        several => sentence += &format!("; {several} standard deviations could not be compared"),
    }
    let partly_missing: Vec<&CheckResult> =
        outcome.checks.iter().filter(|check| check.primary && check.is_partly_missing()).collect();
    let (names, judged_name) = (name_gravest(&partly_missing, &check_name), build_name(&judged.name));
    match outcome.totals.partly_missing {
        0 => {}
        1 => sentence += &format!("; one check{names} is missing in some runs of {judged_name}"),
        several => sentence += &format!("; {several} checks{names} are missing in some runs of {judged_name}"),
    }
    match outcome.totals.groups_regressed {
        0 => {}
        1 => sentence += "; one group of checks is worse on average",
        groups => sentence += &format!("; {groups} groups of checks are worse on average"),
    }
    let undecisive = revealing_groups(outcome).iter().filter(|it| !it.decides && it.final_verdict.is_worse()).count();
    match undecisive {
        0 => {}
        1 => sentence += "; one group of checks is worse on average, which does not decide",
        groups => sentence += &format!("; {groups} groups of checks are worse on average, which does not decide"),
    }
    // Those of the first build come first.
    let of_judged = if judged.errors.is_empty() { 0 } else { reference.errors.len() };
    let error = outcome.errors().nth(of_judged);
    let error = error
        .map(|(build, location, _)| format!("{} of {}", check_name(&short_location(location)), build_name(&build)));
    match (outcome.totals.errors, error.unwrap_or_default()) {
        (0, _) => sentence,
        (1, error) => sentence + &format!("; one test ended in an error ({error})"),
        (errors, error) => {
            sentence + &format!("; {errors} tests ended in an error ({error}{})", and_others(errors - 1))
        }
    }
}

/// ` (fio bs=4k (iops) and 2 others)`: the check with the largest difference, or the first if none has any; empty
/// without checks.
fn name_gravest(checks: &[&CheckResult], check_name: impl Fn(&str) -> String) -> String {
    // The first of equal ones.
    let gravest = checks.iter().rev().max_by(|one, other| magnitude(one).total_cmp(&magnitude(other)));
    let name =
        |check: &&CheckResult| format!(" ({}{})", check_name(&short_name(&check.id)), and_others(checks.len() - 1));
    gravest.map(name).unwrap_or_default()
}

fn and_others(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => " and one other".to_owned(),
        others => format!(" and {others} others"),
    }
}

pub(super) fn describe_sides(
    names: [String; 2],
    primary: &[&CheckResult],
    check_name: impl Fn(&str) -> String,
) -> String {
    let [reference, judged] = &names;
    let with = |requested: FinalVerdict| primary.iter().copied().filter(move |check| check.final_verdict == requested);
    let mut parts = Vec::new();
    let worse = || primary.iter().copied().filter(|check| check.final_verdict.is_worse());
    let better = || primary.iter().copied().filter(|check| check.final_verdict.is_better());
    let failing: Vec<&CheckResult> =
        worse().filter(|check| is_statistical(check) && has(check, |it| it.failures_rose)).collect();
    parts.extend(describe_failures(&failing, &check_name));
    let worse: Vec<&CheckResult> = worse().filter(|check| !is_worse_by_failures_alone(check)).collect();
    let better: Vec<&CheckResult> = better().collect();
    let changed: Vec<&CheckResult> = worse.iter().chain(&better).copied().collect();
    let is = if changed.iter().any(|check| has_single_values(check)) { "was measured" } else { "is" };
    for checks in [worse, better] {
        if let Some(changed) = describe_changed(&checks, &check_name) {
            parts.push(changed);
        }
    }
    // Those that fail are what a reader looks for; the others are worth words only where nothing else is.
    let failing: Vec<&CheckResult> = with(FinalVerdict::Unconfirmed).filter(|check| check.fails).collect();
    let unconfirmed: Vec<&CheckResult> = match (failing.is_empty(), parts.is_empty()) {
        (false, _) => failing,
        // What may be worse matters more, unless all may be better.
        (true, nothing_else) => {
            let all: Vec<&CheckResult> = with(FinalVerdict::Unconfirmed).collect();
            let worse: Vec<&CheckResult> =
                all.iter().copied().filter(|check| has(check, |it| it.may_be_worse)).collect();
            if nothing_else && (worse.is_empty() || adjective(&all).is_some()) { all } else { worse }
        }
    };
    let perhaps = describe_changed(&unconfirmed, &check_name);
    let described = parts.len() + perhaps.iter().count();
    let mut sentence = match (parts.is_empty(), &perhaps) {
        (true, Some(perhaps)) => format!("{judged} may be {perhaps} than {reference}, which is unconfirmed"),
        (true, None) => format!("{judged} and {reference}"),
        (false, None) => format!("{judged} {is} {} than {reference}", join_parts(&parts)),
        (false, Some(perhaps)) => {
            format!("{judged} {is} {} than {reference}, and may be {perhaps}, which is unconfirmed", join_parts(&parts))
        }
    };
    sentence += &describe_single_values(&changed);
    let equal: Vec<&CheckResult> = primary.iter().copied().filter(|check| is_equal(check)).collect();
    let is_named = |check: &CheckResult| {
        check.final_verdict.is_worse()
            || check.final_verdict.is_better()
            || perhaps.is_some() && unconfirmed.iter().any(|it| std::ptr::eq(*it, check))
    };
    let counts = count_checks(primary.iter().copied().filter(|check| !is_named(check)), &check_name);
    match (described, primary.len()) {
        (_, 0) => sentence += " have no primary check in common",
        (0, 1) => sentence += &format!(": one check, {}", counts.trim_start_matches("1 ")),
        (0, checks) if equal.len() == checks => {
            sentence += &format!(" are equivalent in all {checks} checks{}", describe_wide_thresholds(primary));
        }
        (0, checks) => sentence += &format!(": {checks} checks, {counts}"),
        (_, _) if counts.is_empty() => {}
        _ => sentence += &format!("; other checks: {counts}"),
    }
    sentence += &describe_certain_equal(judged, &equal);
    sentence += &describe_failing_inconclusive(with(FinalVerdict::Inconclusive), &check_name);
    sentence + &describe_undecisive_failures(&names, primary, &check_name)
}

/// Whether tolerances decided a check that has a single value on one side: one sample, or a mean without samples.
fn has_single_values(check: &CheckResult) -> bool {
    check.decided_by == ComparisonMethod::Tolerance && has(check, |it| it.counts.samples.contains(&1))
}

/// `; each side is one value, whose noise is unknown` if the changed checks have single values.
fn describe_single_values(changed: &[&CheckResult]) -> String {
    let single: Vec<&CheckResult> = changed.iter().copied().filter(|check| has_single_values(check)).collect();
    let side = if single.iter().all(|check| has(check, |it| it.counts.samples == [1, 1])) {
        "each side is one value"
    } else {
        "a side is one value"
    };
    match single.len() {
        0 => String::new(),
        all if all == changed.len() => format!("; {side}, whose noise is unknown"),
        1 => format!("; in one of these checks {side}, whose noise is unknown"),
        some => format!("; in {some} of these checks {side}, whose noise is unknown"),
    }
}

/// `; new is slower in all of them by estimates of 2.8 to 3.2 %, within the threshold`, of checks that differ
/// significantly but are equal by the threshold: a loss that is small everywhere must not read as none.
fn describe_certain_equal(judged: &str, equal: &[&CheckResult]) -> String {
    let is_certain = |check: &CheckResult| decisive_aspect(check).is_some_and(|it| it.certainty >= Certainty::Samples);
    let certain = |worse: bool| -> Vec<&CheckResult> {
        let of_direction = equal.iter().copied().filter(|check| is_worse_by_estimate(check) == Some(worse));
        of_direction.filter(|check| is_statistical(check) && is_certain(check)).collect()
    };
    let describe = |checks: Vec<&CheckResult>| {
        let word = adjective(&checks)?;
        let among = match (checks.len(), equal.len()) {
            (1, 1) => String::new(),
            (all, equal) if all == equal => format!(" in all {all} of them"),
            (some, equal) => format!(" in {some} of {equal} equivalent checks"),
        };
        let by = if checks.len() == 1 { "an estimate" } else { "estimates" };
        Some(format!("{word}{among} by {by} of {}", describe_ranges(&checks)))
    };
    let all = [certain(true), certain(false)];
    // Whether the next runs show it, too, is another question.
    let is_of_runs =
        all.iter().flatten().all(|check| decisive_aspect(check).is_some_and(|it| it.certainty == Certainty::Runs));
    let between = if is_of_runs { "" } else { " between these runs" };
    let parts: Vec<String> = all.into_iter().filter_map(describe).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("; {judged} is {}{between}, within the threshold", parts.join(" and "))
    }
}

fn decisive_aspect(check: &CheckResult) -> Option<&AspectSummary> {
    check.statistics.as_ref()?.decisive_aspect()
}

/// Joins the phrases on regressions, improvements and failures; a phrase may end with the comma of an insertion.
fn join_parts(parts: &[String]) -> String {
    let Some((last, others)) = parts.split_last() else { return String::new() };
    let others: String = others.iter().map(|part| format!("{}, and ", part.trim_end_matches(','))).collect();
    others + last
}

/// `; inconclusive, which fails: fio bs=4k (iops): -1.20 % (-8.00 to +6.00 %) and 3 more`: the check with the largest
/// difference is named, the first of equal ones.
fn describe_failing_inconclusive<'a>(
    inconclusive: impl Iterator<Item = &'a CheckResult>,
    check_name: impl Fn(&str) -> String,
) -> String {
    let failing: Vec<&CheckResult> = inconclusive.filter(|check| check.fails).collect();
    let Some(most) = failing.iter().rev().max_by(|one, other| magnitude(one).total_cmp(&magnitude(other))) else {
        return String::new();
    };
    let others = match failing.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let amount = difference(most).map(|it| format!(": {} %{}", format_signed(it), describe_signed_interval(most)));
    // The interval beside it is within the threshold.
    let dependence = if has(most, |it| it.equal_if_independent) && is_statistical(most) {
        format!("; equal only if {} were within the threshold", describe_widened_interval(most))
    } else {
        String::new()
    };
    format!(
        "; inconclusive, which fails: {}{}{others}{dependence}",
        check_name(&short_name(&most.id)),
        amount.unwrap_or_default()
    )
}

fn describe_widened_interval(check: &CheckResult) -> String {
    let widened = decisive_aspect(check).and_then(|aspect| aspect.widened_interval);
    let ends =
        widened.map(|it| format!(" ({} to {} %)", format_signed_percent(it.low), format_signed_percent(it.high)));
    format!("the interval widened for samples that may depend on each other{}", ends.unwrap_or_default())
}

/// The number of checks with each verdict, and the gravest of those that were not compared or lost a little: `5
/// equivalent, 2 missing (fio bs=4k (iops) and one other)`.
pub(super) fn count_checks<'a>(
    checks: impl Iterator<Item = &'a CheckResult>,
    check_name: impl Fn(&str) -> String,
) -> String {
    let checks: Vec<&CheckResult> = checks.collect();
    let (equal, others): (Vec<_>, Vec<_>) = checks.into_iter().partition(|check| is_equal(check));
    let names = [
        (FinalVerdict::MinorGain, FinalVerdict::MinorGain.as_str()),
        (FinalVerdict::MinorLoss, FinalVerdict::MinorLoss.as_str()),
        (FinalVerdict::Unconfirmed, "unconfirmed"),
        (FinalVerdict::Differs, "differs without a better direction"),
        (FinalVerdict::Inconclusive, "inconclusive"),
        (FinalVerdict::New, "new"),
        (FinalVerdict::Missing, "missing"),
        (FinalVerdict::Invalid, "invalid"),
        (FinalVerdict::Incomparable, "incomparable"),
    ];
    let with = |verdict: FinalVerdict| {
        others.iter().copied().filter(|check| check.final_verdict == verdict).collect::<Vec<&CheckResult>>()
    };
    let is_grave = |verdict: FinalVerdict| verdict == FinalVerdict::MinorLoss || verdict.is_failure();
    let named = |verdict: FinalVerdict, word: &str| {
        if is_grave(verdict) { format!("{word}{}", name_gravest(&with(verdict), &check_name)) } else { word.to_owned() }
    };
    let names = names.map(|(verdict, word)| (with(verdict).len(), named(verdict, word)));
    let equal_within = format!("equivalent{}", describe_wide_thresholds(&equal));
    let mut counts = vec![
        (others.iter().filter(|check| check.final_verdict.is_worse()).count(), "worse"),
        (others.iter().filter(|check| check.final_verdict.is_better()).count(), "better"),
        (equal.len(), equal_within.as_str()),
    ];
    counts.extend(names.iter().map(|(count, name)| (*count, name.as_str())));
    let counts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn is_equal(check: &CheckResult) -> bool {
    check.final_verdict == FinalVerdict::Equivalent
}

/// ` within 50 %` if checks are equal by a threshold above the default, where that hides what everybody expects.
fn describe_wide_thresholds(equal: &[&CheckResult]) -> String {
    let thresholds = ThresholdRange::new(equal.iter().copied());
    thresholds.filter(|it| it.largest > DEFAULT_PERCENT).map_or_else(String::new, |it| format!(" within {it}"))
}

/// `failing more often (3 of 9 attempts instead of 0 of 9) in fio bs=4k`; of several checks the one with the largest
/// rise.
fn describe_failures(checks: &[&CheckResult], check_name: impl Fn(&str) -> String) -> Option<String> {
    let sides = |check: &CheckResult| check.statistics.as_ref().map(|statistics| statistics.failures);
    let share = |side: AttemptCounts| f64::from(side.failed) / f64::from(side.attempts);
    let rise = |check: &CheckResult| sides(check).map_or(0.0, |[reference, judged]| share(judged) - share(reference));
    // The first of equal ones.
    let most = checks.iter().rev().max_by(|one, other| rise(one).total_cmp(&rise(other)))?;
    let [reference, judged] = sides(most)?;
    let rates = format!(
        "{} of {} attempts instead of {} of {}",
        judged.failed, judged.attempts, reference.failed, reference.attempts
    );
    // The metrics of a cell have its failures.
    let cells: BTreeSet<&str> = checks.iter().map(|check| cell_id(&check.id)).collect();
    let name = match checks {
        [check] => check_name(&short_name(&check.id)),
        _ => check_name(&short_cell_name(&most.id)),
    };
    Some(match cells.len() {
        1 => format!("failing more often ({rates}) in {name}"),
        several => format!("failing more often in {several} cells (most in {name}: {rates})"),
    })
}

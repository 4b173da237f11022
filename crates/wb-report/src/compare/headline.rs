//! A comparison in one sentence.

use std::collections::BTreeSet;

use wb_compare::comparison::{AspectSummary, CheckResult, ComparisonMethod, FinalVerdict, StatisticalSummary};
use wb_compare::statistical::threshold::DEFAULT_PERCENT;
use wb_compare::statistical::{Aspect, Certainty};
use wb_compare::{AttemptCounts, CheckId, ComparisonResult, Statistic};
use wb_model::{Class, Direction, unescape_lossy};

use super::failures::describe_undecisive_failures;
use super::figures::{
    difference, doubting_aspect, format_signed, format_value_difference, magnitude, shown_interval, side_figures,
    value_difference,
};
use super::lines::revealing_groups;
use super::parts::describe_parts;
use super::threshold_range::ThresholdRange;
use crate::phrasing::join_names;

/// A comparison in one sentence for people: what is worse, what is better, and how many other checks have which verdict.
pub fn headline(outcome: &ComparisonResult) -> String {
    headline_with(outcome, |build| format!("`{build}`"), str::to_owned)
}

/// The same with the names of builds and of checks in another format.
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

/// ` (fio bs=4k (iops) and 2 others)`: the check with the largest difference, or the first of those without any; empty without
/// checks.
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

/// How one side compares with the other by these checks.
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

/// Whether tolerances decided a check of which a side is a single value: a sample, or a mean without samples.
fn has_single_values(check: &CheckResult) -> bool {
    check.decided_by == ComparisonMethod::Tolerance && has(check, |it| it.counts.samples.contains(&1))
}

/// `; each side is one value, whose noise is unknown` if that is what checks differ by.
fn describe_single_values(changed: &[&CheckResult]) -> String {
    let single: Vec<&CheckResult> = changed.iter().copied().filter(|check| has_single_values(check)).collect();
    let side = match single.iter().all(|check| has(check, |it| it.counts.samples == [1, 1])) {
        true => "each side is one value",
        false => "a side is one value",
    };
    match single.len() {
        0 => String::new(),
        all if all == changed.len() => format!("; {side}, whose noise is unknown"),
        1 => format!("; in one of these checks {side}, whose noise is unknown"),
        some => format!("; in {some} of these checks {side}, whose noise is unknown"),
    }
}

/// `; new is slower in all of them by estimates of 2.8 to 3.2 %, within the threshold`, of checks that are equal by the
/// threshold and differ significantly: a loss that is small everywhere must not read as none.
fn describe_certain_equal(judged: &str, equal: &[&CheckResult]) -> String {
    let is_certain = |check: &CheckResult| shown_aspect(check).is_some_and(|it| it.certainty >= Certainty::Samples);
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
        all.iter().flatten().all(|check| shown_aspect(check).is_some_and(|it| it.certainty == Certainty::Runs));
    let between = if is_of_runs { "" } else { " between these runs" };
    let parts: Vec<String> = all.into_iter().filter_map(describe).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("; {judged} is {}{between}, within the threshold", parts.join(" and ")),
    }
}

/// The aspect that is shown of a check that statistics decide.
fn shown_aspect(check: &CheckResult) -> Option<&AspectSummary> {
    let statistics = check.statistics.as_ref()?;
    statistics.aspects.iter().find(|aspect| Some(aspect.aspect) == statistics.aspect)
}

/// Joins what is worse, what is better and what fails; a part may end with the comma of an insertion.
fn join_parts(parts: &[String]) -> String {
    let Some((last, others)) = parts.split_last() else { return String::new() };
    let others: String = others.iter().map(|part| format!("{}, and ", part.trim_end_matches(','))).collect();
    others + last
}

/// `; what fails is inconclusive: fio bs=4k (iops, -1.20 % [-8.00, +6.00]) and 3 more`, the largest difference first.
fn describe_failing_inconclusive<'a>(
    inconclusive: impl Iterator<Item = &'a CheckResult>,
    check_name: impl Fn(&str) -> String,
) -> String {
    let failing: Vec<&CheckResult> = inconclusive.filter(|check| check.fails).collect();
    let Some(most) = failing.iter().max_by(|one, other| magnitude(one).total_cmp(&magnitude(other))) else {
        return String::new();
    };
    let others = match failing.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let amount = difference(most).map(|it| format!(": {} %{}", format_signed(it), describe_signed_interval(most)));
    // The interval beside it is within the threshold.
    let dependence = match has(most, |it| it.equal_if_independent) && is_statistical(most) {
        true => format!("; equal only if {} were within the threshold", describe_widened_interval(most)),
        false => String::new(),
    };
    format!(
        "; inconclusive, which fails: {}{}{others}{dependence}",
        check_name(&short_name(&most.id)),
        amount.unwrap_or_default()
    )
}

/// `the interval widened for samples that may depend on each other (-6.10 to +7.20 %)`.
fn describe_widened_interval(check: &CheckResult) -> String {
    let percent = |ratio: f64| format_signed((ratio - 1.0) * 100.0);
    let widened = shown_aspect(check).and_then(|aspect| aspect.widened_interval);
    let ends = widened.map(|it| format!(" ({} to {} %)", percent(it.low), percent(it.high)));
    format!("the interval widened for samples that may depend on each other{}", ends.unwrap_or_default())
}

/// The number of checks with each verdict, and the gravest of those that were not compared or lost a little: `5 equivalent, 2
/// missing (fio bs=4k (iops) and one other)`.
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
    let named = |verdict: FinalVerdict, word: &str| match is_grave(verdict) {
        true => format!("{word}{}", name_gravest(&with(verdict), &check_name)),
        false => word.to_owned(),
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
    let thresholds = ThresholdRange::of(equal.iter().copied());
    thresholds.filter(|it| it.largest > DEFAULT_PERCENT).map_or_else(String::new, |it| format!(" within {it}"))
}

/// `failing more often (3 of 9 attempts instead of 0 of 9) in fio bs=4k`; of several checks the one in which it is most.
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

/// `29.0 % slower (27.5 to 29.8 %) in fio bs=4k`; of several checks the range, and where it is largest. What became zero, or
/// was, has no such size.
fn describe_changed(checks: &[&CheckResult], check_name: impl Fn(&str) -> String) -> Option<String> {
    let name = |check: &CheckResult| check_name(&short_name(&check.id));
    let word = adjective(checks)?;
    // The shift is what everybody expects; anything else is named.
    let of = |check: &CheckResult| match check.statistics.as_ref().and_then(|statistics| statistics.aspect) {
        Some(aspect) if is_statistical(check) && aspect != Aspect::Shift => format!(" by the {aspect}"),
        _ => String::new(),
    };
    let is_score = checks.iter().any(|check| is_weighted_score(check));
    if let [check] = checks {
        let name = name(check);
        let size = match size(check) {
            Size::Percent(size) => size,
            Size::FromZero | Size::ToZero | Size::ChangedSign => {
                return Some(format!("{word}{} in {name}, which {},", of(check), describe_without_size(checks)));
            }
            Size::Values => {
                let doubt = describe_doubt(check) + &describe_contrary(check);
                return Some(format!("{word}{}{doubt} in {name}, {},", of(check), describe_values(check)));
            }
            Size::Unknown => return Some(format!("{word} in {name}")),
        };
        if is_score {
            return Some(format!("{word} by a score of {} % in {name}", format_size(size)));
        }
        let (interval, doubt) = (describe_interval(check), describe_doubt(check) + &describe_contrary(check));
        return Some(match factor(check) {
            Some(factor) => {
                let of = of(check).replacen(" by ", " of ", 1);
                format!("{word} by a factor of {}{of}{interval}{doubt} in {name}", format_factor(factor))
            }
            None => format!("{} % {word}{}{interval}{doubt} in {name}", format_size(size), of(check)),
        });
    }
    let with = |is: fn(Size) -> bool| checks.iter().copied().filter(|it| is(size(it))).collect::<Vec<&CheckResult>>();
    let sized = with(|size| matches!(size, Size::Percent(_)));
    let largest = sized.iter().copied().max_by(|one, other| magnitude(one).total_cmp(&magnitude(other)));
    let amounts = largest.map(|largest| {
        let (name, of) = (name(largest), of(largest));
        match (&sized[..], is_score) {
            ([one], false) => format!("by an estimate of {}{of} in {name}", describe_ranges(&[one])),
            ([one], true) => format!("by a score of {}{of} in {name}", describe_ranges(&[one])),
            (several, _) => {
                let by = if is_score { "scores" } else { "estimates" };
                let is_all = several.len() == checks.len();
                let among = if is_all { String::new() } else { format!(" in {} of them", several.len()) };
                format!("by {by} of {}{among} (most in {name}{of})", describe_ranges(several))
            }
        }
    });
    let without_size = [
        with(|size| size == Size::ToZero),
        with(|size| size == Size::FromZero),
        with(|size| size == Size::ChangedSign),
        with(|size| size == Size::Values),
    ];
    let without_size = without_size.iter().filter(|of_kind| !of_kind.is_empty()).map(|of_kind| {
        let others = if of_kind.len() > 1 { format!(" and {} more", of_kind.len() - 1) } else { String::new() };
        format!("{} {} ({}{others})", of_kind.len(), describe_without_size(of_kind), name(of_kind[0]))
    });
    let amounts: Vec<String> = amounts.into_iter().chain(without_size).map(|amount| format!(", {amount}")).collect();
    Some(format!("{word} in {} checks{}", checks.len(), amounts.concat()))
}

/// `became zero` or `was zero before`, of checks of one such kind; of alternatives, neither of which was before.
fn describe_without_size(checks: &[&CheckResult]) -> &'static str {
    let is_alternative = checks.iter().any(|check| check.sides.is_some());
    let is_one = checks.len() == 1;
    match (checks.first().map(|check| size(check)), is_alternative) {
        (Some(Size::ToZero), false) => "became zero",
        (Some(Size::ToZero), true) if is_one => "is zero",
        (Some(Size::ToZero), true) => "are zero",
        (Some(Size::ChangedSign), false) => "changed sign",
        (Some(Size::ChangedSign), true) if is_one => "has the other sign",
        (Some(Size::ChangedSign), true) => "have the other sign",
        (Some(Size::Values), _) if is_one => "has values below zero",
        (Some(Size::Values), _) => "have values below zero",
        (_, false) if is_one => "was zero before",
        (_, false) => "were zero before",
        (_, true) if is_one => "is zero in the reference",
        (_, true) => "are zero in the reference",
    }
}

/// `3.0 to 12.0 %`, or `factors of 1.20 to 2.50`; if checks of several kinds differ, a range for each: `3.0 to 12.0 % of
/// throughput and 20.0 % of latency`.
fn describe_ranges(checks: &[&CheckResult]) -> String {
    let mut kinds: Vec<(Class, Vec<&CheckResult>)> = Vec::new();
    for check in checks {
        let class = class_of_difference(check);
        match kinds.iter_mut().find(|(of, _)| *of == class) {
            Some((_, members)) => members.push(check),
            None => kinds.push((class, vec![check])),
        }
    }
    match &kinds[..] {
        [(_, one)] => describe_range(one),
        several => join_names(
            &several
                .iter()
                .map(|(class, members)| format!("{} of {class}", describe_range(members)))
                .collect::<Vec<_>>(),
        ),
    }
}

/// The range of the differences of checks of one kind, as factors if one of them is large.
fn describe_range(checks: &[&CheckResult]) -> String {
    let range =
        |amounts: Vec<f64>| amounts.iter().fold((f64::INFINITY, 0.0), |(low, high), it| (low.min(*it), it.max(high)));
    if checks.iter().any(|check| factor(check).is_some()) {
        let (low, high) = range(checks.iter().map(|check| magnitude(check).exp()).collect());
        return match [low, high].map(format_factor) {
            [low, high] if low == high => format!("a factor of {high}"),
            [low, high] => format!("factors of {low} to {high}"),
        };
    }
    let percent = |check: &&CheckResult| match size(check) {
        Size::Percent(percent) => Some(percent),
        Size::FromZero | Size::ToZero | Size::ChangedSign | Size::Values | Size::Unknown => None,
    };
    let (low, high) = range(checks.iter().filter_map(percent).collect());
    match format_sizes([low, high]) {
        [low, high] if low == high => format!("{high} %"),
        [low, high] => format!("{low} to {high} %"),
    }
}

/// The factor from which on a difference is one: a time that is 50.2 % lower and a rate that is 100.8 % higher are the same
/// change, which percentages hide.
const LARGE_FACTOR: f64 = 1.5;

/// The factor, above 1, by which a check is better or worse, if it is large. Scores of models are no ratios.
fn factor(check: &CheckResult) -> Option<f64> {
    let factor = magnitude(check).exp();
    let is_positive = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
    let is_positive = is_positive(check.before) && is_positive(check.after);
    (is_positive && factor.is_finite() && factor >= LARGE_FACTOR && is_ratio(check)).then_some(factor)
}

/// A factor with two decimals, from 10 on with three significant digits.
fn format_factor(factor: f64) -> String {
    match factor {
        factor if factor >= 99.95 => format!("{factor:.0}"),
        factor if factor >= 9.995 => format!("{factor:.1}"),
        factor => format!("{factor:.2}"),
    }
}

/// The size of a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Size {
    /// In percent, without its sign.
    Percent(f64),
    /// Infinite.
    FromZero,
    /// A hundred percent, or infinitely many times less.
    ToZero,
    /// More than a hundred percent, and no factor.
    ChangedSign,
    /// A difference of values of which some are below zero, so that it is no ratio.
    Values,
    /// Without a figure.
    Unknown,
}

fn size(check: &CheckResult) -> Size {
    let is_negative = |value: Option<f64>| value.is_some_and(|value| value < 0.0);
    let changed_sign = check.before.zip(check.after).is_some_and(|(before, after)| before * after < 0.0);
    match (difference(check), check.before) {
        _ if value_difference(check).is_some() => Size::Values,
        (Some(_), _) if changed_sign && is_ratio(check) => Size::ChangedSign,
        (Some(difference), _) if difference < -100.0 && is_ratio(check) && !is_negative(check.before) => {
            Size::ChangedSign
        }
        (Some(difference), _) if difference == -100.0 && is_ratio(check) && !is_negative(check.before) => Size::ToZero,
        (Some(difference), _) => Size::Percent(difference.abs()),
        (None, Some(0.0)) => Size::FromZero,
        (None, _) => Size::Unknown,
    }
}

/// `-4.99 → -10.0, a difference of -5.01 (-6.46 to -3.57)`.
fn describe_values(check: &CheckResult) -> String {
    let Some(of_values) = value_difference(check) else { return String::new() };
    let [before, after] = side_figures(check);
    let difference = |value: f64| format_value_difference(check, value);
    let runs = if check.final_verdict == FinalVerdict::Unconfirmed { " between these runs" } else { "" };
    let interval = shown_interval(check.final_verdict, of_values.interval, of_values.runs_interval);
    let interval = interval.map(|it| format!(" ({} to {}{runs})", difference(it.low), difference(it.high)));
    format!("{before} → {after}, a difference of {}{}", difference(of_values.estimate), interval.unwrap_or_default())
}

/// Whether the difference is that of a ratio: those of standard deviations are in percentage points, and scores of models
/// are of their own kind.
fn is_ratio(check: &CheckResult) -> bool {
    check.statistic == Statistic::Mean && !is_weighted_score(check)
}

/// Whether a check was decided by a score that is no plain difference of both sides: of models, or with builds between.
pub(super) fn is_weighted_score(check: &CheckResult) -> bool {
    let is_plain = match (check.score, check.difference) {
        (Some(score), Some(difference)) => (score - difference).abs() <= 1e-9 * difference.abs().max(1.0),
        (score, difference) => score == difference,
    };
    check.decided_by == ComparisonMethod::Tolerance && !is_plain
}

/// The kind of quantity that a difference is of.
fn class_of_difference(check: &CheckResult) -> Class {
    match CheckId::parse(&check.id) {
        // The latencies of operations beside a throughput.
        _ if is_statistical(check) && is_p99(check) => Class::Latency,
        Ok(id) => id.class,
        Err(_) => Class::Check,
    }
}

/// The interval that is shown of a check that statistics decide.
fn interval_of(check: &CheckResult) -> Option<[f64; 2]> {
    let statistics = check.statistics.as_ref().filter(|_| is_statistical(check) && difference(check).is_some())?;
    let interval = shown_interval(check.final_verdict, statistics.interval, statistics.runs_interval)?;
    Some([interval.low, interval.high])
}

/// The interval of a check beside its difference in words (`29.0 % slower`): in the same words, so that an end on the other
/// side has those for it, and of factors beside a factor.
fn describe_interval(check: &CheckResult) -> String {
    let Some(ends) = interval_of(check) else { return String::new() };
    let is_more = difference(check).is_some_and(|difference| difference > 0.0);
    // From the end that is nearest to equal, or on the other side of it, to the farthest.
    let [near, far] = if is_more { ends } else { [ends[1], ends[0]] };
    let is_same_side = |ratio: f64| if is_more { ratio > 1.0 } else { ratio < 1.0 };
    let is_factor = factor(check).is_some();
    let sizes = format_sizes([near, far].map(|ratio| (ratio - 1.0) * 100.0));
    let amount = |(ratio, size): (f64, &String)| match is_factor {
        _ if ratio <= 0.0 => "zero".to_owned(),
        true => format_factor(ratio.max(1.0 / ratio)),
        false => size.clone(),
    };
    let unit = |amount: &str| if is_factor || amount == "zero" { "" } else { " %" };
    // Without the noise between runs.
    let of = if check.final_verdict == FinalVerdict::Unconfirmed { " between these runs" } else { "" };
    let [near_amount, far_amount] = [(near, &sizes[0]), (far, &sizes[1])].map(amount);
    let [near_unit, far_unit] = [&near_amount, &far_amount].map(|amount| unit(amount));
    let words = adjective(&[check]).and_then(|word| Some((word, opposite(word)?)));
    match words {
        _ if near_amount == far_amount && is_same_side(near) == is_same_side(far) => {
            format!(" ({far_amount}{far_unit}{of})")
        }
        _ if is_same_side(near) => {
            let near_unit = if far_unit == near_unit { "" } else { near_unit };
            format!(" ({near_amount}{near_unit} to {far_amount}{far_unit}{of})")
        }
        Some((word, opposite)) => {
            let by = if is_factor { "by a factor of " } else { "" };
            let amount = |amount: &str, unit: &str, word: &str| match (is_factor, amount) {
                (_, "zero") => amount.to_owned(),
                (true, _) => format!("{word} {by}{amount}"),
                (false, _) => format!("{amount}{unit} {word}"),
            };
            let near = amount(&near_amount, near_unit, opposite);
            format!(" ({near} to {}{of})", amount(&far_amount, far_unit, word))
        }
        None => {
            format!(" ({} to {} %{of})", format_signed((ends[0] - 1.0) * 100.0), format_signed((ends[1] - 1.0) * 100.0))
        }
    }
}

/// The interval of a check beside its difference with a sign.
fn describe_signed_interval(check: &CheckResult) -> String {
    let percent = |ratio: f64| format_signed((ratio - 1.0) * 100.0);
    interval_of(check).map_or_else(String::new, |[low, high]| format!(" ({} to {} %)", percent(low), percent(high)))
}

/// The word for the other direction.
fn opposite(word: &str) -> Option<&'static str> {
    Some(match word {
        "slower" => "faster",
        "faster" => "slower",
        "worse" => "better",
        "better" => "worse",
        _ => return None,
    })
}

/// `, but its mean may be 68.3 % worse,` if that keeps a gain from being confirmed.
fn describe_doubt(check: &CheckResult) -> String {
    let statistics = check.statistics.as_ref().filter(|_| check.final_verdict == FinalVerdict::Unconfirmed);
    let doubting = statistics.and_then(doubting_aspect);
    let describe = |aspect: &AspectSummary| {
        let amount = match aspect.ratio.map(|ratio| (ratio, ratio.max(1.0 / ratio))) {
            None => "worse".to_owned(),
            Some((_, factor)) if factor.is_infinite() => "zero".to_owned(),
            Some((_, factor)) if factor >= LARGE_FACTOR => format!("worse by a factor of {}", format_factor(factor)),
            Some((ratio, _)) => format!("{} % worse", format_size((ratio - 1.0) * 100.0)),
        };
        format!(", but its {} may be {amount},", aspect.aspect)
    };
    doubting.map(describe).unwrap_or_default()
}

/// `, although its mean is 25.5 % better,` of a check that is worse.
fn describe_contrary(check: &CheckResult) -> String {
    let statistics = check.statistics.as_ref().filter(|_| check.final_verdict.is_worse() && is_statistical(check));
    let aspects = statistics.map(|statistics| &statistics.aspects[..]).unwrap_or_default();
    let better = aspects.iter().filter(|aspect| aspect.alone.is_better() && aspect.certainty >= Certainty::Samples);
    let describe = |aspect: &AspectSummary| match aspect.ratio.map(|ratio| (ratio, ratio.max(1.0 / ratio))) {
        None => format!("its {} is better", aspect.aspect),
        Some((_, factor)) if factor >= LARGE_FACTOR => {
            format!("its {} is better by a factor of {}", aspect.aspect, format_factor(factor))
        }
        Some((ratio, _)) => format!("its {} is {} % better", aspect.aspect, format_size((ratio - 1.0) * 100.0)),
    };
    let better: Vec<String> = better.map(describe).collect();
    if better.is_empty() { String::new() } else { format!(", although {},", join_names(&better)) }
}

/// Whether statistics decide a check.
fn is_statistical(check: &CheckResult) -> bool {
    check.decided_by == ComparisonMethod::Statistical
}

fn has(check: &CheckResult, property: impl Fn(&StatisticalSummary) -> bool) -> bool {
    check.statistics.as_ref().is_some_and(property)
}

/// Whether a check regressed since attempts fail more often, while its samples did not get worse.
pub(super) fn is_worse_by_failures_alone(check: &CheckResult) -> bool {
    let is_worse = |it: &AspectSummary| it.alone.is_worse() && it.certainty == Certainty::Runs;
    is_statistical(check) && has(check, |it| it.failures_rose && !it.aspects.iter().any(is_worse))
}

/// Whether the shown aspect is the tail of the operations.
fn is_p99(check: &CheckResult) -> bool {
    has(check, |statistics| statistics.aspect == Some(Aspect::P99))
}

/// A percentage without its sign, with one decimal or two significant digits.
fn format_size(percent: f64) -> String {
    match percent.abs() {
        size if size >= 0.095 || size == 0.0 => format!("{size:.1}"),
        size => {
            let digits = (1.0 - size.log10().floor()).clamp(1.0, 9.0) as usize;
            format!("{size:.digits$}")
        }
    }
}

/// Both ends of a range, without their signs, with as many decimals as the larger one needs: a range of 30 % says nothing
/// about thousandths. An end that would be shown as zero is `<0.1`.
fn format_sizes(ends: [f64; 2]) -> [String; 2] {
    let largest = ends.iter().fold(0.0, |largest: f64, end| largest.max(end.abs()));
    let decimals = format_size(largest).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let step = 10f64.powi(-(decimals as i32));
    ends.map(|end| match end.abs() {
        size if size > 0.0 && size < step / 2.0 => format!("<{step:.decimals$}"),
        size => format!("{size:.decimals$}"),
    })
}

/// `slower` and `faster` of throughputs and latencies, otherwise `worse` and `better`; `None` if checks without a verdict
/// differ in their direction.
fn adjective(checks: &[&CheckResult]) -> Option<&'static str> {
    let is_speed = |check: &&CheckResult| {
        !is_weighted_score(check)
            && CheckId::parse(&check.id).is_ok_and(|id| matches!(id.class, Class::Throughput | Class::Latency))
    };
    let worse = match checks.first()?.final_verdict {
        verdict if verdict.is_worse() => true,
        verdict if verdict.is_better() => false,
        _ => {
            let first = is_worse_by_estimate(checks.first()?)?;
            checks.iter().all(|check| is_worse_by_estimate(check) == Some(first)).then_some(first)?
        }
    };
    Some(match (checks.iter().all(is_speed), worse) {
        (true, true) => "slower",
        (true, false) => "faster",
        (false, true) => "worse",
        (false, false) => "better",
    })
}

/// Whether the difference of a check is for the worse; `None` without one, or if neither direction is better.
fn is_worse_by_estimate(check: &CheckResult) -> Option<bool> {
    match (check.direction, value_difference(check).map(|it| it.estimate).or_else(|| difference(check))?) {
        (Direction::Neither, _) => None,
        // The latencies of operations beside a throughput.
        (_, difference) if is_p99(check) => Some(difference > 0.0),
        (Direction::Higher, difference) => Some(difference < 0.0),
        (Direction::Lower, difference) => Some(difference > 0.0),
    }
}

/// The test, the case and the metric of a check.
pub(super) fn short_name(id: &str) -> String {
    match CheckId::parse(id) {
        Ok(parsed) => format!("{} ({})", short_cell_name(id), parsed.metric),
        Err(_) => id.to_owned(),
    }
}

/// The test and the case of an error: `PROFILE/TEST/SERIAL`, with `:CASE` in a run of this program.
fn short_location(location: &str) -> String {
    let mut parts = location.splitn(3, '/').skip(1);
    let (Some(test), cell) = (parts.next(), parts.next()) else { return location.to_owned() };
    match cell.and_then(|cell| cell.split_once(':')).map(|(_, case)| unescape_lossy(case)).as_deref() {
        None | Some("-") => test.to_owned(),
        Some(case) => format!("{test} {case}"),
    }
}

/// The identifier of the cell of a check.
fn cell_id(id: &str) -> &str {
    id.rsplitn(3, '/').nth(2).unwrap_or(id)
}

/// The test and the case of a check.
pub(super) fn short_cell_name(id: &str) -> String {
    let Ok(parsed) = CheckId::parse(id) else { return id.to_owned() };
    match unescape_lossy(parsed.case.trim_start_matches("./")).as_str() {
        "-" => parsed.test.to_owned(),
        case => format!("{} {case}", parsed.test),
    }
}

//! Describes in words what changed and by how much: for one check, or for several as a range.

use wb_model::{Class, Direction};
use wb_results::comparison::{
    Aspect, AspectSummary, Certainty, CheckId, CheckResult, ComparisonMethod, FinalVerdict, Statistic,
    StatisticalSummary,
};

use super::figures::{
    difference, doubting_aspect, format_signed_percent, format_value_difference, magnitude, shown_interval,
    side_figures, value_difference,
};
use super::short_names::short_name;
use crate::phrasing::join_names;

/// `29.0 % slower (27.5 to 29.8 %) in fio bs=4k`; for several checks the range, and where it is largest. A change from
/// or to zero has no such size.
pub(super) fn describe_changed(checks: &[&CheckResult], check_name: impl Fn(&str) -> String) -> Option<String> {
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

/// `became zero` or `was zero before`, of checks of one such kind; of alternatives neither came before the other.
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

/// `3.0 to 12.0 %`, or `factors of 1.20 to 2.50`; a range for each kind if there are several: `3.0 to 12.0 % of
/// throughput and 20.0 % of latency`.
pub(super) fn describe_ranges(checks: &[&CheckResult]) -> String {
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

/// The factor from which a difference is shown as a factor. A time that is 50.2 % lower and a rate that is 100.8 %
/// higher are the same change, which percentages hide.
const LARGE_FACTOR: f64 = 1.5;

/// The factor, above 1, by which a check is better or worse, if it is large. Scores of models are not ratios.
fn factor(check: &CheckResult) -> Option<f64> {
    let factor = magnitude(check).exp();
    let is_positive = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
    let is_positive = is_positive(check.before) && is_positive(check.after);
    (is_positive && factor.is_finite() && factor >= LARGE_FACTOR && is_ratio(check)).then_some(factor)
}

/// Formats a factor with two decimals, from 10 on with three significant digits.
fn format_factor(factor: f64) -> String {
    match factor {
        factor if factor >= 99.95 => format!("{factor:.0}"),
        factor if factor >= 9.995 => format!("{factor:.1}"),
        factor => format!("{factor:.2}"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Size {
    /// In percent, without its sign.
    Percent(f64),
    /// Infinite.
    FromZero,
    /// A hundred percent, or infinitely many times less.
    ToZero,
    /// More than a hundred percent, and not a factor.
    ChangedSign,
    /// A difference of values; some of them are below zero, so that there is no ratio.
    Values,
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

/// Whether the difference is a ratio. Differences of standard deviations are in percentage points, scores of models in
/// a unit of their own.
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

fn class_of_difference(check: &CheckResult) -> Class {
    match CheckId::parse(&check.id) {
        // The latencies of operations beside a throughput.
        _ if is_statistical(check) && is_p99(check) => Class::Latency,
        Ok(id) => id.class,
        Err(_) => Class::Check,
    }
}

/// The shown interval of a check that statistics decide.
fn interval_of(check: &CheckResult) -> Option<[f64; 2]> {
    let statistics = check.statistics.as_ref().filter(|_| is_statistical(check) && difference(check).is_some())?;
    let interval = shown_interval(check.final_verdict, statistics.interval, statistics.runs_interval)?;
    Some([interval.low, interval.high])
}

/// The interval of a check in the words of its difference (`29.0 % slower`). An end on the other side gets the opposite
/// words; a difference given as a factor has an interval of factors.
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
            let [low, high] = ends.map(format_signed_percent);
            format!(" ({low} to {high} %{of})")
        }
    }
}

pub(super) fn describe_signed_interval(check: &CheckResult) -> String {
    let ends = interval_of(check).map(|ends| ends.map(format_signed_percent));
    ends.map_or_else(String::new, |[low, high]| format!(" ({low} to {high} %)"))
}

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
        format!(", but its {} may be {},", aspect.aspect, describe_ratio(aspect.ratio, "worse"))
    };
    doubting.map(describe).unwrap_or_default()
}

/// `, although its mean is 25.5 % better,` of a check that is worse.
fn describe_contrary(check: &CheckResult) -> String {
    let statistics = check.statistics.as_ref().filter(|_| check.final_verdict.is_worse() && is_statistical(check));
    let aspects = statistics.map(|statistics| &statistics.aspects[..]).unwrap_or_default();
    let better = aspects.iter().filter(|aspect| aspect.alone.is_better() && aspect.certainty >= Certainty::Samples);
    let describe =
        |aspect: &AspectSummary| format!("its {} is {}", aspect.aspect, describe_ratio(aspect.ratio, "better"));
    let better: Vec<String> = better.map(describe).collect();
    if better.is_empty() { String::new() } else { format!(", although {},", join_names(&better)) }
}

/// `25.5 % better`, or `better by a factor of 2.50` if the factor is large; the word alone without a finite ratio.
fn describe_ratio(ratio: Option<f64>, word: &str) -> String {
    match ratio.filter(|ratio| ratio.is_finite()) {
        None => word.to_owned(),
        Some(0.0) => "zero".to_owned(),
        Some(ratio) if ratio.max(1.0 / ratio) >= LARGE_FACTOR => {
            format!("{word} by a factor of {}", format_factor(ratio.max(1.0 / ratio)))
        }
        Some(ratio) => format!("{} % {word}", format_size((ratio - 1.0) * 100.0)),
    }
}

pub(super) fn is_statistical(check: &CheckResult) -> bool {
    check.decided_by == ComparisonMethod::Statistical
}

pub(super) fn has(check: &CheckResult, property: impl Fn(&StatisticalSummary) -> bool) -> bool {
    check.statistics.as_ref().is_some_and(property)
}

/// Whether a check regressed only because attempts fail more often; its samples did not get worse.
pub(super) fn is_worse_by_failures_alone(check: &CheckResult) -> bool {
    let is_worse = |it: &AspectSummary| it.alone.is_worse() && it.certainty == Certainty::Runs;
    is_statistical(check) && has(check, |it| it.failures_rose && !it.aspects.iter().any(is_worse))
}

fn is_p99(check: &CheckResult) -> bool {
    has(check, |statistics| statistics.aspect == Some(Aspect::P99))
}

/// Formats a percentage without its sign, with one decimal or two significant digits.
fn format_size(percent: f64) -> String {
    match percent.abs() {
        size if size >= 0.095 || size == 0.0 => format!("{size:.1}"),
        size => {
            let digits = (1.0 - size.log10().floor()).clamp(1.0, 9.0) as usize;
            format!("{size:.digits$}")
        }
    }
}

/// Formats both ends of a range without their signs, with as many decimals as the larger one needs: a range of 30 %
/// says nothing about thousandths. An end that would be shown as zero is `<0.1`.
fn format_sizes(ends: [f64; 2]) -> [String; 2] {
    let largest = ends.iter().fold(0.0, |largest: f64, end| largest.max(end.abs()));
    let decimals = format_size(largest).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let step = 10f64.powi(-(decimals as i32));
    ends.map(|end| match end.abs() {
        size if size > 0.0 && size < step / 2.0 => format!("<{step:.decimals$}"),
        size => format!("{size:.decimals$}"),
    })
}

/// `slower` or `faster` for throughputs and latencies, otherwise `worse` or `better`; `None` if checks without a
/// verdict differ in their direction.
pub(super) fn adjective(checks: &[&CheckResult]) -> Option<&'static str> {
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
pub(super) fn is_worse_by_estimate(check: &CheckResult) -> Option<bool> {
    match (check.direction, value_difference(check).map(|it| it.estimate).or_else(|| difference(check))?) {
        (Direction::Neither, _) => None,
        // The latencies of operations beside a throughput.
        (_, difference) if is_p99(check) => Some(difference > 0.0),
        (Direction::Higher, difference) => Some(difference < 0.0),
        (Direction::Lower, difference) => Some(difference > 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ratio_is_described_without_infinite_figures() {
        let ratios = [None, Some(f64::INFINITY), Some(0.0), Some(0.4), Some(0.745), Some(1.255), Some(3.0)];
        let described = ratios.map(|ratio| describe_ratio(ratio, "better"));
        let factors = ["better by a factor of 2.50", "25.5 % better", "25.5 % better", "better by a factor of 3.00"];
        assert_eq!(described[..3], ["better", "better", "zero"]);
        assert_eq!(described[3..], factors);
    }
}

//! Formats the figures and explanations of comparisons.

use wb_model::{Unit, pluralize, unescape_lossy};
use wb_results::comparison::{
    Aspect, AspectSummary, AttemptCounts, Certainty, CheckGroupResult, CheckId, CheckResult, ComparisonMethod,
    ComparisonResult, ConfidenceInterval, FinalVerdict, IdFormat, NoiseModelUse, ObservationCounts, ParamDifference,
    RequiredSamples, Statistic, StatisticalSummary, ValueDifference, WithinRunSummary,
};
use wb_stats::{NoiseSource, RunModes};

use super::change_size::is_weighted_score;
use super::failures::{describe_failed, describe_failure_certainty};
use super::threshold_range::format_threshold;
use crate::phrasing::NO_VALUE;
use crate::text::Tone;

pub(super) fn describe_method(outcome: &ComparisonResult) -> &'static str {
    match outcome.method {
        Some(ComparisonMethod::Tolerance) => "tolerances decide",
        Some(ComparisonMethod::Statistical) => "statistics decide",
        None if outcome.within_run.is_some() => "statistics decide from 6 samples a side",
        None => "statistics decide from 6 samples or 2 runs a side; tolerances decide on run-perf's folders",
    }
}

const MAX_NAMED_CELLS: usize = 4;

/// A note on the cells of a run that were not compared with others of it; `None` if all were.
pub(super) fn unmatched_note(outcome: &ComparisonResult) -> Option<String> {
    let within_run = outcome.within_run.as_ref().filter(|within_run| !within_run.unmatched.is_empty())?;
    let WithinRunSummary { by, reference, unmatched, .. } = within_run;
    let (named, others) = unmatched.split_at(unmatched.len().min(MAX_NAMED_CELLS));
    let named: Vec<String> = named.iter().map(|cell| unescape_lossy(cell)).collect();
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    Some(format!(
        "{} not compared, since none differs from `{reference}` in {by} alone: {}{more}",
        pluralize(unmatched.len(), "cell"),
        named.join(", ")
    ))
}

const MAX_NAMED_SECONDARY: usize = 5;

/// A note on the checks that are not primary and got worse or were not compared; `None` if there are none.
pub(super) fn secondary_note(outcome: &ComparisonResult) -> Option<String> {
    let failed = outcome.checks.iter().filter(|check| !check.primary && check.final_verdict.is_failure());
    let failed: Vec<&CheckResult> = failed.collect();
    let (named, others) = failed.split_at(failed.len().min(MAX_NAMED_SECONDARY));
    let name = |check: &&CheckResult| match check.final_verdict {
        worse if worse.is_worse() => format!("{} ({})", readable_id(&check.id), describe_difference(check)),
        other => format!("{} ({})", readable_id(&check.id), other.as_str()),
    };
    let named: Vec<String> = named.iter().map(name).collect();
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    let what = "not primary, not decisive, and worse or not compared";
    (!named.is_empty()).then(|| format!("{what}: {}{more}", named.join(", ")))
}

pub(super) fn describe_error(build: &str, text: &str) -> String {
    format!("`{build}` failed: {text}")
}

/// The names of the methods that found a regression; `None` if there is none.
pub(super) fn regressing_methods(outcome: &ComparisonResult) -> Option<String> {
    let names = outcome.regressed_by.iter().map(|method| match method {
        ComparisonMethod::Tolerance => "tolerance",
        ComparisonMethod::Statistical => "statistics",
    });
    Some(names.collect::<Vec<_>>().join(" and ")).filter(|names| !names.is_empty())
}

pub(super) fn format_percent(value: Option<f64>) -> String {
    value.map_or(NO_VALUE.to_owned(), |value| format!("{} %", format_signed(value)))
}

/// Formats a number with sign and two decimals; zero after rounding is `+0.00`.
pub(super) fn format_signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if text == "-0.00" { "+0.00".to_owned() } else { text }
}

/// Formats the difference of a ratio from 1 in percent, with sign and without unit.
pub(super) fn format_signed_percent(ratio: f64) -> String {
    format_signed((ratio - 1.0) * 100.0)
}

/// The unit of a statistic's differences: percentage points for standard deviations, which are percentages.
fn difference_unit(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => " %",
        Statistic::Stddev => " points",
    }
}

pub(super) fn format_difference(statistic: Statistic, value: Option<f64>) -> String {
    value.map_or(NO_VALUE.to_owned(), |value| format!("{}{}", format_signed(value), difference_unit(statistic)))
}

/// Unescapes an identifier for people; those of run-perf have no escapes.
pub(super) fn readable_id(id: &str) -> String {
    let is_run_perf = id.split_once(':').is_some_and(|(_, case)| case.starts_with("./"));
    if is_run_perf { id.to_owned() } else { unescape_lossy(id) }
}

pub(super) fn case_name(id: &CheckId<'_>) -> String {
    match id.id_format {
        IdFormat::RunPerf => id.case.to_owned(),
        IdFormat::Weighbridge => unescape_lossy(id.case),
    }
}

/// Formats a value with its unit; without a known unit, the number with up to six digits.
pub(super) fn format_figure(number: Option<f64>, unit: Option<&Unit>) -> String {
    match (number, unit) {
        (Some(number), Some(unit)) => unit.quantity(number).to_string(),
        (number, _) => format_value(number),
    }
}

pub(super) fn side_figures(check: &CheckResult) -> [String; 2] {
    let numbers = [check.before, check.after];
    let Some(unit) = &check.value_unit else { return numbers.map(format_value) };
    let common = unit.common(numbers.into_iter().flatten());
    numbers.map(|number| number.map_or_else(|| NO_VALUE.to_owned(), |number| common.format(number)))
}

/// With up to six digits.
pub(super) fn format_value(value: Option<f64>) -> String {
    let Some(value) = value else { return NO_VALUE.to_owned() };
    let digits = match value.abs() {
        v if v >= 100_000.0 || v == 0.0 => 0,
        v if v >= 1.0 => 5 - v.log10().floor() as usize,
        v if v >= 1e-4 => 6,
        _ => return format!("{value:.3e}"),
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

pub(super) fn tone(decided: FinalVerdict) -> Tone {
    match decided {
        FinalVerdict::Improved | FinalVerdict::Faster | FinalVerdict::Better | FinalVerdict::MinorGain => Tone::Good,
        FinalVerdict::Equivalent | FinalVerdict::New => Tone::Plain,
        FinalVerdict::MinorLoss | FinalVerdict::Differs | FinalVerdict::Unconfirmed | FinalVerdict::Inconclusive => {
            Tone::Doubtful
        }
        FinalVerdict::Regressed
        | FinalVerdict::Slower
        | FinalVerdict::Worse
        | FinalVerdict::Missing
        | FinalVerdict::Invalid
        | FinalVerdict::Incomparable => Tone::Bad,
    }
}

/// Explains the decision about a check in a sentence or two.
pub(super) fn explain_check(check: &CheckResult) -> String {
    let sides = check.sides.as_ref().map(|[reference, judged]| format!("{reference} → {judged}: ")).unwrap_or_default();
    let text = incomparable_reason(check).unwrap_or_else(|| {
        let explanation = explain(check);
        let [reference, judged] = side_figures(check);
        format!(
            "{} {reference} → {judged}; {} {}{}",
            check.statistic, explanation.difference, explanation.certainty, explanation.remarks
        )
    });
    sides + &text
}

pub(super) fn explain_group(group: &CheckGroupResult) -> String {
    let checks = pluralize(group.members, "check");
    let decides = if group.decides { "" } else { ", not decisive" };
    let average = match group.improvement {
        Some(improvement) => {
            format!("{:.2} % {}", improvement.abs(), if improvement < 0.0 { "worse" } else { "better" })
        }
        None => format!("{} %", format_signed(group.score)),
    };
    let of = if group.is_geometric && group.improvement.is_some() { " (geometric mean of speed)" } else { "" };
    let noise = if group.without_run_noise { "without noise" } else { "with the noise" };
    let interval = group.interval.map(|it| format!(" {} {noise} between runs", describe_interval(it)));
    let interval = interval.unwrap_or_default();
    let median = group.median.filter(|_| group.members > 1);
    let median = median.map(|median| format!("; median {}", format_percent(Some(median)))).unwrap_or_default();
    let dominant = group.dominant.as_ref().map(|member| {
        let [improvement, without] = [member.improvement, member.average_without].map(|it| format_percent(Some(it)));
        format!("; it follows {} ({improvement}), {without} without it", readable_id(&member.id))
    });
    let dominant = dominant.unwrap_or_default();
    format!(
        "{average} on average{of}{interval}, tolerance {:.2} %, {checks}{decides}{median}{dominant}",
        group.tolerance
    )
}

/// Like [`explain_check`], for use beside both values and the [`difference`].
pub(super) fn explain_briefly(check: &CheckResult) -> String {
    incomparable_reason(check).unwrap_or_else(|| {
        let explanation = explain(check);
        format!("{}{}", explanation.certainty, explanation.remarks)
    })
}

/// The difference of a check in percent, by the deciding method: of the aspect that its verdict is based on, or the
/// score.
pub(super) fn difference(check: &CheckResult) -> Option<f64> {
    match (check.decided_by, &check.statistics) {
        (ComparisonMethod::Statistical, Some(statistics)) if inconclusive_reason(check).is_none() => {
            statistics.ratio.map(|ratio| (ratio - 1.0) * 100.0)
        }
        _ => check.score,
    }
}

/// The difference of a check in the unit of its values, of the aspect that its verdict is based on, where a value below
/// zero leaves no ratio.
pub(super) fn value_difference(check: &CheckResult) -> Option<ValueDifference> {
    let statistics = check.statistics.as_ref().filter(|_| check.decided_by == ComparisonMethod::Statistical)?;
    statistics.value_difference.filter(|_| inconclusive_reason(check).is_none())
}

pub(super) fn format_value_difference(check: &CheckResult, difference: f64) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", format_figure(Some(difference.abs()), check.value_unit.as_ref()))
}

fn describe_value_interval(check: &CheckResult, interval: ConfidenceInterval) -> String {
    let [low, high] = [interval.low, interval.high].map(|end| format_value_difference(check, end));
    format!("[{low}, {high}]")
}

/// How far a check is from equal, on logarithms: a half is as far as the double; from or to zero it is infinite. A
/// difference of values is relative to the larger one of both.
pub(super) fn magnitude(check: &CheckResult) -> f64 {
    if let Some(of_values) = value_difference(check) {
        let largest =
            [check.before, check.after].into_iter().flatten().fold(0.0, |largest: f64, it| largest.max(it.abs()));
        return if largest > 0.0 { (of_values.estimate.abs() / largest).ln_1p() } else { 0.0 };
    }
    match (difference(check), check.before) {
        (Some(difference), _) => (1.0 + difference / 100.0).max(0.0).ln().abs(),
        (None, Some(0.0)) => f64::INFINITY,
        (None, _) => 0.0,
    }
}

/// The [`difference`] of a check. A difference of standard deviations is positive if there is less deviation, which
/// only words can say; scores of models have a sign of their own.
fn format_check_difference(check: &CheckResult) -> String {
    if let Some(of_values) = value_difference(check) {
        return format_value_difference(check, of_values.estimate);
    }
    let text = format_difference(check.statistic, difference(check));
    match (check.statistic, difference(check)) {
        (_, None) if check.before == Some(0.0) && check.after.is_some_and(|after| after != 0.0) => {
            "infinite".to_owned()
        }
        (Statistic::Stddev, Some(points)) if !is_weighted_score(check) && text != "+0.00 points" => {
            format!("{} {}", text.trim_start_matches(['+', '-']), if points < 0.0 { "more" } else { "less" })
        }
        _ => text,
    }
}

/// The [`difference`], with its aspect if that is not the mean: the values beside it are means.
pub(super) fn describe_difference(check: &CheckResult) -> String {
    let text = format_check_difference(check);
    let of = check.statistics.as_ref().filter(|_| check.decided_by == ComparisonMethod::Statistical);
    let of = of.filter(|_| inconclusive_reason(check).is_none());
    match named_aspect(of.and_then(|statistics| statistics.aspect)) {
        None => text,
        Some(aspect) => format!("{aspect} {text}"),
    }
}

/// The name of the aspect of a difference, unless it is the mean like the values beside it.
pub(super) fn named_aspect(aspect: Option<Aspect>) -> Option<&'static str> {
    aspect.filter(|aspect| *aspect != Aspect::Mean).map(Aspect::as_str)
}

/// The reason why a check is inconclusive independent of its figures.
pub(super) fn inconclusive_reason(check: &CheckResult) -> Option<&str> {
    check.reason.as_deref().filter(|_| check.final_verdict == FinalVerdict::Inconclusive)
}

fn incomparable_reason(check: &CheckResult) -> Option<String> {
    match check.final_verdict {
        FinalVerdict::Missing | FinalVerdict::Invalid if check.reason.is_some() => check.reason.clone(),
        // All attempts failed, which is what is worse.
        verdict if verdict.is_worse() && check.after.is_none() => {
            let failed = check.statistics.as_ref().map(|it| describe_failed(it.failures));
            let parts: Vec<String> = failed.into_iter().chain(check.reason.clone()).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
        FinalVerdict::Missing if check.before.is_none() && check.after.is_none() => Some("on one side only".to_owned()),
        FinalVerdict::New => Some("not in the first build".to_owned()),
        FinalVerdict::Missing => Some(match (&check.sides, check.before) {
            (None, None) => "not in the first build".to_owned(),
            (None, Some(_)) => "not in the last build".to_owned(),
            (Some([reference, _]), None) => format!("`{reference}` does not have it"),
            (Some([_, judged]), Some(_)) => format!("`{judged}` does not have it"),
        }),
        FinalVerdict::Invalid => Some("no valid value".to_owned()),
        FinalVerdict::Incomparable => {
            let way_out = check.reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
            Some(format!("different definitions: {}{way_out}", describe_differences(check)))
        }
        _ => None,
    }
}

struct Explanation {
    difference: String,
    /// Of the difference; or the tolerance.
    certainty: String,
    remarks: String,
}

fn explain(check: &CheckResult) -> Explanation {
    let differing = Some(describe_differences(check)).filter(|text| !text.is_empty());
    let differing = differing.map(|text| format!("; {text}")).unwrap_or_default();
    let disturbed = check.statistics.as_ref().map_or(String::new(), describe_disturbed) + &describe_lacking(check);
    match (check.decided_by, &check.statistics) {
        (ComparisonMethod::Statistical, Some(statistics)) if inconclusive_reason(check).is_none() => {
            let name = statistics.aspect.map_or(Aspect::Shift.as_str(), Aspect::as_str);
            let of_values = value_difference(check);
            let interval = match of_values {
                Some(it) => shown_interval(check.final_verdict, it.interval, it.runs_interval)
                    .map(|interval| describe_value_interval(check, interval)),
                None => shown_interval(check.final_verdict, statistics.interval, statistics.runs_interval)
                    .map(describe_interval),
            };
            let remarks = [
                describe_failures(statistics),
                describe_other_aspects(check, statistics),
                describe_median_ratio(statistics),
                describe_correction(check, statistics),
                match &check.sides {
                    Some(_) => describe_same_run(check.final_verdict, statistics),
                    None => describe_run_noise(check.final_verdict, statistics),
                },
                describe_noise(check.final_verdict, statistics.noise.as_ref()),
                statistics
                    .required_samples
                    .map(|needs| describe_needs(needs, statistics.noise_source))
                    .unwrap_or_default(),
            ];
            let remarks: String =
                remarks.into_iter().filter(|text| !text.is_empty()).map(|text| format!("; {text}")).collect();
            Explanation {
                difference: match difference(check) {
                    Some(percent) => format!("{name} {}", format_percent(Some(percent))),
                    None if of_values.is_some() => format!("{name} {}", format_check_difference(check)),
                    None => format_check_difference(check),
                },
                certainty: format!(
                    "{}; threshold {}; {}",
                    interval.unwrap_or_else(|| "without an interval".to_owned()),
                    format_threshold(statistics.threshold),
                    describe_counts(&statistics.counts),
                ),
                remarks: remarks + &disturbed + &differing,
            }
        }
        _ => {
            let parts: Vec<String> = match check.score_parts.as_slice() {
                [_] => Vec::new(),
                parts => {
                    let describe = |(name, difference, _): &(String, Option<f64>, f64)| {
                        let text = difference
                            .map_or("infinite".to_owned(), |_| format_difference(check.statistic, *difference));
                        format!("{name} {text}")
                    };
                    parts.iter().map(describe).collect()
                }
            };
            let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
            let reason = inconclusive_reason(check).map_or(String::new(), |reason| format!("; {reason}"));
            let failures = check.statistics.as_ref().map(describe_failures).filter(|text| !text.is_empty());
            let failures = failures.map(|text| format!("; {text}")).unwrap_or_default();
            Explanation {
                difference: format_check_difference(check),
                certainty: format!("of ±{}{}", format_value(Some(check.tolerance)), difference_unit(check.statistic)),
                remarks: parts + &reason + &failures + &disturbed + &differing,
            }
        }
    }
}

/// Names the runs of a side that lack something that other runs of it have.
fn describe_lacking(check: &CheckResult) -> String {
    let side = |(runs, build): (&Vec<String>, &str)| match &runs[..] {
        [] => String::new(),
        runs => format!("; missing in {} of the {build} build", runs.join(", ")),
    };
    check.lacking.iter().zip(["first", "last"]).map(side).collect()
}

fn describe_disturbed(statistics: &StatisticalSummary) -> String {
    if statistics.disturbed.iter().flatten().all(|count| *count == 0) {
        return String::new();
    }
    let [reference, judged] =
        statistics.disturbed.map(|count| count.map_or("unknown".to_owned(), |count| count.to_string()));
    format!("; disturbed samples: {reference} and {judged}")
}

/// The interval on which the verdict is based: of the samples, or with the noise between runs.
pub(super) fn shown_interval<T>(decided: FinalVerdict, by_samples: Option<T>, by_runs: Option<T>) -> Option<T> {
    match decided {
        decided if decided.is_change() => by_runs.or(by_samples),
        _ => by_samples,
    }
}

/// The ends of an interval of a ratio, in percent with sign.
pub(super) fn describe_interval(interval: ConfidenceInterval) -> String {
    format!("[{}, {}]", format_signed_percent(interval.low), format_signed_percent(interval.high))
}

/// The numbers of samples and, if there are several, of runs.
pub(super) fn describe_counts(counts: &ObservationCounts) -> String {
    let [reference, judged] = counts.samples;
    if counts.paired {
        return format!("{reference} pairs of samples");
    }
    let samples = format!("{reference} and {judged} samples");
    match counts.runs {
        [1, 1] => samples,
        [reference, judged] => format!("{samples} of {reference} and {judged} runs"),
    }
}

/// The other aspects that differ or seem worse, unless the shown one says the same.
fn describe_other_aspects(check: &CheckResult, statistics: &StatisticalSummary) -> String {
    let differing =
        statistics.aspects.iter().filter(|aspect| aspect.certainty != Certainty::None || aspect.seems_worse);
    let shown = statistics.decisive_aspect();
    let is_other = |aspect: &&AspectSummary| {
        let (interval, estimate) = match (statistics.value_difference, aspect.value_difference) {
            (Some(shown), Some(it)) => (shown.interval, Some(it.estimate)),
            _ => (statistics.interval, aspect.ratio),
        };
        let within = interval.zip(estimate).is_some_and(|(shown, it)| (shown.low..=shown.high).contains(&it));
        let says_the_same = within && shown.is_some_and(|shown| shown.alone == aspect.alone);
        Some(aspect.aspect) != statistics.aspect && !says_the_same
    };
    let others = differing.filter(is_other).map(|aspect| {
        let chosen = |by_samples, by_runs| match aspect.certainty {
            Certainty::Runs => by_runs,
            Certainty::Samples | Certainty::None => by_samples,
        };
        let (difference, interval) = match aspect.value_difference {
            Some(it) => (
                format_value_difference(check, it.estimate),
                chosen(it.interval, it.runs_interval).map(|interval| describe_value_interval(check, interval)),
            ),
            None => (
                format_percent(aspect.ratio.map(|ratio| (ratio - 1.0) * 100.0)),
                chosen(aspect.interval, aspect.runs_interval).map(describe_interval),
            ),
        };
        let interval = interval.map(|interval| format!(" {interval}")).unwrap_or_default();
        format!("{} {difference}{interval}", aspect.aspect)
    });
    let others: Vec<String> = others.collect();
    if others.is_empty() { String::new() } else { format!("also {}", others.join(", ")) }
}

/// The aspect that may be worse by its estimate, and keeps a shown one that is better from being confirmed.
pub(super) fn doubting_aspect(statistics: &StatisticalSummary) -> Option<&AspectSummary> {
    let shown = statistics.decisive_aspect()?;
    statistics.aspects.iter().find(|aspect| aspect.seems_worse).filter(|_| shown.alone.is_better())
}

fn describe_failures(statistics: &StatisticalSummary) -> String {
    if statistics.failures.iter().all(|counts| counts.failed == 0) {
        return String::new();
    }
    let side = |counts: AttemptCounts| format!("{} of {}", counts.failed, counts.attempts);
    let [reference, judged] = statistics.failures.map(side);
    let compared = if statistics.failures_rose {
        ", significantly more".to_owned()
    } else {
        describe_failure_certainty(statistics)
    };
    format!("failed attempts: {reference} and {judged}{compared}")
}

/// The ratio of medians if it says something else than the shift.
fn describe_median_ratio(statistics: &StatisticalSummary) -> String {
    let Some(ratio) = statistics.median_ratio else { return String::new() };
    let shift = statistics.aspects.iter().find(|aspect| aspect.aspect == Aspect::Shift);
    let shift = shift.and_then(|shift| shift.ratio);
    let differs = shift.is_none_or(|shift| (shift / ratio - 1.0).abs() * 100.0 >= statistics.threshold.max(1.0));
    let interval = statistics.median_interval.map(|it| format!(" {}", describe_interval(it))).unwrap_or_default();
    if differs {
        format!("ratio of medians {}{interval}", format_percent(Some((ratio - 1.0) * 100.0)))
    } else {
        String::new()
    }
}

/// Why an interval that seems to decide does not: equal by it but for dependence, or without 0 %.
fn describe_correction(check: &CheckResult, statistics: &StatisticalSummary) -> String {
    let decided = check.final_verdict;
    let shown = statistics.decisive_aspect();
    if decided == FinalVerdict::Inconclusive && statistics.equal_if_independent {
        let of_values = shown.and_then(|aspect| aspect.value_difference?.widened_interval);
        let of_values = of_values.map(|interval| describe_value_interval(check, interval));
        let widened = shown.and_then(|aspect| aspect.widened_interval).map(describe_interval).or(of_values);
        let widened = widened.unwrap_or_default();
        return format!(
            "samples may depend on each other: equal only if the interval widened for that were within the threshold, {widened}"
        );
    }
    let excludes_equality = shown.is_some_and(|aspect| match aspect.value_difference {
        Some(it) => it.interval.is_some_and(|it| it.low > 0.0 || it.high < 0.0),
        None => aspect.interval.is_some_and(|it| it.low > 1.0 || it.high < 1.0),
    });
    let is_significant = shown.is_some_and(|aspect| aspect.certainty != Certainty::None);
    if decided == FinalVerdict::Inconclusive && excludes_equality && !is_significant {
        "significant alone, not among the aspects of this check and all checks".to_owned()
    } else {
        String::new()
    }
}

fn describe_same_run(decided: FinalVerdict, statistics: &StatisticalSummary) -> String {
    let within = if statistics.counts.paired {
        "within one run, paired by round"
    } else {
        "within one run, but not in the same rounds, so that a change of the system between them counts as well"
    };
    match decided {
        FinalVerdict::Equivalent => {
            format!("{within}; the sides do not differ by {} or more", format_threshold(statistics.threshold))
        }
        _ => within.to_owned(),
    }
}

/// What is assumed of the noise between runs, and what would confirm a difference.
fn describe_run_noise(decided: FinalVerdict, statistics: &StatisticalSummary) -> String {
    if matches!(statistics.noise, Some(NoiseModelUse::Applied { .. })) {
        return String::new();
    }
    let assumed = match statistics.noise_source {
        Some(NoiseSource::OwnRuns) => "runs of one side differ more than assumed, so that they alone count".to_owned(),
        Some(NoiseSource::SingleSamples) => {
            "by the spread of runs of single samples, which includes the noise of samples".to_owned()
        }
        Some(NoiseSource::Prior) if statistics.run_noise > 0.0 => {
            format!("assuming that runs of one build differ by {} %", format_value(Some(statistics.run_noise)))
        }
        Some(NoiseSource::Prior) => "assuming that runs of one build do not differ".to_owned(),
        None => "without the noise between runs, since a figure is not above zero".to_owned(),
    };
    match decided {
        decided if decided.is_change() => assumed,
        FinalVerdict::Unconfirmed if statistics.significant_alone => {
            format!("{assumed}: significant alone, not among all checks of this comparison")
        }
        FinalVerdict::Unconfirmed if doubting_aspect(statistics).is_some() => {
            format!("{assumed}: no improvement while another aspect may be worse")
        }
        FinalVerdict::Unconfirmed
            if statistics.noise_source == Some(NoiseSource::Prior) && statistics.run_noise == 0.0 =>
        {
            format!("{assumed}: the samples differ, but vary too much to confirm it")
        }
        FinalVerdict::Unconfirmed => format!(
            "{assumed}, two runs of one may differ as much: `ab` measures both interleaved, `model fit --noise` learns how \
             much runs differ"
        ),
        FinalVerdict::Equivalent => format!(
            "these {} do not differ by {} or more",
            if statistics.counts.runs == [1, 1] { "two runs" } else { "runs" },
            format_threshold(statistics.threshold)
        ),
        _ => String::new(),
    }
}

/// Describes the model of the noise between runs that was used, or why none was, if relevant.
fn describe_noise(decided: FinalVerdict, noise: Option<&NoiseModelUse>) -> String {
    let undecided = matches!(decided, FinalVerdict::Differs | FinalVerdict::Unconfirmed | FinalVerdict::Inconclusive);
    match noise {
        Some(NoiseModelUse::Applied { spread, runs, two_modes }) => {
            let modes = |modes: &RunModes| {
                let apart = modes.apart.exp_m1() * 100.0;
                format!(", in two modes {apart:.1} % apart; --threshold model is the noise within one of them")
            };
            let modes = two_modes.as_ref().map(modes).unwrap_or_default();
            format!("spread between runs {:.2} % (learnt from {runs}){modes}", spread * 100.0)
        }
        Some(NoiseModelUse::Insufficient { why: reason }) if undecided => {
            format!("the noise between runs is not known well enough: {reason}")
        }
        Some(NoiseModelUse::OtherDefinition) if undecided => {
            "the noise between runs is known only for another definition".to_owned()
        }
        Some(NoiseModelUse::Unknown) if undecided => "no model has the noise between runs".to_owned(),
        _ => String::new(),
    }
}

fn describe_needs(needs: RequiredSamples, source: Option<NoiseSource>) -> String {
    // Fewer are enough if they differ less.
    let differ = if source == Some(NoiseSource::Prior) { " and runs differ as assumed" } else { "" };
    match needs.per_side {
        Some(each) if needs.is_minimum => format!("fewer than {each} {} a side cannot be conclusive", needs.unit),
        Some(each) => format!("{each} {} a side would confirm it, if it stays the same{differ}", needs.unit),
        None => format!("no practical number of {} would confirm it", needs.unit),
    }
}

fn describe_differences(check: &CheckResult) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let texts: Vec<String> = check
        .differences
        .iter()
        .filter(|difference| !names_sides(check, difference))
        .map(|difference| format!("{} {} → {}", difference.name, side(&difference.before), side(&difference.after)))
        .collect();
    texts.join(", ")
}

/// Whether both sides are named after a parameter, possibly by another of its names.
fn names_sides(check: &CheckResult, difference: &ParamDifference) -> bool {
    let values = check.sides.as_ref().map(|sides| sides.each_ref().map(|side| side.split_once('=').map(|(_, it)| it)));
    values == Some([difference.before.as_deref(), difference.after.as_deref()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_has_its_unit_if_known() {
        let (number, unit) = (Some(87_806_578_462.0), Unit::new("bit/s"));
        assert_eq!(format_figure(number, Some(&unit)), "87.8 Gbit/s");
        assert_eq!(format_figure(number, None), "87806578462");
    }

    #[test]
    fn only_own_identifiers_are_unescaped() {
        assert_eq!(
            readable_id("P/fio/0000:file=%2Fdev%2Fsda/latency/p99#mean"),
            "P/fio/0000:file=/dev/sda/latency/p99#mean"
        );
        assert_eq!(readable_id("P/fio/0000:./mix%20a/latency/lat.mean"), "P/fio/0000:./mix%20a/latency/lat.mean");
    }

    #[test]
    fn values_have_at_most_six_digits() {
        let texts = [183_743.169, 12.3456789, 1.0, 0.0, 0.123_456_789, 0.000_001_234, -5.5];
        let texts = texts.map(|number| format_value(Some(number)));
        assert_eq!(texts, ["183743", "12.3457", "1", "0", "0.123457", "1.234e-6", "-5.5"]);
    }
}

//! Formats the figures and explanations of comparisons.

use wb_compare::comparison::{CheckGroupResult, CheckResult, ComparisonMethod, FinalVerdict, StatisticalSummary};
use wb_compare::statistical::{NoiseModelUse, RequiredSamples};
use wb_compare::{CheckId, ComparisonResult, IdFormat, Statistic};
use wb_model::{Unit, pluralize, unescape_lossy};

use crate::phrasing::NO_VALUE;
use crate::text::Tone;

/// Describes which method decides.
pub(super) fn describe_method(requested: Option<ComparisonMethod>) -> &'static str {
    match requested {
        Some(ComparisonMethod::Tolerance) => "tolerances decide",
        Some(ComparisonMethod::Statistical) => "statistics decide",
        None => {
            "statistics decide from 6 samples a side; with fewer, tolerances decide on run-perf's folders and nothing \
             decides on other runs"
        }
    }
}

/// Describes an error of a build.
pub(super) fn describe_error(build: &str, text: &str) -> String {
    format!("`{build}` failed: {text}")
}

/// The names of the methods that found a regression; none if there is no regression.
pub(super) fn regressing_methods(outcome: &ComparisonResult) -> Option<String> {
    let names = outcome.regressed_by.iter().map(|method| match method {
        ComparisonMethod::Tolerance => "tolerance",
        ComparisonMethod::Statistical => "statistics",
    });
    Some(names.collect::<Vec<_>>().join(" and ")).filter(|names| !names.is_empty())
}

/// Formats a percentage with sign.
pub(super) fn format_percent(value: Option<f64>) -> String {
    value.map_or(NO_VALUE.to_owned(), |value| format!("{} %", format_signed(value)))
}

/// Formats a number with sign and two decimals; zero after rounding is `+0.00`.
pub(super) fn format_signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if text == "-0.00" { "+0.00".to_owned() } else { text }
}

/// The unit of a statistic's differences: those of standard deviations, which are percentages, are percentage points.
fn difference_unit(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => " %",
        Statistic::Stddev => " points",
    }
}

/// Formats a difference with sign and unit.
pub(super) fn format_difference(statistic: Statistic, value: Option<f64>) -> String {
    value.map_or(NO_VALUE.to_owned(), |value| format!("{}{}", format_signed(value), difference_unit(statistic)))
}

/// Unescapes an identifier for people; those of run-perf have no escapes.
pub(super) fn readable_id(id: &str) -> String {
    let is_run_perf = id.split_once(':').is_some_and(|(_, case)| case.starts_with("./"));
    if is_run_perf { id.to_owned() } else { unescape_lossy(id) }
}

/// Unescapes the case of a check for people.
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

/// The values of a check in the first and the last build.
pub(super) fn side_figures(check: &CheckResult) -> [String; 2] {
    [check.before, check.after].map(|number| format_figure(number, check.value_unit.as_ref()))
}

/// Formats a number with up to six digits.
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

/// The tone of a decision.
pub(super) fn tone(decided: FinalVerdict) -> Tone {
    match decided {
        FinalVerdict::Gain | FinalVerdict::MinorGain => Tone::Good,
        FinalVerdict::Equal => Tone::Plain,
        FinalVerdict::MinorLoss | FinalVerdict::Differs | FinalVerdict::Inconclusive => Tone::Doubtful,
        FinalVerdict::Loss | FinalVerdict::Missing | FinalVerdict::Invalid | FinalVerdict::Incomparable => Tone::Bad,
    }
}

/// Explains the decision about a check in a sentence or two.
pub(super) fn explain_check(check: &CheckResult) -> String {
    incomparable_reason(check).unwrap_or_else(|| {
        let explanation = explain(check);
        let [reference, judged] = side_figures(check);
        format!(
            "{} {reference} → {judged}, {} {}{}",
            check.statistic, explanation.difference, explanation.certainty, explanation.remarks
        )
    })
}

/// Explains the status of a group.
pub(super) fn explain_group(group: &CheckGroupResult) -> String {
    let checks = pluralize(group.members, "check");
    format!("{} % of ±{:.2} %, {checks}", format_signed(group.score), group.tolerance)
}

/// Like [`explain_check`], for use beside both values and the [`difference`].
pub(super) fn explain_briefly(check: &CheckResult) -> String {
    incomparable_reason(check).unwrap_or_else(|| {
        let explanation = explain(check);
        format!("{}{}", explanation.certainty, explanation.remarks)
    })
}

/// The difference of a check by the deciding method, in percent: the ratio of medians or the score.
pub(super) fn difference(check: &CheckResult) -> Option<f64> {
    match (check.decided_by, &check.statistics) {
        (ComparisonMethod::Statistical, Some(statistics)) if inconclusive_reason(check).is_none() => {
            statistics.ratio.map(|ratio| (ratio - 1.0) * 100.0)
        }
        _ => check.score,
    }
}

/// The reason why a check is inconclusive independent of its figures, if it is.
fn inconclusive_reason(check: &CheckResult) -> Option<&str> {
    check.reason.as_deref().filter(|_| check.final_verdict == FinalVerdict::Inconclusive)
}

fn incomparable_reason(check: &CheckResult) -> Option<String> {
    match check.final_verdict {
        FinalVerdict::Missing | FinalVerdict::Invalid if check.reason.is_some() => check.reason.clone(),
        FinalVerdict::Missing if check.before.is_none() && check.after.is_none() => Some("on one side only".to_owned()),
        FinalVerdict::Missing if check.before.is_none() => Some("not in the first build".to_owned()),
        FinalVerdict::Missing => Some("not in the last build".to_owned()),
        FinalVerdict::Invalid => Some("no valid value".to_owned()),
        FinalVerdict::Incomparable => Some(format!("different definitions: {}", describe_differences(check))),
        _ => None,
    }
}

/// The parts of an explanation.
struct Explanation {
    /// The difference, and the quantity that it is of.
    difference: String,
    /// The certainty of the difference, or the tolerance.
    certainty: String,
    /// Remarks.
    remarks: String,
}

fn explain(check: &CheckResult) -> Explanation {
    let differing =
        if check.differences.is_empty() { String::new() } else { format!("; {}", describe_differences(check)) };
    let disturbed = check.statistics.as_ref().map_or(String::new(), describe_disturbed);
    match (check.decided_by, &check.statistics) {
        (ComparisonMethod::Statistical, Some(statistics)) if inconclusive_reason(check).is_none() => {
            let interval = statistics.interval.map_or("no interval".to_owned(), |ci| {
                format!("[{}, {}]", format_signed((ci.low - 1.0) * 100.0), format_signed((ci.high - 1.0) * 100.0))
            });
            let [reference, judged] = statistics.n;
            let needs = statistics
                .required_samples
                .as_ref()
                .map_or(String::new(), |needs| format!("; {}", describe_needs(needs)));
            Explanation {
                // The values are means, but the ratio is of medians.
                difference: format!("ratio of medians {}", format_percent(difference(check))),
                certainty: format!(
                    "{interval} of ±{} %, {reference} and {judged} {}",
                    format_value(Some((statistics.threshold * 100.0).round() / 100.0)),
                    statistics.observations
                ),
                remarks: describe_noise(check.final_verdict, statistics.noise.as_ref())
                    + &needs
                    + &disturbed
                    + &differing,
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
            Explanation {
                difference: format_difference(check.statistic, difference(check)),
                certainty: format!("of ±{}{}", format_value(Some(check.tolerance)), difference_unit(check.statistic)),
                remarks: parts + &reason + &disturbed + &differing,
            }
        }
    }
}

/// Describes how many samples of each side were disturbed, if any.
fn describe_disturbed(statistics: &StatisticalSummary) -> String {
    if statistics.disturbed.iter().flatten().all(|count| *count == 0) {
        return String::new();
    }
    let [reference, judged] =
        statistics.disturbed.map(|count| count.map_or("unknown".to_owned(), |count| count.to_string()));
    format!("; disturbed samples: {reference} and {judged}")
}

/// Describes the model of the noise between runs that was used, or why none was, if relevant.
fn describe_noise(decided: FinalVerdict, noise: Option<&NoiseModelUse>) -> String {
    let undecided = matches!(decided, FinalVerdict::Differs | FinalVerdict::Inconclusive);
    match noise {
        Some(NoiseModelUse::Applied { spread, runs }) => {
            format!("; spread between runs {:.2} % (learnt from {runs})", spread * 100.0)
        }
        Some(NoiseModelUse::Insufficient { why: reason }) if undecided => {
            format!("; the noise between runs is not known well enough: {reason}")
        }
        Some(NoiseModelUse::OtherDefinition) if undecided => {
            "; the noise between runs is known only for another definition".to_owned()
        }
        Some(NoiseModelUse::Unknown) if undecided => "; no model has the noise between runs".to_owned(),
        _ => String::new(),
    }
}

fn describe_needs(needs: &RequiredSamples) -> String {
    match needs.per_side {
        Some(each) if needs.is_minimum => format!("fewer than {each} {} a side cannot be conclusive", needs.unit),
        Some(each) => format!("about {each} {} a side would decide", needs.unit),
        None => format!("no number of {} would decide", needs.unit),
    }
}

fn describe_differences(check: &CheckResult) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let texts: Vec<String> = check
        .differences
        .iter()
        .map(|difference| format!("{} {} → {}", difference.name, side(&difference.before), side(&difference.after)))
        .collect();
    texts.join(", ")
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

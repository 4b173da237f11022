//! Figures and words of comparisons.

use wb_compare::comparison::{CheckResult, ComparisonMethod, FinalVerdict, StatisticalSummary};
use wb_compare::statistical::{NoiseUse, RequiredSamples};
use wb_compare::{CheckId, ComparisonResult, IdFormat, Statistic};
use wb_model::{Unit, unescape_lossy};

use crate::phrasing::NO_VALUE;
use crate::text::Tone;

/// What decides where no method is requested.
pub(super) const DEFAULT_METHOD_RULE: &str = "statistics decide from 6 samples a side; with fewer, tolerances decide on \
    run-perf's folders and nothing decides on other runs";

/// An error of a build, in a sentence.
pub(super) fn describe_error(build: &str, text: &str) -> String {
    format!("`{build}` failed: {text}")
}

/// The methods by which something regressed; none where nothing did.
pub(super) fn regressing_methods(outcome: &ComparisonResult) -> Option<String> {
    let names = outcome.regressed_by.iter().map(|method| match method {
        ComparisonMethod::Tolerance => "tolerance",
        ComparisonMethod::Statistical => "statistics",
    });
    Some(names.collect::<Vec<_>>().join(" and ")).filter(|names| !names.is_empty())
}

/// In percent, with its sign.
pub(super) fn format_percent(value: Option<f64>) -> String {
    value.map_or(NO_VALUE.to_owned(), |value| format!("{} %", format_signed(value)))
}

/// With its sign and two digits; what rounds to zero has no minus.
pub(super) fn format_signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if text == "-0.00" { "+0.00".to_owned() } else { text }
}

/// What differences of a statistic are in: deviations are percentages already.
fn difference_unit(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => " %",
        Statistic::Stddev => " points",
    }
}

/// A difference, with its sign.
pub(super) fn format_difference(statistic: Statistic, value: Option<f64>) -> String {
    value.map_or(NO_VALUE.to_owned(), |value| format!("{}{}", format_signed(value), difference_unit(statistic)))
}

/// An identifier as people read it; run-perf's have no escapes.
pub(super) fn readable_id(id: &str) -> String {
    let is_run_perf = id.split_once(':').is_some_and(|(_, case)| case.starts_with("./"));
    if is_run_perf { id.to_owned() } else { unescape_lossy(id) }
}

/// The case of a check as people read it.
pub(super) fn case_name(id: &CheckId<'_>) -> String {
    match id.naming {
        IdFormat::RunPerf => id.case.to_owned(),
        IdFormat::Weighbridge => unescape_lossy(id.case),
    }
}

/// A value in its unit; where that is not known, the number in up to six digits.
pub(super) fn format_figure(known: Option<f64>, unit: Option<&Unit>) -> String {
    match (known, unit) {
        (Some(known), Some(unit)) => unit.quantity(known).to_string(),
        (known, _) => format_value(known),
    }
}

/// The value of a check in the first build, and in the last.
pub(super) fn side_figures(check: &CheckResult) -> [String; 2] {
    [check.before, check.after].map(|known| format_figure(known, check.value_unit.as_ref()))
}

/// A number in up to six digits.
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

/// How it is to be seen.
pub(super) fn tone(decided: FinalVerdict) -> Tone {
    match decided {
        FinalVerdict::Gain | FinalVerdict::MinorGain => Tone::Good,
        FinalVerdict::Equal => Tone::Plain,
        FinalVerdict::MinorLoss | FinalVerdict::Differs | FinalVerdict::Inconclusive => Tone::Doubtful,
        FinalVerdict::Loss | FinalVerdict::Missing | FinalVerdict::Invalid | FinalVerdict::Incomparable => Tone::Bad,
    }
}

/// Why a check is what it is, in a sentence or two.
pub(super) fn explain_check(check: &CheckResult) -> String {
    incomparable_reason(check).unwrap_or_else(|| {
        let by = explain(check);
        let [src, dst] = side_figures(check);
        format!("{} {src} → {dst}, {} {}{}", check.statistic, by.difference, by.certainty, by.remarks)
    })
}

/// The same where both values and the [`difference`] stand beside it.
pub(super) fn explain_briefly(check: &CheckResult) -> String {
    incomparable_reason(check).unwrap_or_else(|| {
        let by = explain(check);
        format!("{}{}", by.certainty, by.remarks)
    })
}

/// By how much a check differs, as what decides sees it: the ratio of medians or the score, in percent.
pub(super) fn difference(check: &CheckResult) -> Option<f64> {
    match (check.decided_by, &check.statistics) {
        (ComparisonMethod::Statistical, Some(found)) if inconclusive_reason(check).is_none() => {
            found.ratio.map(|ratio| (ratio - 1.0) * 100.0)
        }
        _ => check.score,
    }
}

/// Why a check is inconclusive whatever its figures; none where it is not.
fn inconclusive_reason(check: &CheckResult) -> Option<&str> {
    check.reason.as_deref().filter(|_| check.final_verdict == FinalVerdict::Inconclusive)
}

fn incomparable_reason(check: &CheckResult) -> Option<String> {
    match check.final_verdict {
        FinalVerdict::Missing | FinalVerdict::Invalid if check.reason.is_some() => check.reason.clone(),
        FinalVerdict::Missing if check.before.is_none() && check.after.is_none() => {
            Some("on one side alone".to_owned())
        }
        FinalVerdict::Missing if check.before.is_none() => Some("not in the first build".to_owned()),
        FinalVerdict::Missing => Some("not in the last build".to_owned()),
        FinalVerdict::Invalid => Some("no number that counts".to_owned()),
        FinalVerdict::Incomparable => Some(format!("defined otherwise: {}", describe_differences(check))),
        _ => None,
    }
}

/// What decided.
struct Explanation {
    /// By how much, and of what.
    difference: String,
    /// How sure that is, or how much it may be.
    certainty: String,
    /// What else there is to say.
    remarks: String,
}

fn explain(check: &CheckResult) -> Explanation {
    let differing =
        if check.differences.is_empty() { String::new() } else { format!("; {}", describe_differences(check)) };
    let disturbed = check.statistics.as_ref().map_or(String::new(), describe_disturbed);
    match (check.decided_by, &check.statistics) {
        (ComparisonMethod::Statistical, Some(found)) if inconclusive_reason(check).is_none() => {
            let interval = found.interval.map_or("no interval".to_owned(), |ci| {
                format!("[{}, {}]", format_signed((ci.low - 1.0) * 100.0), format_signed((ci.high - 1.0) * 100.0))
            });
            let [src, dst] = found.n;
            let needs =
                found.required_samples.as_ref().map_or(String::new(), |needs| format!("; {}", describe_needs(needs)));
            Explanation {
                // The values are means; the ratio is not theirs.
                difference: format!("ratio of medians {}", format_percent(difference(check))),
                certainty: format!(
                    "{interval} of ±{} %, {src} and {dst} {}",
                    format_value(Some((found.threshold * 100.0).round() / 100.0)),
                    found.observations
                ),
                remarks: describe_noise(check.final_verdict, found.noise.as_ref()) + &needs + &disturbed + &differing,
            }
        }
        _ => {
            let parts: Vec<String> = match check.score_parts.as_slice() {
                [_] => Vec::new(),
                parts => {
                    let told = |(name, difference, _): &(String, Option<f64>, f64)| {
                        let told = difference
                            .map_or("infinite".to_owned(), |_| format_difference(check.statistic, *difference));
                        format!("{name} {told}")
                    };
                    parts.iter().map(told).collect()
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

/// How many samples of each side were disturbed, where any were.
fn describe_disturbed(found: &StatisticalSummary) -> String {
    if found.disturbed.iter().flatten().all(|count| *count == 0) {
        return String::new();
    }
    let [src, dst] = found.disturbed.map(|count| count.map_or("unknown".to_owned(), |count| count.to_string()));
    format!("; disturbed samples: {src} and {dst}")
}

/// What was known of the noise between runs, where it matters.
fn describe_noise(decided: FinalVerdict, of: Option<&NoiseUse>) -> String {
    let undecided = matches!(decided, FinalVerdict::Differs | FinalVerdict::Inconclusive);
    match of {
        Some(NoiseUse::Applied { spread, runs }) => format!("; runs lie {:.2} % apart ({runs} learnt)", spread * 100.0),
        Some(NoiseUse::Insufficient { why }) if undecided => {
            format!("; the noise of runs is not known well enough: {why}")
        }
        Some(NoiseUse::OtherDefinition) if undecided => "; the noise is known of another definition alone".to_owned(),
        Some(NoiseUse::Unknown) if undecided => "; no model knows the noise of runs".to_owned(),
        _ => String::new(),
    }
}

fn describe_needs(needs: &RequiredSamples) -> String {
    match needs.per_side {
        Some(each) if needs.is_minimum => format!("fewer than {each} {} a side tell nothing", needs.unit),
        Some(each) => format!("about {each} {} a side would decide", needs.unit),
        None => format!("no number of {} would decide", needs.unit),
    }
}

fn describe_differences(check: &CheckResult) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let told: Vec<String> = check
        .differences
        .iter()
        .map(|difference| format!("{} {} → {}", difference.name, side(&difference.before), side(&difference.after)))
        .collect();
    told.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_unit_where_that_is_known() {
        let (known, unit) = (Some(87_806_578_462.0), Unit::new("bit/s"));
        assert_eq!(format_figure(known, Some(&unit)), "87.8 Gbit/s");
        assert_eq!(format_figure(known, None), "87806578462");
    }

    #[test]
    fn escapes_are_read_in_our_own_identifiers_alone() {
        assert_eq!(
            readable_id("P/fio/0000:file=%2Fdev%2Fsda/latency/p99#mean"),
            "P/fio/0000:file=/dev/sda/latency/p99#mean"
        );
        assert_eq!(readable_id("P/fio/0000:./mix%20a/latency/lat.mean"), "P/fio/0000:./mix%20a/latency/lat.mean");
    }

    #[test]
    fn values_have_six_digits_at_most() {
        let told = [183_743.169, 12.3456789, 1.0, 0.0, 0.123_456_789, 0.000_001_234, -5.5];
        let told = told.map(|number| format_value(Some(number)));
        assert_eq!(told, ["183743", "12.3457", "1", "0", "0.123457", "1.234e-6", "-5.5"]);
    }
}

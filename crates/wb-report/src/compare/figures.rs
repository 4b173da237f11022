//! Figures and words of comparisons.

use wb_compare::outcome::{Checked, Decided, Method, Statistics};
use wb_compare::statistical::{Needs, NoiseUse};
use wb_compare::{CheckId, Naming, Outcome, Statistic};
use wb_model::{Unit, unescaped};

use crate::text::Tone;
use crate::words::NONE;

/// What decides where no method is requested.
pub(super) const BY_EVIDENCE: &str = "statistics decide from 6 samples a side; with fewer, tolerances decide on \
    run-perf's folders and nothing decides on other runs";

/// An error of a build, in a sentence.
pub(super) fn failed(build: &str, text: &str) -> String {
    format!("`{build}` failed: {text}")
}

/// The methods by which something regressed; none where nothing did.
pub(super) fn regressed_by(outcome: &Outcome) -> Option<String> {
    let names = outcome.regressed_by.iter().map(|method| match method {
        Method::Tolerance => "tolerance",
        Method::Statistical => "statistics",
    });
    Some(names.collect::<Vec<_>>().join(" and ")).filter(|names| !names.is_empty())
}

/// In percent, with its sign.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or(NONE.to_owned(), |value| format!("{} %", signed(value)))
}

/// With its sign and two digits; what rounds to zero has no minus.
pub(super) fn signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if text == "-0.00" { "+0.00".to_owned() } else { text }
}

/// What differences of a statistic are in: deviations are percentages already.
fn unit(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => " %",
        Statistic::Stddev => " points",
    }
}

/// A difference, with its sign.
pub(super) fn in_unit(statistic: Statistic, value: Option<f64>) -> String {
    value.map_or(NONE.to_owned(), |value| format!("{}{}", signed(value), unit(statistic)))
}

/// An identifier as people read it; run-perf's have no escapes.
pub(super) fn readable(id: &str) -> String {
    let is_run_perf = id.split_once(':').is_some_and(|(_, case)| case.starts_with("./"));
    if is_run_perf { id.to_owned() } else { unescaped(id) }
}

/// The case of a check as people read it.
pub(super) fn case_name(id: &CheckId<'_>) -> String {
    match id.naming {
        Naming::RunPerf => id.case.to_owned(),
        Naming::Weighbridge => unescaped(id.case),
    }
}

/// A value in its unit; where that is not known, the number in up to six digits.
pub(super) fn figure(known: Option<f64>, unit: Option<&Unit>) -> String {
    match (known, unit) {
        (Some(known), Some(unit)) => unit.figure(known).to_string(),
        (known, _) => value(known),
    }
}

/// The value of a check in the first build, and in the last.
pub(super) fn sides(check: &Checked) -> [String; 2] {
    [check.src, check.dst].map(|known| figure(known, check.value_unit.as_ref()))
}

/// A number in up to six digits.
pub(super) fn value(value: Option<f64>) -> String {
    let Some(value) = value else { return NONE.to_owned() };
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
pub(super) fn tone(decided: Decided) -> Tone {
    match decided {
        Decided::Gain | Decided::MinorGain => Tone::Good,
        Decided::Equal => Tone::Plain,
        Decided::MinorLoss | Decided::Differs | Decided::Inconclusive => Tone::Doubtful,
        Decided::Loss | Decided::Missing | Decided::Invalid | Decided::Incomparable => Tone::Bad,
    }
}

/// Why a check is what it is, in a sentence or two.
pub(super) fn why(check: &Checked) -> String {
    not_compared(check).unwrap_or_else(|| {
        let by = by(check);
        let [src, dst] = sides(check);
        format!("{} {src} → {dst}, {} {}{}", check.statistic, by.difference, by.sure, by.also)
    })
}

/// The same where both values and the [`difference`] stand beside it.
pub(super) fn why_beside(check: &Checked) -> String {
    not_compared(check).unwrap_or_else(|| {
        let by = by(check);
        format!("{}{}", by.sure, by.also)
    })
}

/// By how much a check differs, as what decides sees it: the ratio of medians or the score, in percent.
pub(super) fn difference(check: &Checked) -> Option<f64> {
    match (check.decided_by, &check.statistics) {
        (Method::Statistical, Some(found)) if too_few_samples(check).is_none() => {
            found.ratio.map(|ratio| (ratio - 1.0) * 100.0)
        }
        _ => check.score,
    }
}

/// Why a check is inconclusive whatever its figures; none where it is not.
fn too_few_samples(check: &Checked) -> Option<&str> {
    check.reason.as_deref().filter(|_| check.decided == Decided::Inconclusive)
}

fn not_compared(check: &Checked) -> Option<String> {
    match check.decided {
        Decided::Missing | Decided::Invalid if check.reason.is_some() => check.reason.clone(),
        Decided::Missing if check.src.is_none() && check.dst.is_none() => Some("on one side alone".to_owned()),
        Decided::Missing if check.src.is_none() => Some("not in the first build".to_owned()),
        Decided::Missing => Some("not in the last build".to_owned()),
        Decided::Invalid => Some("no number that counts".to_owned()),
        Decided::Incomparable => Some(format!("defined otherwise: {}", differences(check))),
        _ => None,
    }
}

/// What decided.
struct By {
    /// By how much, and of what.
    difference: String,
    /// How sure that is, or how much it may be.
    sure: String,
    /// What else there is to say.
    also: String,
}

fn by(check: &Checked) -> By {
    let differing = if check.differences.is_empty() { String::new() } else { format!("; {}", differences(check)) };
    let disturbed = check.statistics.as_ref().map_or(String::new(), disturbed);
    match (check.decided_by, &check.statistics) {
        (Method::Statistical, Some(found)) if too_few_samples(check).is_none() => {
            let interval = found.ci.map_or("no interval".to_owned(), |ci| {
                format!("[{}, {}]", signed((ci.low - 1.0) * 100.0), signed((ci.high - 1.0) * 100.0))
            });
            let [src, dst] = found.n;
            let needs = found.needs.as_ref().map_or(String::new(), |needs| format!("; {}", needed(needs)));
            By {
                // The values are means; the ratio is not theirs.
                difference: format!("ratio of medians {}", percent(difference(check))),
                sure: format!(
                    "{interval} of ±{} %, {src} and {dst} {}",
                    value(Some((found.threshold * 100.0).round() / 100.0)),
                    found.unit
                ),
                also: noise(check.decided, found.noise.as_ref()) + &needs + &disturbed + &differing,
            }
        }
        _ => {
            let parts: Vec<String> = match check.why.as_slice() {
                [_] => Vec::new(),
                parts => {
                    let told = |(name, difference, _): &(String, Option<f64>, f64)| {
                        let told = difference.map_or("infinite".to_owned(), |_| in_unit(check.statistic, *difference));
                        format!("{name} {told}")
                    };
                    parts.iter().map(told).collect()
                }
            };
            let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
            let reason = too_few_samples(check).map_or(String::new(), |reason| format!("; {reason}"));
            By {
                difference: in_unit(check.statistic, difference(check)),
                sure: format!("of ±{}{}", value(Some(check.tolerance)), unit(check.statistic)),
                also: parts + &reason + &disturbed + &differing,
            }
        }
    }
}

/// How many samples of each side were disturbed, where any were.
fn disturbed(found: &Statistics) -> String {
    if found.disturbed.iter().flatten().all(|count| *count == 0) {
        return String::new();
    }
    let [src, dst] = found.disturbed.map(|count| count.map_or("unknown".to_owned(), |count| count.to_string()));
    format!("; disturbed samples: {src} and {dst}")
}

/// What was known of the noise between runs, where it matters.
fn noise(decided: Decided, of: Option<&NoiseUse>) -> String {
    let undecided = matches!(decided, Decided::Differs | Decided::Inconclusive);
    match of {
        Some(NoiseUse::Used { spread, runs }) => format!("; runs lie {:.2} % apart ({runs} learnt)", spread * 100.0),
        Some(NoiseUse::TooThin { why }) if undecided => format!("; the noise of runs is not known well enough: {why}"),
        Some(NoiseUse::OtherDefinition) if undecided => "; the noise is known of another definition alone".to_owned(),
        Some(NoiseUse::Unknown) if undecided => "; no model knows the noise of runs".to_owned(),
        _ => String::new(),
    }
}

fn needed(needs: &Needs) -> String {
    match needs.each {
        Some(each) if needs.fewest => format!("fewer than {each} {} a side tell nothing", needs.unit),
        Some(each) => format!("about {each} {} a side would decide", needs.unit),
        None => format!("no number of {} would decide", needs.unit),
    }
}

fn differences(check: &Checked) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let told: Vec<String> = check
        .differences
        .iter()
        .map(|difference| format!("{} {} → {}", difference.name, side(&difference.src), side(&difference.dst)))
        .collect();
    told.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_unit_where_that_is_known() {
        let (known, unit) = (Some(87_806_578_462.0), Unit::new("bit/s"));
        assert_eq!(figure(known, Some(&unit)), "87.8 Gbit/s");
        assert_eq!(figure(known, None), "87806578462");
    }

    #[test]
    fn escapes_are_read_in_our_own_identifiers_alone() {
        assert_eq!(
            readable("P/fio/0000:file=%2Fdev%2Fsda/latency/p99#mean"),
            "P/fio/0000:file=/dev/sda/latency/p99#mean"
        );
        assert_eq!(readable("P/fio/0000:./mix%20a/latency/lat.mean"), "P/fio/0000:./mix%20a/latency/lat.mean");
    }

    #[test]
    fn values_have_six_digits_at_most() {
        let told = [183_743.169, 12.3456789, 1.0, 0.0, 0.123_456_789, 0.000_001_234, -5.5];
        let told = told.map(|number| value(Some(number)));
        assert_eq!(told, ["183743", "12.3457", "1", "0", "0.123457", "1.234e-6", "-5.5"]);
    }
}

//! Figures and words of comparisons.

use wb_compare::outcome::{Checked, Decided, Method};
use wb_compare::statistical::Needs;

use crate::text::Tone;
use crate::words::NONE;

/// In percent, with its sign.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or(NONE.to_owned(), |value| format!("{value:+.2} %"))
}

/// A value in its unit, in up to six digits.
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
    match check.decided {
        Decided::Missing if check.src.is_none() && check.dst.is_none() => return "on one side alone".to_owned(),
        Decided::Missing if check.src.is_none() => return "not in the first build".to_owned(),
        Decided::Missing => return "not in the last build".to_owned(),
        Decided::Invalid => return "no number that counts".to_owned(),
        Decided::Incomparable => return format!("defined otherwise: {}", differences(check)),
        _ => {}
    }
    let values = format!("{} {} → {}", check.statistic, value(check.src), value(check.dst));
    let by = match (check.decided_by, &check.statistics) {
        (Method::Statistical, Some(found)) => {
            let ratio = found.ratio.map_or(NONE.to_owned(), |ratio| format!("{:+.2} %", (ratio - 1.0) * 100.0));
            let interval = found.ci.map_or("no interval".to_owned(), |ci| {
                format!("[{:+.2}, {:+.2}]", (ci.low - 1.0) * 100.0, (ci.high - 1.0) * 100.0)
            });
            let [src, dst] = found.n;
            // The values are means; the ratio is not theirs.
            let needs = found.needs.as_ref().map_or(String::new(), |needs| format!("; {}", needed(needs)));
            format!("ratio of medians {ratio} {interval}, {src} and {dst} {}{needs}", found.unit)
        }
        _ => {
            let parts: Vec<String> = match check.why.as_slice() {
                [_] => Vec::new(),
                parts => parts.iter().map(|(name, difference, _)| format!("{name} {difference:+.2} %")).collect(),
            };
            let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
            format!("{} of ±{} %{parts}", percent(check.score), value(Some(check.tolerance)))
        }
    };
    let differing = if check.differences.is_empty() { String::new() } else { format!("; {}", differences(check)) };
    format!("{values}, {by}{differing}")
}

fn needed(needs: &Needs) -> String {
    match needs.each {
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
    fn values_have_six_digits_at_most() {
        let told = [183_743.169, 12.3456789, 1.0, 0.0, 0.123_456_789, 0.000_001_234, -5.5];
        let told = told.map(|number| value(Some(number)));
        assert_eq!(told, ["183743", "12.3457", "1", "0", "0.123457", "1.234e-6", "-5.5"]);
    }
}

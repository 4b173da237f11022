//! Formats figures of network runs; a missing figure is a dash.

use wb_model::Unit;
use wb_results::net::{GroupResult, LatencySummary, RunResult};

use crate::phrasing::NO_VALUE;
use crate::text::Style;

pub(super) const LATENCY_COLUMNS: [&str; 8] = ["mean", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

pub(super) fn format_figure(value: Option<f64>, unit: &str) -> String {
    let finite = value.filter(|value| value.is_finite());
    finite.map_or_else(|| NO_VALUE.to_owned(), |value| Unit::new(unit).quantity(value).to_string())
}

/// Formats a throughput in bits per second.
pub(super) fn format_bit_rate(bytes_per_second: Option<f64>) -> String {
    format_figure(bytes_per_second.map(|rate| rate * 8.0), "bit/s")
}

/// Formats a throughput in bytes per second.
pub(super) fn format_byte_rate(rate: Option<f64>) -> String {
    format_figure(rate.map(|rate| rate / 1e6), "MB/s")
}

pub(super) fn format_bytes(amount: u64) -> String {
    format_figure(Some(amount as f64), "B")
}

pub(super) fn format_nanos(time: Option<f64>) -> String {
    format_figure(time, "ns")
}

/// Formats a percentage, with a resolution of a hundredth of a percent.
pub(super) fn format_percent(share: Option<f64>) -> String {
    match share {
        Some(tiny) if tiny != 0.0 && tiny.abs() < 0.01 => "<0.01 %".to_owned(),
        share => format_figure(share, "%"),
    }
}

/// The quotient of two numbers; `None` if the denominator is not positive.
pub(super) fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}

pub(super) fn latency_figures(latency: Option<&LatencySummary>) -> Vec<String> {
    let Some(latency) = latency else { return vec![NO_VALUE.to_owned(); LATENCY_COLUMNS.len()] };
    let p = latency.percentiles;
    // The mean is one as soon as the maximum is.
    let figures = [
        (1.0, latency.mean_ns),
        (0.0, p.min_ns as f64),
        (0.5, p.p50_ns as f64),
        (0.9, p.p90_ns as f64),
        (0.99, p.p99_ns as f64),
        (0.999, p.p99_9_ns as f64),
        (0.9999, p.p99_99_ns as f64),
        (1.0, p.max_ns as f64),
    ];
    figures.into_iter().map(|(quantile, time)| format_bound(latency.is_at_least(quantile), time)).collect()
}

/// Formats a time in nanoseconds, marked if it is a lower bound.
pub(super) fn format_bound(is_at_least: bool, time: f64) -> String {
    let sign = if is_at_least { "≥" } else { "" };
    format!("{sign}{}", format_nanos(Some(time)))
}

/// Reports that a rate was not reached. It comes first, since every other figure has to be read with it.
pub(super) fn rate_shortfall(result: &RunResult, style: Style) -> String {
    result.rate_shortfall().map(|shortfall| style.indent(2, &shortfall)).unwrap_or_default()
}

/// Removes the column of the minimum, so that the others with a name fit into eighty characters.
pub(super) fn without_min<T>(columns: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    columns.into_iter().enumerate().filter(|(index, _)| *index != 1).map(|(_, column)| column)
}

/// Qualifies a name with its group's name if there are several groups.
pub(super) fn qualified_name(result: &RunResult, group: &GroupResult, name: &str) -> String {
    if result.groups.len() > 1 { format!("{} {name}", group.name) } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_figures_are_a_dash() {
        assert_eq!(
            [format_bit_rate(None), format_figure(Some(f64::NAN), "s"), format_nanos(Some(f64::INFINITY))],
            ["–", "–", "–"]
        );
        assert_eq!(ratio(1.0, 0.0), None);
        assert_eq!(
            [format_percent(Some(0.0)), format_percent(Some(-0.0013)), format_percent(Some(12.345))],
            ["0 %", "<0.01 %", "12.3 %"]
        );
    }

    #[test]
    fn throughput_is_formatted_in_bits_and_bytes() {
        assert_eq!(
            (format_bit_rate(Some(1.25e9)), format_byte_rate(Some(1.25e9))),
            ("10 Gbit/s".into(), "1.25 GB/s".into())
        );
    }
}

//! Figures of network runs as they are shown; a dash where there is none.

use wb_model::Unit;
use wb_net::result::{GroupResult, LatencySummary, RunResult};

use crate::phrasing::NO_VALUE;

/// The columns of a latency.
pub(super) const LATENCY_COLUMNS: [&str; 8] = ["mean", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// In its unit.
pub(super) fn format_figure(value: Option<f64>, unit: &str) -> String {
    let known = value.filter(|value| value.is_finite());
    known.map_or_else(|| NO_VALUE.to_owned(), |value| Unit::new(unit).quantity(value).to_string())
}

/// A throughput as networks have it.
pub(super) fn format_bit_rate(bytes_per_second: Option<f64>) -> String {
    format_figure(bytes_per_second.map(|rate| rate * 8.0), "bit/s")
}

/// A throughput as programs have it.
pub(super) fn format_byte_rate(rate: Option<f64>) -> String {
    format_figure(rate.map(|rate| rate / 1e6), "MB/s")
}

/// An amount of data.
pub(super) fn format_bytes(amount: u64) -> String {
    format_figure(Some(amount as f64), "B")
}

/// A time in nanoseconds.
pub(super) fn format_nanos(time: Option<f64>) -> String {
    format_figure(time, "ns")
}

/// A share; a hundredth of a percent is as fine as anybody looks.
pub(super) fn format_percent(share: Option<f64>) -> String {
    match share {
        Some(tiny) if tiny != 0.0 && tiny.abs() < 0.01 => "<0.01 %".to_owned(),
        share => format_figure(share, "%"),
    }
}

/// One by another, unless that is nothing.
pub(super) fn ratio(one: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| one / other)
}

/// The columns of [`LATENCY`].
pub(super) fn latency_figures(latency: Option<&LatencySummary>) -> Vec<String> {
    let Some(latency) = latency else { return vec![NO_VALUE.to_owned(); LATENCY_COLUMNS.len()] };
    let p = latency.percentiles;
    let quantiles = [p.min_ns, p.p50_ns, p.p90_ns, p.p99_ns, p.p99_9_ns, p.p99_99_ns, p.max_ns];
    let all = std::iter::once(latency.mean_ns).chain(quantiles.map(|quantile| quantile as f64));
    all.map(|time| format_nanos(Some(time))).collect()
}

/// Those columns without the shortest, which fit into eighty with a name before them.
pub(super) fn without_min<T>(columns: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    columns.into_iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, column)| column)
}

/// How something of a group is called: with the group's name where there are several.
pub(super) fn qualified_name(result: &RunResult, group: &GroupResult, name: &str) -> String {
    if result.groups.len() > 1 { format!("{} {name}", group.name) } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_figure_is_a_dash() {
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
    fn throughput_is_told_in_bits_and_in_bytes() {
        assert_eq!(
            (format_bit_rate(Some(1.25e9)), format_byte_rate(Some(1.25e9))),
            ("10 Gbit/s".into(), "1.25 GB/s".into())
        );
    }
}

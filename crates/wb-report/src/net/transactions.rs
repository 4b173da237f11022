//! Tables of transactions: throughput, and latency of rounds.

use wb_results::net::{LatencySummary, RunResult, TransactionResult};

use super::figures::{
    LATENCY_COLUMNS, format_bit_rate, format_bytes, format_figure, format_nanos, latency_figures, qualified_name,
};
use crate::phrasing::NO_VALUE;
use crate::text::{Style, Table, figure_columns, figure_row};

pub(super) fn throughput_table(result: &RunResult, style: Style) -> String {
    let mut table = Table::new(&figure_columns("", &["time", "received", "throughput", "operations", "per second"]));
    for (name, transaction) in named_transactions(result) {
        let has_traffic = transaction.sent_bytes + transaction.received_bytes > 0;
        let or_none = |text: String| if has_traffic { text } else { NO_VALUE.to_owned() };
        let figures = [
            format_figure(Some(transaction.seconds).filter(|seconds| *seconds > 0.0), "s"),
            or_none(format_bytes(transaction.received_bytes)),
            or_none(format_bit_rate(transaction.throughput)),
            transaction.operations.to_string(),
            format_figure(transaction.operations_per_second, "/s"),
        ];
        table.row(figure_row(format!("  {name}"), figures));
    }
    style.heading("transactions") + &table.draw(style)
}

/// Renders the latency of rounds: with a target rate the response times, then the service times and the lag.
pub(super) fn latency_table(result: &RunResult, style: Style) -> String {
    let columns: Vec<&str> = std::iter::once("rounds").chain(LATENCY_COLUMNS).collect();
    let mut table = Table::new(&figure_columns("", &columns));
    let mut late = String::new();
    for (name, transaction) in named_transactions(result) {
        let count = transaction.rounds.map_or_else(|| NO_VALUE.to_owned(), |rounds| rounds.to_string());
        let headline = transaction.response.as_ref().or(transaction.latency.as_ref());
        table.row(figure_row(format!("  {name}"), std::iter::once(count).chain(latency_figures(headline))));
        if transaction.response.is_some() {
            table.row(paced_row("service", transaction.latency.as_ref()));
            table.row(paced_row("lag", transaction.lag.as_ref()));
        }
        late += &lag_remark(&name, transaction.lag.as_ref(), style);
    }
    style.heading("rounds of transactions") + &table.draw(style) + &late
}

/// A row for latencies that exist only with a target rate.
fn paced_row(label: &str, times: Option<&LatencySummary>) -> Vec<crate::text::TableCell> {
    let count = times.map_or_else(|| NO_VALUE.to_owned(), |times| times.count.to_string());
    figure_row(format!("    {label}"), std::iter::once(count).chain(latency_figures(times)))
}

/// Describes by how much the generator lagged behind its target rate.
pub(super) fn lag_remark(name: &str, lag: Option<&LatencySummary>, style: Style) -> String {
    let Some(lag) = lag else { return String::new() };
    let time = |time: u64| format_nanos(Some(time as f64));
    let (mean, p99, max) =
        (format_nanos(Some(lag.mean_ns)), time(lag.percentiles.p99_ns), time(lag.percentiles.max_ns));
    style.remark(name, &format!("the generator lagged by {mean} on average, {p99} at p99, {max} at most"))
}

fn named_transactions(result: &RunResult) -> impl Iterator<Item = (String, &TransactionResult)> {
    let parts = result.groups.iter().flat_map(|group| group.transactions.iter().map(move |part| (group, part)));
    parts.map(|(group, transaction)| (qualified_name(result, group, &transaction.name), transaction))
}

//! Transactions: a line of each, and how long their rounds took.

use wb_net::result::{LatencySummary, RunResult, TransactionResult};

use super::figures::{LATENCY, bits, bytes, figure, latency, nanos, place};
use crate::text::{Style, Table, heads_of, named};
use crate::words::NONE;

/// A line of each.
pub(super) fn lines(result: &RunResult, style: Style) -> String {
    let mut table = Table::new(&heads_of("", &["time", "received", "throughput", "operations", "per second"]));
    for (name, transaction) in all(result) {
        let moves = transaction.sent_bytes + transaction.received_bytes > 0;
        let or_none = |text: String| if moves { text } else { NONE.to_owned() };
        let figures = [
            figure(Some(transaction.seconds).filter(|seconds| *seconds > 0.0), "s"),
            or_none(bytes(transaction.received_bytes)),
            or_none(bits(transaction.throughput)),
            transaction.operations.to_string(),
            figure(transaction.operations_per_second, "/s"),
        ];
        table.row(named(format!("  {name}"), figures));
    }
    style.section("transactions") + &table.draw(style)
}

/// How long rounds took, and how late they were where a rate wanted them.
pub(super) fn latencies(result: &RunResult, style: Style) -> String {
    let columns: Vec<&str> = std::iter::once("rounds").chain(LATENCY).collect();
    let mut table = Table::new(&heads_of("", &columns));
    let mut late = String::new();
    for (name, transaction) in all(result) {
        let count = transaction.rounds.map_or_else(|| NONE.to_owned(), |rounds| rounds.to_string());
        table.row(named(format!("  {name}"), std::iter::once(count).chain(latency(transaction.latency.as_ref()))));
        if transaction.response.is_some() {
            table.row(paced("response", transaction.response.as_ref()));
            table.row(paced("lag", transaction.lag.as_ref()));
        }
        late += &lateness(&name, transaction.lag.as_ref(), style);
    }
    style.section("rounds of transactions") + &table.draw(style) + &late
}

/// A row for what there is with a rate only.
fn paced(what: &str, times: Option<&LatencySummary>) -> Vec<crate::text::Cell> {
    let count = times.map_or_else(|| NONE.to_owned(), |times| times.count.to_string());
    named(format!("    {what}"), std::iter::once(count).chain(latency(times)))
}

/// By how much the generator fell behind its rate, in words.
pub(super) fn lateness(name: &str, lag: Option<&LatencySummary>, style: Style) -> String {
    let Some(lag) = lag else { return String::new() };
    let time = |time: u64| nanos(Some(time as f64));
    let (mean, p99, max) = (nanos(Some(lag.mean_ns)), time(lag.percentiles.p99_ns), time(lag.percentiles.max_ns));
    style.remark(name, &format!("the generator was late by {mean} on average, {p99} at p99, {max} at most"))
}

fn all(result: &RunResult) -> impl Iterator<Item = (String, &TransactionResult)> {
    let parts = result.groups.iter().flat_map(|group| group.transactions.iter().map(move |part| (group, part)));
    parts.map(|(group, transaction)| (place(result, group, &transaction.name), transaction))
}

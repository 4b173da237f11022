//! Table of several combinations of a preset's parameters.

use wb_net::engine::usage::Usage;
use wb_net::result::{RunResult, RunStatus};

use super::figures::{format_bit_rate, format_figure, format_nanos, format_percent, ratio};
use crate::text::{Align, Style, Table, TableCell};

/// A combination of parameters with its result.
#[derive(Debug)]
pub struct Combination<'a> {
    /// The protocol's name.
    pub protocol: String,
    /// The formatted size of messages.
    pub size: String,
    /// Number of concurrent connections.
    pub instances: u32,
    /// The result.
    pub result: &'a RunResult,
}

/// Renders a row for each combination.
pub fn combinations(all: &[Combination<'_>], style: Style) -> String {
    use Align::{Left, Right};
    let lossy = all.iter().any(|combination| sent_datagrams(combination.result) > 0);
    let heads = [("", Left), ("throughput", Right), ("rounds", Right), ("p50", Right), ("p99", Right)];
    let heads = heads.into_iter().chain(lossy.then_some(("lost", Right)));
    let heads: Vec<(&str, Align)> = heads.chain([("CPU/GB", Right), ("outcome", Left)]).collect();
    let mut table = Table::new(&heads);
    for combination in all {
        let totals = &combination.result.totals;
        let quantiles = totals.headline_latency().map(|latency| latency.percentiles);
        let lost = ratio(totals.lost_datagrams as f64 * 100.0, sent_datagrams(combination.result) as f64);
        let mut cells = vec![
            format!("{}, {}, n={}", combination.protocol, combination.size, combination.instances),
            format_bit_rate(totals.throughput),
            format_figure(totals.rounds_per_second, "/s"),
            format_nanos(quantiles.map(|quantiles| quantiles.p50_ns as f64)),
            format_nanos(quantiles.map(|quantiles| quantiles.p99_ns as f64)),
        ];
        cells.extend(lossy.then(|| format_percent(lost)));
        cells.push(format_figure(ratio(cpu_seconds(combination.result), totals.received_bytes as f64 / 1e9), "s"));
        cells.push(outcome_word(&combination.result.outcome).to_owned());
        table.row(cells.into_iter().map(TableCell::from).collect());
    }
    table.draw(style)
}

fn sent_datagrams(result: &RunResult) -> u64 {
    let datagrams = result.groups.iter().filter_map(|group| group.datagrams);
    datagrams.map(|datagrams| datagrams.client_sent + datagrams.server_sent).sum()
}

/// CPU seconds of the strands on both sides.
fn cpu_seconds(result: &RunResult) -> f64 {
    let mut sum = Usage::default();
    result.machines.iter().for_each(|machine| sum.add(machine.usage));
    (sum.user_ns + sum.system_ns) as f64 / 1e9
}

fn outcome_word(outcome: &RunStatus) -> &'static str {
    match outcome {
        RunStatus::Completed => "completed",
        RunStatus::Truncated => "truncated",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Unsupported { .. } => "unsupported",
        RunStatus::Failed { .. } => "failed",
        RunStatus::Lost { .. } => "lost",
    }
}

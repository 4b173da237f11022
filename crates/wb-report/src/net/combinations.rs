//! Table of several combinations of a preset's parameters.

use wb_results::net::Usage;
use wb_results::net::{LatencySummary, Percentiles, RunResult, RunStatus};

use super::figures::{format_bit_rate, format_bound, format_figure, format_percent, ratio};
use crate::phrasing::NO_VALUE;
use crate::text::{Align, Style, Table, TableCell};

/// A combination of parameters with its result.
#[derive(Debug)]
pub struct Combination<'a> {
    pub protocol: String,
    pub size: String,
    /// Number of concurrent connections.
    pub instances: u32,
    pub result: &'a RunResult,
}

pub fn combinations(all: &[Combination<'_>], style: Style) -> String {
    use Align::{Left, Right};
    let lossy = all.iter().any(|combination| sent_datagrams(combination.result) > 0);
    let heads = [("", Left), ("throughput", Right), ("rounds", Right), ("p50", Right), ("p99", Right)];
    let heads = heads.into_iter().chain(lossy.then_some(("lost", Right)));
    let heads: Vec<(&str, Align)> = heads.chain([("CPU/GB", Right), ("outcome", Left)]).collect();
    let mut table = Table::new(&heads);
    for combination in all {
        let totals = &combination.result.totals;
        let latency = totals.headline_latency();
        let quantile = |fraction: f64, part: fn(&Percentiles) -> u64| {
            let format = |latency: &LatencySummary| {
                format_bound(latency.is_at_least(fraction), part(&latency.percentiles) as f64)
            };
            latency.map_or_else(|| NO_VALUE.to_owned(), format)
        };
        let lost = ratio(totals.lost_datagrams as f64 * 100.0, sent_datagrams(combination.result) as f64);
        let mut cells = vec![
            format!("{}, {}, n={}", combination.protocol, combination.size, combination.instances),
            format_bit_rate(totals.throughput),
            format_figure(totals.rounds_per_second, "/s"),
            quantile(0.5, |percentiles| percentiles.p50_ns),
            quantile(0.99, |percentiles| percentiles.p99_ns),
        ];
        cells.extend(lossy.then(|| format_percent(lost)));
        cells.push(format_figure(ratio(cpu_seconds(combination.result), totals.received_bytes as f64 / 1e9), "s"));
        cells.push(outcome_word(combination.result).to_owned());
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
    sum.cpu_ns() as f64 / 1e9
}

fn outcome_word(result: &RunResult) -> &'static str {
    match result.outcome {
        RunStatus::Completed if result.rate_shortfall().is_some() => "rate not reached",
        RunStatus::Completed => "completed",
        RunStatus::Truncated => "truncated",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Unsupported { .. } => "unsupported",
        RunStatus::Failed { .. } => "failed",
        RunStatus::Lost { .. } => "lost",
    }
}

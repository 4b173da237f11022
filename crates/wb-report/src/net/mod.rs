//! Renders network runs: results for the terminal ([`result_text`], [`mod@preset`], [`mod@combinations`]), progress
//! lines ([`progress`]), and XML ([`xml`]).
//!
//! All figures are from the [`RunResult`]; a missing one is a dash.

mod combinations;
mod connections;
mod figures;
mod flowops;
mod groups;
pub mod iperf3;
mod machines;
mod netstat;
mod preset;
pub mod progress;
pub mod sweep;
mod threads;
mod total;
mod transactions;
pub mod uperf;
pub mod xml;

use wb_results::net::RunResult;

use crate::text::{Style, nested_latency_table};

pub use combinations::{Combination, combinations};
pub use preset::preset;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultSections {
    /// Groups, with the resource usage of their strands and their connections.
    pub groups: bool,
    /// Strands.
    pub threads: bool,
    pub transactions: bool,
    pub flowops: bool,
    /// Counters of network interfaces.
    pub netstat: bool,
    /// Percentiles per interval.
    pub nested: bool,
}

/// Renders a run; the total comes last, where users look first.
pub fn result_text(result: &RunResult, sections: ResultSections, style: Style) -> String {
    let detailed = [
        (true, figures::rate_shortfall as fn(&RunResult, Style) -> String),
        (sections.threads, threads::strands_table),
        (sections.flowops, flowops::flowop_tables),
        (sections.transactions, transactions::latency_table),
        (sections.groups, groups::group_tables),
        (sections.groups, connections::connections_table),
        (sections.netstat, netstat::netstat_tables),
        (sections.nested, nested_latency),
        (true, transactions::throughput_table),
        (true, machines::machines_table),
        (true, total::totals_text),
        (true, notes),
    ];
    detailed.into_iter().filter(|(is_selected, _)| *is_selected).map(|(_, draw)| draw(result, style)).collect()
}

pub fn flowops_text(result: &RunResult, style: Style) -> String {
    flowops::flowop_tables(result, style)
}

fn nested_latency(result: &RunResult, style: Style) -> String {
    let mut out = String::new();
    for group in &result.groups {
        for transaction in group.transactions.iter().filter(|transaction| transaction.is_data_phase) {
            let Some(table) = &transaction.nested else { continue };
            let interval = figures::format_figure(Some(table.interval_seconds), "s");
            let name = figures::qualified_name(result, group, &transaction.name);
            out += &style.heading(&format!("{name}: rounds of each {interval}, over {} of them", table.intervals));
            let floats = |values: &[u64]| values.iter().map(|value| *value as f64).collect();
            let rows =
                table.rows.iter().map(|row| (row.percentile, row.cumulative_ns as f64, floats(&row.over_intervals_ns)));
            out += &nested_latency_table(&table.over_intervals, rows, style);
        }
    }
    out
}

fn notes(result: &RunResult, style: Style) -> String {
    result.notes.iter().map(|note| style.indent(0, &format!("note: {note}"))).collect()
}

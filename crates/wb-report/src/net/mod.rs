//! Network runs: what a terminal shows of one ([`result`], [`preset`], [`combinations`]), the lines while it goes
//! ([`live`]), and a file for other programs ([`xml`]).
//!
//! Every figure stands in the [`RunResult`] already; where it does not, there is a dash.

mod combinations;
mod connections;
mod figures;
mod flowops;
mod groups;
mod machines;
mod netstat;
mod preset;
pub mod progress;
mod threads;
mod total;
mod transactions;
pub mod xml;

use wb_net::result::RunResult;

use crate::text::{Style, nested_latency_table};

pub use combinations::{Combination, combinations};
pub use preset::preset;

/// What is to be told besides the total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultSections {
    /// Groups, with what their strands and connections used.
    pub groups: bool,
    /// Strands.
    pub threads: bool,
    /// Transactions, with latencies.
    pub transactions: bool,
    /// Flowops, on both sides.
    pub flowops: bool,
    /// What network interfaces counted.
    pub netstat: bool,
    /// Percentiles of each interval by itself.
    pub nested: bool,
}

/// A run, the total last, where it is looked for.
pub fn result_text(result: &RunResult, wanted: ResultSections, style: Style) -> String {
    let detailed = [
        (wanted.threads, threads::strands_table as fn(&RunResult, Style) -> String),
        (wanted.flowops, flowops::flowop_tables),
        (wanted.transactions, transactions::latency_table),
        (wanted.groups, groups::group_tables),
        (wanted.groups, connections::connections_table),
        (wanted.netstat, netstat::netstat_tables),
        (wanted.nested, nested_latency),
        (true, transactions::throughput_table),
        (true, machines::machines_table),
        (true, total::totals_text),
        (true, notes),
    ];
    detailed.into_iter().filter(|(wanted, _)| *wanted).map(|(_, draw)| draw(result, style)).collect()
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

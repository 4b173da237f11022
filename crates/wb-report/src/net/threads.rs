//! Table of the client's strands.

use wb_results::net::RunResult;

use super::figures::{format_bytes, format_nanos};
use crate::text::{Style, Table, figure_columns, figure_row};

/// Renders the counts of each strand; quantiles exist only for all strands of a group together.
pub(super) fn strands_table(result: &RunResult, style: Style) -> String {
    let columns = ["operations", "rounds", "sent", "received", "mean", "min", "max"];
    let mut table = Table::new(&figure_columns("", &columns));
    for group in &result.groups {
        table.heading(&format!("  {}", group.name));
        for thread in &group.strands {
            let figures = [
                thread.operations.to_string(),
                thread.rounds.to_string(),
                format_bytes(thread.sent_bytes),
                format_bytes(thread.received_bytes),
                format_nanos(thread.mean_ns),
                format_nanos(thread.min_ns.map(|time| time as f64)),
                format_nanos(thread.max_ns.map(|time| time as f64)),
            ];
            table.row(figure_row(format!("    {}", thread.strand), figures));
        }
    }
    style.heading("strands, and the rounds of each") + &table.draw(style)
}

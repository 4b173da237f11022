//! Strands of the client.

use wb_net::result::RunResult;

use super::figures::{bytes, nanos};
use crate::text::{Style, Table, heads_of, named};

/// What each did; quantiles are kept for all strands of a group together.
pub(super) fn threads(result: &RunResult, style: Style) -> String {
    let columns = ["operations", "rounds", "sent", "received", "mean", "min", "max"];
    let mut table = Table::new(&heads_of("", &columns));
    for group in &result.groups {
        table.heading(&format!("  {}", group.name));
        for thread in &group.threads {
            let figures = [
                thread.operations.to_string(),
                thread.rounds.to_string(),
                bytes(thread.sent_bytes),
                bytes(thread.received_bytes),
                nanos(thread.mean_ns),
                nanos(thread.min_ns.map(|time| time as f64)),
                nanos(thread.max_ns.map(|time| time as f64)),
            ];
            table.row(named(format!("    {}", thread.strand), figures));
        }
    }
    style.section("strands, and the rounds of each") + &table.draw(style)
}

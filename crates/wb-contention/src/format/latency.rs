//! Latencies of I/O.

use super::Detail;
use crate::answer::IoLatencies;

/// The nested tables, and a line each.
pub(super) fn text(latencies: &IoLatencies, detail: Detail) -> String {
    let mut text = String::new();
    if detail == Detail::Full {
        text.push_str("IO latency distribution over the seconds (mean: arithmetic):\n\n");
        for (title, table) in [("READ", &latencies.read), ("WRITE", &latencies.write)] {
            if let Some(table) = table {
                text += &format!("{}\n", table.render(title));
            }
        }
    }
    let line = |table: &Option<crate::latency_table::LatencyTable>| {
        let table = table.as_ref()?;
        let idle = if table.idle_seconds > 0 { format!(" idle={}s", table.idle_seconds) } else { String::new() };
        Some(format!("{}{idle}", table.summary()))
    };
    let none = || "none".to_owned();
    text += &format!("IO latency: R {}\n", line(&latencies.read).unwrap_or_else(none));
    text += &format!("            W {}\n", line(&latencies.write).unwrap_or_else(none));
    text
}

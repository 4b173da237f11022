//! Latencies of I/O.

use super::Detail;
use crate::answer::IoLatencies;
use crate::latency_table::LatencyTable;

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
    let line = |table: &Option<LatencyTable>| {
        let table = table.as_ref()?;
        let idle = if table.idle_seconds > 0 { format!(" idle={}s", table.idle_seconds) } else { String::new() };
        Some(format!("{}{idle}", table.summary()))
    };
    let none = || "none".to_owned();
    text += &format!("IO latency: R {}\n", line(&latencies.read).unwrap_or_else(none));
    text += &format!("            W {}\n", line(&latencies.write).unwrap_or_else(none));
    if latencies.uncounted > 0 {
        text += &format!("            {} requests were not counted by the kernel\n", latencies.uncounted);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_were_not_counted_are_reported() {
        let mut latencies = IoLatencies { read: LatencyTable::of([[(1000, 1)].as_slice()]), ..IoLatencies::default() };
        assert!(!text(&latencies, Detail::Summary).contains("counted"));
        latencies.uncounted = 3;
        assert!(
            text(&latencies, Detail::Summary).ends_with("\n            3 requests were not counted by the kernel\n")
        );
    }
}

//! Latencies of I/O.

use super::Detail;
use crate::answer::IoLatencies;
use crate::figures::percent;
use crate::latency_table::LatencyTable;

/// Part of the requests that may be in no table: with more, the p99 may be another.
const UNCOUNTED_MAX: f64 = 0.01;

pub(crate) fn text(latencies: &IoLatencies, detail: Detail) -> String {
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
        let part = latencies.uncounted_part();
        text += &format!("            {} requests ({}%) are in no table", latencies.uncounted, percent(part));
        if part > UNCOUNTED_MAX {
            text += &format!(", more than {}%: they may be the slowest", percent(UNCOUNTED_MAX));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_were_not_counted_are_reported() {
        let mut latencies = IoLatencies { read: LatencyTable::new([[(1000, 1)].as_slice()]), ..IoLatencies::default() };
        assert!(!text(&latencies, Detail::Summary).contains("in no table"));
        let last_line = |latencies: &IoLatencies| text(latencies, Detail::Summary).lines().last().unwrap().to_owned();
        (latencies.uncounted, latencies.counted) = (3, 997);
        assert_eq!(last_line(&latencies), "            3 requests (0.30%) are in no table");
        latencies.uncounted = 60;
        let expected = "            60 requests (5.68%) are in no table, more than 1.00%: they may be the slowest";
        assert_eq!(last_line(&latencies), expected);
    }
}

//! The total of a run's data phase.

use wb_model::counted;
use wb_net::result::{RunResult, Totals};

use super::figures::{LATENCY, bits, bytes, bytes_per_second, figure, latency, narrow, percent};
use crate::text::{Style, Table, definitions, heads_of, named};

/// What was moved in the data phase, how fast, and what went wrong.
pub(super) fn total(result: &RunResult, style: Style) -> String {
    let totals = &result.totals;
    let mut out = style.section("total");
    out += &definitions(lines(totals), style);
    if totals.latency.is_some() {
        let columns: Vec<&str> = narrow(LATENCY).collect();
        let mut table = Table::new(&heads_of("", &columns));
        table.row(named("  latency".to_owned(), narrow(latency(totals.latency.as_ref()))));
        out.push('\n');
        out += &table.draw(style);
    }
    out
}

fn lines(totals: &Totals) -> Vec<(&'static str, String)> {
    let mut lines = vec![("time", figure(Some(totals.seconds).filter(|seconds| *seconds > 0.0), "s"))];
    if totals.sent_bytes + totals.received_bytes > 0 {
        let (received, sent) = (totals.throughput, totals.sent_throughput);
        lines.extend([
            ("throughput", format!("{} received, {}", bits(received), bytes_per_second(received))),
            ("sent", format!("{}, difference {}", bits(sent), percent(totals.difference_percent))),
            ("bytes", format!("{} received, {} sent", bytes(totals.received_bytes), bytes(totals.sent_bytes))),
        ]);
    }
    lines.push(("operations", rate(totals.operations, totals.operations_per_second)));
    lines.push(("rounds", rate(totals.rounds, totals.rounds_per_second)));
    let counts = [
        ("lost", totals.lost_datagrams, "datagram", ""),
        ("errors", totals.errors, "failure", " passed over"),
        ("timeouts", totals.timeouts, "datagram", " waited for in vain"),
        ("late", totals.late, "datagram", " that came after it had been given up or out of turn"),
    ];
    let some = counts.into_iter().filter(|(_, count, ..)| *count > 0);
    lines.extend(some.map(|(name, count, what, how)| (name, format!("{}{how}", counted(count as usize, what)))));
    lines
}

fn rate(count: u64, per_second: Option<f64>) -> String {
    format!("{count}, {}", figure(per_second, "/s"))
}

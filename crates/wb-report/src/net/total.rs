//! Totals of a run's data phase.

use wb_model::pluralize;
use wb_results::net::{RunResult, Totals};

use super::figures::{
    LATENCY_COLUMNS, format_bit_rate, format_byte_rate, format_bytes, format_figure, format_percent, latency_figures,
    without_min,
};
use crate::text::{Style, Table, definition_list, figure_columns, figure_row};

pub(super) fn totals_text(result: &RunResult, style: Style) -> String {
    let totals = &result.totals;
    let mut out = style.heading("total");
    out += &definition_list(total_lines(totals), style);
    if totals.latency.is_some() {
        let columns: Vec<&str> = without_min(LATENCY_COLUMNS).collect();
        let mut table = Table::new(&figure_columns("", &columns));
        let mut row = |name: &str, latency| {
            table.row(figure_row(format!("  {name}"), without_min(latency_figures(latency))));
        };
        match &totals.response {
            Some(response) => {
                row("response", Some(response));
                row("service", totals.latency.as_ref());
            }
            None => row("latency", totals.latency.as_ref()),
        }
        out.push('\n');
        out += &table.draw(style);
    }
    out
}

fn total_lines(totals: &Totals) -> Vec<(&'static str, String)> {
    let mut lines = vec![("time", format_figure(Some(totals.seconds).filter(|seconds| *seconds > 0.0), "s"))];
    if totals.sent_bytes + totals.received_bytes > 0 {
        let (received, sent) = (totals.throughput, totals.sent_throughput);
        lines.extend([
            ("throughput", format!("{} received, {}", format_bit_rate(received), format_byte_rate(received))),
            ("sent", format!("{}, difference {}", format_bit_rate(sent), format_percent(totals.difference_percent))),
            (
                "bytes",
                format!("{} received, {} sent", format_bytes(totals.received_bytes), format_bytes(totals.sent_bytes)),
            ),
        ]);
    }
    lines.push(("operations", format_rate(totals.operations, totals.operations_per_second)));
    lines.push(("rounds", format_rate(totals.rounds, totals.rounds_per_second)));
    let counts = [
        ("failed", totals.failed_rounds, "round", ""),
        ("lost", totals.lost_datagrams, "datagram", ""),
        ("errors", totals.errors, "failure", " tolerated"),
        ("timeouts", totals.timeouts, "datagram", " timed out"),
        ("late", totals.late, "datagram", " received after its timeout or out of order"),
    ];
    let nonzero = counts.into_iter().filter(|(_, count, ..)| *count > 0);
    lines.extend(nonzero.map(|(name, count, unit, note)| (name, format!("{}{note}", pluralize(count as usize, unit)))));
    lines
}

fn format_rate(count: u64, per_second: Option<f64>) -> String {
    format!("{count}, {}", format_figure(per_second, "/s"))
}

//! Tables of groups: throughput, latency and resource usage.

use wb_results::net::RunResult;
use wb_results::net::Usage;

use super::figures::{
    LATENCY_COLUMNS, format_bit_rate, format_bytes, format_figure, format_percent, latency_figures, ratio,
};
use crate::text::{Style, Table, figure_columns, figure_row};

pub(super) fn group_tables(result: &RunResult, style: Style) -> String {
    let columns = ["strands", "time", "received", "throughput", "difference", "rounds", "per second"];
    let mut moved = Table::new(&figure_columns("", &columns));
    let columns: Vec<&str> = std::iter::once("rounds").chain(LATENCY_COLUMNS).collect();
    let mut rounds = Table::new(&figure_columns("", &columns));
    let columns = ["CPU", "user", "system", "waits", "preemptions"];
    let mut used = Table::new(&figure_columns("", &columns));
    for group in &result.groups {
        let totals = &group.totals;
        let kind = match (group.processes, group.strand_count) {
            (true, 1) => "process",
            (true, _) => "processes",
            (false, 1) => "thread",
            (false, _) => "threads",
        };
        let figures = [
            format!("{} {kind}", group.strand_count),
            format_figure(Some(totals.seconds), "s"),
            format_bytes(totals.received_bytes),
            format_bit_rate(totals.throughput),
            format_percent(totals.difference_percent),
            totals.rounds.to_string(),
            format_figure(totals.rounds_per_second, "/s"),
        ];
        moved.row(figure_row(format!("  {}", group.name), figures));
        let figures = std::iter::once(totals.rounds.to_string()).chain(latency_figures(totals.latency.as_ref()));
        rounds.row(figure_row(format!("  {}", group.name), figures));
        for (side, usage) in [("client", group.client_usage), ("server", group.server_usage)] {
            used.row(figure_row(format!("  {}, {side}", group.name), usage_figures(usage, totals.seconds)));
        }
    }
    [
        style.heading("groups") + &moved.draw(style),
        style.heading("rounds of groups") + &rounds.draw(style),
        style.heading("CPU and context switches of groups") + &used.draw(style),
    ]
    .concat()
}

/// CPU usage in percent of one CPU, CPU times, and context switches.
fn usage_figures(usage: Usage, seconds: f64) -> [String; 5] {
    let share = ratio(usage.cpu_ns() as f64 / 1e7, seconds);
    let time = |nanos: u64| format_figure(Some(nanos as f64), "ns");
    [
        format_percent(share),
        time(usage.user_ns),
        time(usage.system_ns),
        usage.voluntary_switches.to_string(),
        usage.involuntary_switches.to_string(),
    ]
}

//! Renders a preset's result: sender and receiver, rounds and latency.

use wb_results::net::{FlowopResult, FlowopSide, GroupResult, RunResult, TransactionResult};

use wb_model::pluralize;

use super::figures::{
    LATENCY_COLUMNS, format_bit_rate, format_bytes, format_figure, format_nanos, format_percent, latency_figures,
    qualified_name, rate_shortfall, without_min,
};
use crate::text::{Style, Table, figure_columns, figure_row};

/// Renders a line of the sender and one of the receiver for each direction, then rounds and latency.
pub fn preset(result: &RunResult, style: Style) -> String {
    let mut moved = Table::new(&figure_columns("", &["time", "bytes", "throughput", "messages", "difference"]));
    let columns: Vec<&str> = without_min(LATENCY_COLUMNS).collect();
    let mut rounds = Table::new(&figure_columns("", &columns));
    for group in &result.groups {
        for transaction in group.transactions.iter().filter(|transaction| transaction.is_data_phase) {
            for flowop in &transaction.flowops {
                add_directions(&mut moved, result, (group, transaction, flowop));
            }
        }
        let mut row = |name: &str, latency| {
            let figures = without_min(latency_figures(latency));
            rounds.row(figure_row(format!("  {}", qualified_name(result, group, name)), figures));
        };
        if let Some(response) = &group.totals.response {
            row("response", Some(response));
            row("service", group.totals.latency.as_ref());
        } else {
            row("rounds", group.totals.latency.as_ref());
        }
    }
    if result.totals.seconds == 0.0 {
        return remarks(result, style);
    }
    [
        rate_shortfall(result, style),
        moved.draw(style),
        resource_line(result, style),
        String::from("\n"),
        rounds.draw(style),
        remarks(result, style),
    ]
    .concat()
}

fn add_directions(table: &mut Table, result: &RunResult, path: (&GroupResult, &TransactionResult, &FlowopResult)) {
    let (group, transaction, flowop) = path;
    if flowop.client.bytes == 0 && flowop.server.as_ref().is_none_or(|server| server.bytes == 0) {
        return;
    }
    let sends = !matches!(flowop.name.as_str(), "read" | "recv" | "recvfrom" | "readv");
    let row = |name: String, side: &FlowopSide, difference: String| {
        let time = format_figure(Some(transaction.seconds), "s");
        let figures =
            [time, format_bytes(side.bytes), format_bit_rate(side.throughput), side.count.to_string(), difference];
        figure_row(format!("  {}", qualified_name(result, group, &name)), figures)
    };
    let client = |role: &str, difference| row(format!("client, {role}"), &flowop.client, difference);
    let server =
        |role: &str, difference| flowop.server.as_ref().map(|side| row(format!("server, {role}"), side, difference));
    let difference = format_percent(flowop.difference_percent);
    let rows = if sends {
        [Some(client("sender", String::new())), server("receiver", difference)]
    } else {
        [server("sender", String::new()), Some(client("receiver", difference))]
    };
    rows.into_iter().flatten().for_each(|row| table.row(row));
}

fn resource_line(result: &RunResult, style: Style) -> String {
    let cpu = result.machines.iter().map(|machine| format!("{} {}", machine.name, format_percent(machine.cpu_percent)));
    let connections = result.groups.iter().flat_map(|group| [&group.client_connections, &group.server_connections]);
    let retransmits: u64 = connections.map(|info| info.retransmits).fold(0, u64::saturating_add);
    let cpu: Vec<String> = cpu.collect();
    let rate = format_figure(result.totals.rounds_per_second, "/s");
    let mut line = format!("rounds: {rate}; CPU: {}; retransmits: {retransmits}", cpu.join(", "));
    let jitters: Vec<String> =
        received_streams(result).filter_map(|side| side.jitter_ns).map(|jitter| format_nanos(Some(jitter))).collect();
    if !jitters.is_empty() {
        line += &format!("; jitter: {}", jitters.join(", "));
    }
    style.indent(2, &line)
}

/// The receiving sides of flowops that receive without sending in between.
fn received_streams(result: &RunResult) -> impl Iterator<Item = &FlowopSide> {
    let transactions = result.groups.iter().flat_map(|group| &group.transactions);
    let streams = transactions.filter(|transaction| transaction.is_data_phase && transaction.flowops.len() == 1);
    streams
        .flat_map(|transaction| &transaction.flowops)
        .flat_map(|flowop| std::iter::once(&flowop.client).chain(&flowop.server))
}

fn remarks(result: &RunResult, style: Style) -> String {
    let totals = &result.totals;
    let reordered: u64 = received_streams(result).map(|side| side.reordered).sum();
    let counts = [
        (totals.lost_datagrams, "datagram", "lost"),
        (totals.timeouts, "datagram", "timed out"),
        (totals.late.saturating_sub(reordered), "datagram", "late"),
        (reordered, "datagram", "reordered"),
        (totals.errors, "failure", "tolerated"),
    ];
    let remarks = counts.into_iter().filter(|(count, ..)| *count > 0);
    let notes = result.notes.iter().map(|note| format!("note: {note}"));
    remarks
        .map(|(count, unit, description)| format!("{}: {description}", pluralize(count as usize, unit)))
        .chain(notes)
        .map(|line| style.indent(2, &line))
        .collect()
}

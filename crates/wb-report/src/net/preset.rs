//! A preset's result: what sender and receiver say, and how long rounds took.

use wb_net::result::{FlowopResult, FlowopSide, GroupResult, RunResult, TransactionResult};

use wb_model::counted;

use super::figures::{LATENCY, bits, bytes, figure, latency, narrow, percent, place};
use crate::text::{Style, Table, heads_of, named};

/// A line of the sender and one of the receiver of each direction, then rounds and latency.
pub fn preset(result: &RunResult, style: Style) -> String {
    let mut moved = Table::new(&heads_of("", &["time", "bytes", "throughput", "messages", "difference"]));
    let columns: Vec<&str> = narrow(LATENCY).collect();
    let mut rounds = Table::new(&heads_of("", &columns));
    for group in &result.groups {
        for transaction in group.transactions.iter().filter(|transaction| transaction.data) {
            for flowop in &transaction.flowops {
                directions(&mut moved, result, (group, transaction, flowop));
            }
        }
        let figures = narrow(latency(group.totals.latency.as_ref()));
        rounds.row(named(format!("  {}", place(result, group, "rounds")), figures));
    }
    if result.totals.seconds == 0.0 {
        return remarks(result, style);
    }
    [moved.draw(style), used(result, style), String::from("\n"), rounds.draw(style), remarks(result, style)].concat()
}

fn directions(table: &mut Table, result: &RunResult, of: (&GroupResult, &TransactionResult, &FlowopResult)) {
    let (group, transaction, flowop) = of;
    if flowop.client.bytes == 0 && flowop.server.as_ref().is_none_or(|server| server.bytes == 0) {
        return;
    }
    let sends = !matches!(flowop.name.as_str(), "read" | "recv" | "recvfrom" | "readv");
    let row = |name: String, side: &FlowopSide, difference: String| {
        let time = figure(Some(transaction.seconds), "s");
        let figures = [time, bytes(side.bytes), bits(side.throughput), side.count.to_string(), difference];
        named(format!("  {}", place(result, group, &name)), figures)
    };
    let client = |role: &str, difference| row(format!("client, {role}"), &flowop.client, difference);
    let server =
        |role: &str, difference| flowop.server.as_ref().map(|side| row(format!("server, {role}"), side, difference));
    let difference = percent(flowop.difference_percent);
    let rows = if sends {
        [Some(client("sender", String::new())), server("receiver", difference)]
    } else {
        [server("sender", String::new()), Some(client("receiver", difference))]
    };
    rows.into_iter().flatten().for_each(|row| table.row(row));
}

/// How many rounds that were, and what it took: CPU of both sides, and what TCP had to send again.
fn used(result: &RunResult, style: Style) -> String {
    let cpu = result.machines.iter().map(|machine| format!("{} {}", machine.name, percent(machine.cpu_percent)));
    let connections = result.groups.iter().flat_map(|group| [&group.client_connections, &group.server_connections]);
    let again: u64 = connections.map(|info| info.retransmits).sum();
    let cpu: Vec<String> = cpu.collect();
    let rate = figure(result.totals.rounds_per_second, "/s");
    style.indented(2, &format!("rounds: {rate}; CPU: {}; retransmits: {again}", cpu.join(", ")))
}

fn remarks(result: &RunResult, style: Style) -> String {
    let totals = &result.totals;
    let counts = [
        (totals.lost_datagrams, "datagram", "lost"),
        (totals.timeouts, "datagram", "waited for in vain"),
        (totals.late, "datagram", "late"),
        (totals.errors, "failure", "passed over"),
    ];
    let told = counts.into_iter().filter(|(count, ..)| *count > 0);
    let notes = result.notes.iter().map(|note| format!("note: {note}"));
    told.map(|(count, what, how)| format!("{}: {how}", counted(count as usize, what)))
        .chain(notes)
        .map(|line| style.indented(2, &line))
        .collect()
}

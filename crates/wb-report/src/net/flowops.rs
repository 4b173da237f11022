//! Tables of flowops: latencies, counts of both sides, errors and event counters.

use wb_results::net::{FlowopResult, FlowopSide, RunResult};

use super::figures::{
    LATENCY_COLUMNS, format_bytes, format_figure, format_nanos, format_percent, latency_figures, qualified_name, ratio,
};
use super::transactions::lag_remark;
use crate::phrasing::NO_VALUE;
use crate::text::{Style, Table, figure_columns, figure_row};

pub(super) fn flowop_tables(result: &RunResult, style: Style) -> String {
    [
        latency_table(result, style),
        client_server_table(result, style),
        remarks(result, style),
        counter_table(result, style),
    ]
    .concat()
}

fn named_flowops(result: &RunResult) -> impl Iterator<Item = (String, &FlowopResult)> {
    let parts = result.groups.iter().flat_map(|group| group.transactions.iter().map(move |part| (group, part)));
    parts.flat_map(move |(group, part)| {
        let name = qualified_name(result, group, &part.name);
        part.flowops.iter().map(move |flowop| (name.clone(), flowop))
    })
}

type NamedSide<'a> = (String, String, &'a FlowopSide);

fn sides(result: &RunResult) -> impl Iterator<Item = NamedSide<'_>> {
    named_flowops(result).flat_map(|(transaction, flowop)| {
        let named = |side: &str| format!("{}, {side}", flowop.name);
        let server = flowop.server.as_ref().map(|side| (transaction.clone(), named("server"), side));
        std::iter::once((transaction.clone(), named("client"), &flowop.client)).chain(server)
    })
}

/// A table with rows grouped under the names of their transactions.
struct TransactionTable {
    table: Table,
    last: Option<String>,
}

impl TransactionTable {
    fn new(columns: &[&str]) -> Self {
        Self { table: Table::new(&figure_columns("", columns)), last: None }
    }

    fn row(&mut self, transaction: &str, name: &str, figures: Vec<String>) {
        if self.last.as_deref() != Some(transaction) {
            self.table.heading(&format!("  {transaction}"));
            self.last = Some(transaction.to_owned());
        }
        self.table.row(figure_row(format!("    {name}"), figures));
    }
}

fn latency_table(result: &RunResult, style: Style) -> String {
    let with_cpu = sides(result).any(|(_, _, side)| side.cpu_ns.is_some());
    let cpu = with_cpu.then_some("CPU");
    let columns: Vec<&str> =
        ["count", "mean"].into_iter().chain(cpu).chain(LATENCY_COLUMNS.into_iter().skip(1)).collect();
    let mut table = TransactionTable::new(&columns);
    for (transaction, name, side) in sides(result) {
        let mut figures = vec![side.count.to_string()];
        figures.extend(latency_figures(side.latency.as_ref()));
        if with_cpu {
            figures.insert(2, format_nanos(side.cpu_ns.and_then(|cpu| ratio(cpu as f64, side.count as f64))));
        }
        table.row(&transaction, &name, figures);
        if side.response.is_some() {
            for (label, times) in [("  response", &side.response), ("  lag", &side.lag)] {
                let mut figures = vec![times.as_ref().map_or(0, |times| times.count).to_string()];
                figures.extend(latency_figures(times.as_ref()));
                if with_cpu {
                    figures.insert(2, NO_VALUE.to_owned());
                }
                table.row(&transaction, label, figures);
            }
        }
    }
    style.heading("executions of flowops") + &table.table.draw(style)
}

fn client_server_table(result: &RunResult, style: Style) -> String {
    let columns = ["client", "server", "client's bytes", "server's bytes", "difference"];
    let mut table = TransactionTable::new(&columns);
    for (transaction, FlowopResult { name, client, server, difference_percent, .. }) in named_flowops(result) {
        let server_figure = |part: fn(&FlowopSide) -> String| server.as_ref().map_or_else(|| NO_VALUE.to_owned(), part);
        let figures = vec![
            client.count.to_string(),
            server_figure(|side| side.count.to_string()),
            format_bytes(client.bytes),
            server_figure(|side| format_bytes(side.bytes)),
            format_percent(*difference_percent),
        ];
        table.row(&transaction, name, figures);
    }
    style.heading("client against server") + &table.table.draw(style)
}

fn remarks(result: &RunResult, style: Style) -> String {
    let mut out = String::new();
    for (transaction, name, side) in sides(result) {
        let name = format!("{transaction} {name}");
        let errors = side.errors.iter().map(|(word, count)| (*count, format!("failed: {word}")));
        let waits = [
            (side.timeouts, "datagrams timed out"),
            (side.late, "datagrams late"),
            (side.reordered, "of them reordered"),
        ];
        let counts = errors.chain(waits.map(|(count, description)| (count, description.to_owned())));
        for (count, description) in counts.filter(|(count, _)| *count > 0) {
            out += &style.remark(&name, &format!("{count} {description}"));
        }
        if let Some(jitter) = side.jitter_ns {
            out += &style.remark(&name, &format!("jitter of datagrams: {}", format_nanos(Some(jitter))));
        }
        out += &lag_remark(&name, side.lag.as_ref(), style);
    }
    if out.is_empty() { out } else { style.heading("remarks on flowops") + &out }
}

fn counter_table(result: &RunResult, style: Style) -> String {
    let Some(names) = sides(result).map(|(_, _, side)| &side.counters).find(|counters| !counters.is_empty()) else {
        return String::new();
    };
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    let ipc = names.contains(&"cycles") && names.contains(&"instructions");
    let columns: Vec<&str> = names.iter().copied().chain(ipc.then_some("instructions per cycle")).collect();
    let mut table = TransactionTable::new(&columns);
    for (transaction, name, side) in sides(result).filter(|(_, _, side)| side.count > 0) {
        let count_of = |event: &str| side.counters.get(event).map(|count| *count as f64);
        let each = |event: &&str| format_figure(count_of(event).and_then(|count| ratio(count, side.count as f64)), "");
        let per_cycle = || {
            format_figure(
                count_of("instructions").zip(count_of("cycles")).and_then(|(count, cycles)| ratio(count, cycles)),
                "",
            )
        };
        table.row(&transaction, &name, names.iter().map(each).chain(ipc.then(per_cycle)).collect());
    }
    style.heading("events per execution") + &table.table.draw(style)
}

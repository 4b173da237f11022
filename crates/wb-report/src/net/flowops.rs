//! Flowops: how long they took on both sides, what both sides counted, what went wrong and what they cost.

use wb_net::result::{FlowopResult, FlowopSide, RunResult};

use super::figures::{LATENCY, bytes, figure, latency, nanos, percent, place, ratio};
use super::transactions::{lateness, paced};
use crate::text::{Style, Table, heads_of, named};
use crate::words::NONE;

/// Everything that is known of flowops.
pub(super) fn flowops(result: &RunResult, style: Style) -> String {
    [times(result, style), both(result, style), remarks(result, style), counters(result, style)].concat()
}

/// A flowop, where it stands, and one of its sides.
type Side<'a> = (String, &'static str, &'a FlowopSide);

fn all(result: &RunResult) -> impl Iterator<Item = (String, &FlowopResult)> {
    let parts = result.groups.iter().flat_map(|group| group.transactions.iter().map(move |part| (group, part)));
    parts.flat_map(move |(group, part)| {
        let name = place(result, group, &part.name);
        part.flowops.iter().map(move |flowop| (format!("{name} {}", flowop.name), flowop))
    })
}

fn sides(result: &RunResult) -> impl Iterator<Item = Side<'_>> {
    all(result).flat_map(|(name, flowop)| {
        let server = flowop.server.as_ref().map(|side| (name.clone(), "server", side));
        std::iter::once((name, "client", &flowop.client)).chain(server)
    })
}

fn times(result: &RunResult, style: Style) -> String {
    let with_cpu = sides(result).any(|(_, _, side)| side.cpu_ns.is_some());
    let cpu = with_cpu.then_some("CPU");
    let columns: Vec<&str> = ["count", "mean"].into_iter().chain(cpu).chain(LATENCY.into_iter().skip(1)).collect();
    let mut table = Table::new(&heads_of("", &columns));
    for (name, which, side) in sides(result) {
        let mut figures = vec![side.count.to_string()];
        figures.extend(latency(side.latency.as_ref()));
        if with_cpu {
            figures.insert(2, nanos(side.cpu_ns.and_then(|cpu| ratio(cpu as f64, side.count as f64))));
        }
        table.row(named(format!("  {name}, {which}"), figures));
        if side.response.is_some() && !with_cpu {
            table.row(paced("response", side.response.as_ref()));
            table.row(paced("lag", side.lag.as_ref()));
        }
    }
    style.section("executions of flowops") + &table.draw(style)
}

fn both(result: &RunResult, style: Style) -> String {
    let columns = ["client", "server", "client's bytes", "server's bytes", "difference"];
    let mut table = Table::new(&heads_of("", &columns));
    for (name, FlowopResult { client, server, difference_percent, .. }) in all(result) {
        let theirs = |part: fn(&FlowopSide) -> String| server.as_ref().map_or_else(|| NONE.to_owned(), part);
        let figures = [
            client.count.to_string(),
            theirs(|side| side.count.to_string()),
            bytes(client.bytes),
            theirs(|side| bytes(side.bytes)),
            percent(*difference_percent),
        ];
        table.row(named(format!("  {name}"), figures));
    }
    style.section("client against server") + &table.draw(style)
}

fn remarks(result: &RunResult, style: Style) -> String {
    let mut out = String::new();
    for (name, which, side) in sides(result) {
        let name = format!("{name}, {which}");
        let errors = side.errors.iter().map(|(word, count)| (*count, format!("failed: {word}")));
        let waits = [(side.timeouts, "datagrams waited for in vain"), (side.late, "datagrams came too late")];
        let counts = errors.chain(waits.map(|(count, what)| (count, what.to_owned())));
        for (count, what) in counts.filter(|(count, _)| *count > 0) {
            out += &style.remark(&name, &format!("{count} {what}"));
        }
        out += &lateness(&name, side.lag.as_ref(), style);
    }
    if out.is_empty() { out } else { style.section("remarks on flowops") + &out }
}

fn counters(result: &RunResult, style: Style) -> String {
    let Some(names) = sides(result).map(|(_, _, side)| &side.counters).find(|counters| !counters.is_empty()) else {
        return String::new();
    };
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    let ipc = names.contains(&"cycles") && names.contains(&"instructions");
    let columns: Vec<&str> = names.iter().copied().chain(ipc.then_some("instructions per cycle")).collect();
    let mut table = Table::new(&heads_of("", &columns));
    for (name, which, side) in sides(result).filter(|(_, _, side)| side.count > 0) {
        let of = |event: &str| side.counters.get(event).map(|count| *count as f64);
        let each = |event: &&str| figure(of(event).and_then(|count| ratio(count, side.count as f64)), "");
        let per_cycle = || figure(of("instructions").zip(of("cycles")).and_then(|(one, other)| ratio(one, other)), "");
        table.row(named(format!("  {name}, {which}"), names.iter().map(each).chain(ipc.then(per_cycle))));
    }
    style.section("events per execution") + &table.draw(style)
}

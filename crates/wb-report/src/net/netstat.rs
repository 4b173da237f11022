//! What network interfaces counted, beside what the engine counted: the independent check.

use wb_net::result::{Machine, RunResult};

use super::figures::{bits, figure, ratio};
use crate::text::{Style, Table, heads_of, named};
use crate::words::NONE;

/// Packets and bits per second of the data phase, by machine and interface.
pub(super) fn netstat(result: &RunResult, style: Style) -> String {
    let columns = ["packets in", "packets out", "in", "out", "errors in", "errors out"];
    let mut table = Table::new(&heads_of("", &columns));
    for machine in &result.machines {
        table.heading(&format!("  {}", machine.name));
        for row in rows(machine, result.totals.seconds) {
            table.row(row);
        }
    }
    let about =
        "counted from beginning to end, whoever's traffic it is, headers included; per second of the data phase";
    style.section("network interfaces") + &table.draw(style) + &style.indented(2, about)
}

fn rows(machine: &Machine, seconds: f64) -> impl Iterator<Item = Vec<crate::text::Cell>> {
    let rate = move |count: u64| ratio(count as f64, seconds);
    let packets = move |count: u64| figure(rate(count), "/s");
    let interfaces = machine.interfaces.iter().map(move |interface| {
        let figures = [
            packets(interface.packets_in),
            packets(interface.packets_out),
            bits(rate(interface.bytes_in)),
            bits(rate(interface.bytes_out)),
            interface.errors_in.to_string(),
            interface.errors_out.to_string(),
        ];
        named(format!("    {}", interface.name), figures)
    });
    let none = || NONE.to_owned();
    let figures = [none(), none(), bits(rate(machine.received_bytes)), bits(rate(machine.sent_bytes)), none(), none()];
    interfaces.chain([named("    messages of this run".to_owned(), figures)])
}

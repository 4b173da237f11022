//! What the kernel counted, beside what the engine counted: the independent check.

use wb_net::{
    netstat::ProtocolCounters,
    result::{MachineResult, RunResult},
};

use super::figures::{bits, figure, ratio};
use crate::text::{Style, Table, heads_of, named};
use crate::words::NONE;

/// Packets and bits per second of the data phase, by machine and interface; then the protocols.
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
    let interfaces = style.section("network interfaces") + &table.draw(style) + &style.indented(2, about);
    interfaces + &protocols(result, style)
}

/// What explains losses, by machine.
fn protocols(result: &RunResult, style: Style) -> String {
    let columns = ["TCP sent again", "UDP for nobody", "UDP buffer full", "when sending"];
    let mut table = Table::new(&heads_of("", &columns));
    for machine in &result.machines {
        let ProtocolCounters { tcp_retransmits, udp_for_nobody, udp_receive_full, udp_send_full } =
            machine.counted.protocols;
        let figures = [tcp_retransmits, udp_for_nobody, udp_receive_full, udp_send_full].map(|count| count.to_string());
        table.row(named(format!("  {}", machine.name), figures));
    }
    let about = "segments and datagrams; those for nobody had no socket: strangers', or late";
    style.section("network protocols") + &table.draw(style) + &style.indented(2, about)
}

fn rows(machine: &MachineResult, seconds: f64) -> impl Iterator<Item = Vec<crate::text::Cell>> {
    let rate = move |count: u64| ratio(count as f64, seconds);
    let packets = move |count: u64| figure(rate(count), "/s");
    let interfaces = machine.counted.interfaces.iter().map(move |interface| {
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

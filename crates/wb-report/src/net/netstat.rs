//! Tables of the kernel's network counters beside the engine's, as an independent check.

use wb_results::net::{MachineResult, ProtocolCounters, RunResult};

use super::figures::{format_bit_rate, format_figure, ratio};
use crate::phrasing::NO_VALUE;
use crate::text::{Style, Table, figure_columns, figure_row};

pub(super) fn netstat_tables(result: &RunResult, style: Style) -> String {
    let columns = ["packets in", "packets out", "in", "out", "errors in", "errors out"];
    let mut table = Table::new(&figure_columns("", &columns));
    for machine in &result.machines {
        table.heading(&format!("  {}", machine.name));
        for row in interface_rows(machine, result.totals.seconds) {
            table.row(row);
        }
    }
    let about = "all traffic during the whole run, with headers; per second of the data phase";
    let interfaces = style.heading("network interfaces") + &table.draw(style) + &style.indent(2, about);
    interfaces + &protocol_table(result, style)
}

/// Renders protocol counters that explain losses, by machine.
fn protocol_table(result: &RunResult, style: Style) -> String {
    let columns = ["TCP retransmits", "UDP no socket", "UDP receive buffer full", "UDP send buffer full"];
    let mut table = Table::new(&figure_columns("", &columns));
    for machine in &result.machines {
        let ProtocolCounters {
            tcp_retransmits,
            udp_no_port: udp_for_nobody,
            udp_receive_buffer_errors: udp_receive_full,
            udp_send_buffer_errors: udp_send_full,
        } = machine.network.protocols;
        let figures = [tcp_retransmits, udp_for_nobody, udp_receive_full, udp_send_full].map(|count| count.to_string());
        table.row(figure_row(format!("  {}", machine.name), figures));
    }
    let about = "segments and datagrams; datagrams without a socket are late or of other programs";
    style.heading("network protocols") + &table.draw(style) + &style.indent(2, about)
}

fn interface_rows(machine: &MachineResult, seconds: f64) -> impl Iterator<Item = Vec<crate::text::TableCell>> {
    let rate = move |count: u64| ratio(count as f64, seconds);
    let packets = move |count: u64| format_figure(rate(count), "/s");
    let interfaces = machine.network.interfaces.iter().map(move |interface| {
        let figures = [
            packets(interface.packets_in),
            packets(interface.packets_out),
            format_bit_rate(rate(interface.bytes_in)),
            format_bit_rate(rate(interface.bytes_out)),
            interface.errors_in.to_string(),
            interface.errors_out.to_string(),
        ];
        figure_row(format!("    {}", interface.name), figures)
    });
    let none = || NO_VALUE.to_owned();
    let figures = [
        none(),
        none(),
        format_bit_rate(rate(machine.received_bytes)),
        format_bit_rate(rate(machine.sent_bytes)),
        none(),
        none(),
    ];
    interfaces.chain([figure_row("    messages of this run".to_owned(), figures)])
}

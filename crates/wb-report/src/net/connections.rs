//! Table of connections from the kernels' statistics on both sides.

use wb_results::net::ConnectionInfo;
use wb_results::net::RunResult;

use super::figures::{format_bytes, format_figure, format_nanos};
use crate::phrasing::NO_VALUE;
use crate::text::{Style, Table, figure_columns, figure_row};

pub(super) fn connections_table(result: &RunResult, style: Style) -> String {
    let columns = ["connections", "retransmits", "RTT", "largest RTT", "send buffer", "receive buffer"];
    let mut table = Table::new(&figure_columns("", &columns));
    let mut lost = String::new();
    for group in &result.groups {
        for (side, info) in [("client", &group.client_connections), ("server", &group.server_connections)] {
            table.row(figure_row(format!("  {}, {side}", group.name), connection_row(info)));
        }
        if let Some(datagrams) = &group.datagrams {
            for (sender, sent, lost_count) in [
                ("client", datagrams.client_sent, datagrams.client_lost),
                ("server", datagrams.server_sent, datagrams.server_lost),
            ] {
                let share = format_figure((sent > 0).then(|| lost_count as f64 / sent as f64 * 100.0), "%");
                let text = format!("{lost_count} of {sent} datagrams that the {sender} sent were lost, {share}");
                lost += &style.remark(&group.name, &text);
            }
        }
    }
    style.heading("connections") + &table.draw(style) + &lost
}

fn connection_row(info: &ConnectionInfo) -> [String; 6] {
    let nonzero = |value: u64, text: String| if value > 0 { text } else { NO_VALUE.to_owned() };
    let counted = |count: u64| if info.connections > 0 { count.to_string() } else { NO_VALUE.to_owned() };
    [
        info.connections.to_string(),
        counted(info.retransmits),
        nonzero(info.rtt_ns, format_nanos(Some(info.rtt_ns as f64))),
        nonzero(info.rtt_max_ns, format_nanos(Some(info.rtt_max_ns as f64))),
        nonzero(info.send_buffer, format_bytes(info.send_buffer)),
        nonzero(info.receive_buffer, format_bytes(info.receive_buffer)),
    ]
}

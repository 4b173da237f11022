//! Table of the participating machines.

use wb_results::net::RunResult;

use super::figures::{format_bytes, format_percent};
use crate::text::{Align, Style, Table, TableCell};

/// Renders the traffic of each machine over the whole run, the CPU usage of its strands, and their executor.
pub(super) fn machines_table(result: &RunResult, style: Style) -> String {
    use Align::{Left, Right};
    let heads = [("", Left), ("sent", Right), ("received", Right), ("CPU", Right), ("waits", Right)];
    let heads: Vec<(&str, Align)> = heads.into_iter().chain([("preemptions", Right), ("strands are", Left)]).collect();
    let mut table = Table::new(&heads);
    let mut remarks = String::new();
    for machine in &result.machines {
        let cells = [
            format!("  {}", machine.name),
            format_bytes(machine.sent_bytes),
            format_bytes(machine.received_bytes),
            format_percent(machine.cpu_percent),
            machine.usage.voluntary_switches.to_string(),
            machine.usage.involuntary_switches.to_string(),
            machine.executor.clone(),
        ];
        table.row(cells.into_iter().map(TableCell::from).collect());
        if machine.rejected_connections > 0 {
            let text = format!("dropped {} connections or datagrams from other machines", machine.rejected_connections);
            remarks += &style.remark(&machine.name, &text);
        }
    }
    style.heading("machines") + &table.draw(style) + &remarks
}

//! The machines that took part.

use wb_net::result::RunResult;

use super::figures::{format_bytes, format_percent};
use crate::text::{Align, Style, Table, TableCell};

/// What each moved from beginning to end, what its strands used of its CPUs, and how they were carried out.
pub(super) fn machines_table(result: &RunResult, style: Style) -> String {
    use Align::{Left, Right};
    let heads = [("", Left), ("sent", Right), ("received", Right), ("CPU", Right), ("waits", Right)];
    let heads: Vec<(&str, Align)> = heads.into_iter().chain([("preemptions", Right), ("strands are", Left)]).collect();
    let mut table = Table::new(&heads);
    let mut refused = String::new();
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
            let text =
                format!("dropped {} connections or datagrams that came from elsewhere", machine.rejected_connections);
            refused += &style.remark(&machine.name, &text);
        }
    }
    style.heading("machines") + &table.draw(style) + &refused
}

//! The machines that took part.

use wb_net::result::RunResult;

use super::figures::{bytes, percent};
use crate::text::{Align, Cell, Style, Table};

/// What each moved from beginning to end, what its strands used of its CPUs, and how they were carried out.
pub(super) fn machines(result: &RunResult, style: Style) -> String {
    use Align::{Left, Right};
    let heads = [("", Left), ("sent", Right), ("received", Right), ("CPU", Right), ("waits", Right)];
    let heads: Vec<(&str, Align)> = heads.into_iter().chain([("preemptions", Right), ("strands are", Left)]).collect();
    let mut table = Table::new(&heads);
    let mut refused = String::new();
    for machine in &result.machines {
        let cells = [
            format!("  {}", machine.name),
            bytes(machine.sent_bytes),
            bytes(machine.received_bytes),
            percent(machine.cpu_percent),
            machine.usage.voluntary_switches.to_string(),
            machine.usage.involuntary_switches.to_string(),
            machine.executor.clone(),
        ];
        table.row(cells.into_iter().map(Cell::from).collect());
        if machine.refused > 0 {
            let text = format!("dropped {} connections or datagrams that came from elsewhere", machine.refused);
            refused += &style.remark(&machine.name, &text);
        }
    }
    style.section("machines") + &table.draw(style) + &refused
}

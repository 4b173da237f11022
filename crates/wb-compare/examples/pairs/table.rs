//! The table of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::simulation::{CHANGES, Row};

/// Formats the table as Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let found: String = CHANGES.iter().map(|change| format!(" +{:.0} % found |", change * 100.0)).collect();
    let rule = "--:|".repeat(4 + CHANGES.len());
    let figures = "different without a threshold | with 5 % | equivalent |";
    let mut text = format!("| system | samples | a side | {figures}{found}\n|---|---|{rule}\n");
    for Row { system, design, samples, differ, equivalent, found } in rows {
        let figures = differ.iter().chain([equivalent]).chain(found);
        let figures = figures.map(|share| percent(*share)).collect::<Vec<_>>().join(" | ");
        _ = writeln!(text, "| {} | {} | {samples} | {figures} |", system.name(), design.name());
    }
    text
}

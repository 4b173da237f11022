//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::simulation::{CHANGES, Row};

/// Formats both tables as Markdown.
pub(crate) fn tables(runs: &[Row], shapes: &[Row]) -> String {
    let figures = "false `regressed` | false `improved` | unconfirmed | equivalent |";
    let found: String =
        CHANGES.iter().map(|change| format!(" +{} % found |", (change * 1000.0).round() / 10.0)).collect();
    let rule = "--:|".repeat(4 + CHANGES.len());
    let mut text = format!("| runs differ by | runs a side | {figures}{found}\n|--:|--:|{rule}\n");
    for row in runs {
        _ = writeln!(text, "| {:.0} % | {} | {} |", row.between * 100.0, row.runs, cells(row));
    }
    _ = write!(text, "\n| samples | samples a side | runs differ by | {figures}{found}\n|---|--:|--:|{rule}\n");
    for row in shapes {
        let name = row.shape.name();
        _ = writeln!(text, "| {name} | {} | {:.0} % | {} |", row.samples, row.between * 100.0, cells(row));
    }
    text
}

fn cells(row: &Row) -> String {
    let figures = [row.regressed, row.improved, row.unconfirmed, row.equivalent];
    figures.iter().chain(&row.found).map(|share| percent(*share)).collect::<Vec<_>>().join(" | ")
}

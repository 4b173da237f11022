//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::runs::{self, CHANGES};
use super::shapes::{Row, Simulation};

/// All tables, as Markdown
pub(crate) fn tables(runs: &[runs::Row], shapes: &Simulation) -> String {
    let mut text = String::from(
        "| runs differ by | runs a side | false `regressed` | unconfirmed | equivalent | by samples alone | own runs \
         contradict | S = 0: false `regressed` | own runs contradict |",
    );
    for change in CHANGES {
        _ = write!(text, " +{:.0} % found |", change * 100.0);
    }
    _ = writeln!(text, "\n|{}", "--:|".repeat(9 + CHANGES.len()));
    for runs::Row { count, between, equal, regressed } in runs {
        let figures = [
            equal.regressed,
            equal.unconfirmed,
            equal.equivalent,
            equal.equivalent_by_samples,
            equal.own_runs,
            equal.regressed_without_noise,
            equal.own_runs_without_noise,
        ];
        let figures: Vec<String> = figures.iter().chain(regressed).map(|share| percent(*share)).collect();
        _ = writeln!(text, "| {:.0} % | {count} | {} |", between * 100.0, figures.join(" | "));
    }
    write_rows(&mut text, "false alarms of equal sides", &shapes.equal);
    write_rows(&mut text, "change: found", &shapes.changed);
    text
}

fn write_rows(text: &mut String, title: &str, rows: &[Row]) {
    _ = writeln!(
        text,
        "\n| {title} | samples a side | location | mean | tail | any, by Holm | pooled quantile | interval of the tail | interval of the \
         median |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    let or_dash = |share: Option<f64>| share.map_or("–".into(), percent);
    for row in rows {
        let [a, b] = row.counts;
        _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.shape.name(),
            if a == b { a.to_string() } else { format!("{a} and {b}") },
            percent(row.location),
            percent(row.mean),
            or_dash(row.tail),
            percent(row.any),
            or_dash(row.tail_count),
            or_dash(row.tail_interval),
            percent(row.median_interval),
        );
    }
}

//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use super::page::percent;
use super::simulation::{CHANGES, DependentRow, FewRow, GROUP_CHANGES, GroupRow, LARGE_CHANGES, Row};

/// Formats the tables as Markdown.
pub(crate) fn tables(
    runs: &[Row],
    shapes: &[Row],
    dependence: &[DependentRow],
    few: &[FewRow],
    groups: &[GroupRow],
) -> String {
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
        let samples = match row.samples {
            [one, other] if one == other => one.to_string(),
            [one, other] => format!("{one} and {other}"),
        };
        _ = writeln!(text, "| {name} | {samples} | {:.0} % | {} |", row.between * 100.0, cells(row));
    }
    [text, dependent_table(dependence), few_table(few), group_table(groups)].join("\n")
}

fn group_table(rows: &[GroupRow]) -> String {
    let found: String = GROUP_CHANGES.iter().map(|change| format!(" +{:.0} % found |", change * 100.0)).collect();
    let mut text = format!(
        "| runs differ by 5 % | runs a side | averages beyond the tolerance | false verdicts | equivalent |{found}\n\
         |---|--:|--:|--:|--:|{}\n",
        "--:|".repeat(GROUP_CHANGES.len())
    );
    for row in rows {
        let noise = if row.is_shared { "in all checks alike" } else { "in each check by itself" };
        let shares = [row.beyond_tolerance, row.changed, row.equivalent].into_iter().chain(row.found);
        let shares = shares.map(percent).collect::<Vec<_>>().join(" | ");
        _ = writeln!(text, "| {noise} | {} | {shares} |", row.runs);
    }
    text
}

fn few_table(rows: &[FewRow]) -> String {
    let found: String = LARGE_CHANGES.iter().map(|change| format!(" +{:.0} % found |", change * 100.0)).collect();
    let mut text = format!(
        "| samples of the first build | of the last | noise | false `regressed` | false `improved` | unconfirmed |{found}\n\
         |---|---|--:|--:|--:|--:|{}\n",
        "--:|".repeat(LARGE_CHANGES.len())
    );
    for row in rows {
        let [reference, judged] = row.sides.map(|runs| match runs {
            [samples] => format!("{samples}"),
            runs => format!("{} runs of {}", runs.len(), runs[0]),
        });
        let shares = [row.regressed, row.improved, row.unconfirmed].into_iter().chain(row.found);
        let shares = shares.map(percent).collect::<Vec<_>>().join(" | ");
        _ = writeln!(text, "| {reference} | {judged} | {:.0} % | {shares} |", row.spread * 100.0);
    }
    text
}

fn dependent_table(rows: &[DependentRow]) -> String {
    let mut text =
        "| correlation of neighbours | samples a side | noise | false `regressed` | unconfirmed | equivalent | \
                    equivalent but for dependence | +5 % equivalent | without the widening |\n\
                    |--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    for row in rows {
        let equal = [row.regressed, row.unconfirmed, row.equivalent, row.equal_if_independent];
        let shares = equal.into_iter().chain([row.unequal_equivalent, row.unequal_if_independent]);
        let shares = shares.map(percent).collect::<Vec<_>>().join(" | ");
        _ = writeln!(text, "| {} | {} | {:.0} % | {shares} |", row.correlation, row.samples, row.spread * 100.0);
    }
    text
}

fn cells(row: &Row) -> String {
    let figures = [row.regressed, row.improved, row.unconfirmed, row.equivalent];
    figures.iter().chain(&row.found).map(|share| percent(*share)).collect::<Vec<_>>().join(" | ")
}

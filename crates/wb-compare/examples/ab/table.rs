//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use wb_results::experiment::{Calibration, Design};

use super::designs::System;
use super::families::FamilyRow;
use super::page::percent;
use super::stopping::PopulationResult;

/// Formats the tables as Markdown.
pub(crate) fn tables(rows: &[PopulationResult], families: &[FamilyRow], systems: &[(System, Calibration)]) -> String {
    let mut text = String::from(
        "| population | two equal: false positives | equivalent | coverage | mean blocks | without a threshold: false positives | four \
        equal: false positives | 10 % more: detected | coverage | measured over true ratio | mean blocks |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for PopulationResult { population, equal, strict, four, more } in rows {
        _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.1} | {} | {} | {} | {} | {:.3} | {:.1} |",
            population.name(),
            percent(equal.decided_share),
            percent(equal.equivalent),
            percent(equal.coverage),
            equal.blocks,
            percent(strict.decided_share),
            percent(four.decided_share),
            percent(more.decided_share),
            percent(more.coverage),
            more.ratio,
            more.blocks,
        );
    }
    text.push_str(
        "\n| population | cases | changed | by | false discovery rate, Bonferroni | Benjamini–Hochberg | found, Bonferroni | \
        Benjamini–Hochberg | mean blocks, Bonferroni | Benjamini–Hochberg |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    families.iter().for_each(|row| text.push_str(&row.line()));
    text.push_str(
        "\n| system | blocked: false positives | detectable | interleaved: false positives | detectable | runs: false \
        positives | detectable | estimated noise: samples | runs | boots |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (system, calibration) in systems {
        let columns = |design: Design| {
            let result = calibration.designs.iter().find(|result| result.design == design);
            let share =
                result.and_then(|result| result.beyond_chance).map_or("–".into(), |share| percent(share.fraction()));
            let detectable = result
                .and_then(|result| result.detectable_percent)
                .map_or("–".into(), |difference| percent(difference / 100.0));
            format!("{share} | {detectable}")
        };
        let sources = calibration.variance_components;
        let sources = [sources.samples, sources.runs, sources.boots].map(|noise| noise.map_or("–".into(), percent));
        let designs = Design::ALL.map(columns).join(" | ");
        _ = writeln!(text, "| {} | {designs} | {} |", system.name, sources.join(" | "));
    }
    text
}

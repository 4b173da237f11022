//! The tables of `docs/statistics.md`.

use std::fmt::Write;

use wb_compare::calibrate::{Calibration, Design};

use super::orders::System;
use super::page::percent;
use super::stopping::Row;

/// Both tables, as Markdown
pub(crate) fn tables(rows: &[Row], systems: &[(System, Calibration)]) -> String {
    let mut text = String::from(
        "| population | two alike: told apart | equivalent | covers | mean blocks | without a threshold: told apart | four \
         alike: any told apart | 10 % more: found | covers | ratio seen over true | mean blocks |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for Row { population, equal, strict, four, more } in rows {
        _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.1} | {} | {} | {} | {} | {:.3} | {:.1} |",
            population.name(),
            percent(equal.told),
            percent(equal.equivalent),
            percent(equal.covers),
            equal.blocks,
            percent(strict.told),
            percent(four.told),
            percent(more.told),
            percent(more.covers),
            more.ratio,
            more.blocks,
        );
    }
    text.push_str(
        "\n| system | one after the other: told apart | caught | in turns: told apart | caught | run against run: told \
         apart | caught | noise found: samples | runs | boots |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (system, calibration) in systems {
        let of = |order: Design| {
            let of = calibration.designs.iter().find(|of| of.design == order);
            let share = of.and_then(|of| of.beyond_chance).map_or("–".into(), |share| percent(share.fraction()));
            let caught = of.and_then(|of| of.detectable_percent).map_or("–".into(), |caught| percent(caught / 100.0));
            format!("{share} | {caught}")
        };
        let sources = calibration.variance_components;
        let sources = [sources.samples, sources.runs, sources.boots].map(|noise| noise.map_or("–".into(), percent));
        let orders = Design::ALL.map(of).join(" | ");
        _ = writeln!(text, "| {} | {orders} | {} |", system.name, sources.join(" | "));
    }
    text
}

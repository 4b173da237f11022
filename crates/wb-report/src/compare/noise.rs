//! What a model says of noise.

use std::collections::BTreeSet;

use wb_compare::NoiseModel;
use wb_compare::model::noise::Noise;
use wb_model::counted;

use super::figures::{figure, readable};
use crate::text::{Style, Table, heads_of, named};
use crate::words::NONE;

/// Below this probability a trend or modes are told.
const TOLD: f64 = 0.05;

/// A line for each metric: how far its runs and samples lie apart, what else was seen, and whether it can be used; then
/// what the model was learnt from.
pub fn noise_text(model: &NoiseModel, style: Style) -> String {
    let heads =
        ["runs", "samples", "level", "between runs", "at most", "within", "outliers", "disturbed", "seen", "use"];
    let mut table = Table::new(&heads_of("", &heads));
    for (id, noise) in &model.checks {
        let variation = noise.variation.as_ref();
        let share = |share: Option<f64>| share.map_or(NONE.to_owned(), |share| format!("{:.2} %", share * 100.0));
        let figures = [
            noise.runs.to_string(),
            noise.samples.to_string(),
            figure(Some(noise.level), noise.unit.as_ref()),
            share(variation.map(|it| it.between)),
            share(variation.map(|it| it.between_upper)),
            share(variation.and_then(|it| it.noise.within)),
            noise.outliers.to_string(),
            noise.disturbed.to_string(),
            seen(noise),
            noise.why_not().map_or("yes".to_owned(), |why| format!("no: {why}")),
        ];
        table.row(named(readable(id), figures));
    }
    let usable = model.checks.values().filter(|noise| noise.usable().is_some()).count();
    let runs: usize = model.learnt_from.iter().map(|learnt| learnt.runs.len()).sum();
    let taken = if model.one_system { ", each build a single run, all taken for runs of one" } else { "" };
    let about = format!(
        "{}, {usable} of them known well enough; learnt from {} of {}{taken}",
        counted(model.checks.len(), "check"),
        counted(runs, "run"),
        counted(model.learnt_from.len(), "build"),
    );
    table.draw(style) + &style.indented(0, &about) + &provenance(model, style)
}

/// What else was seen, in words.
fn seen(noise: &Noise) -> String {
    let drift = |of: &Option<wb_stats::Trend>, per: &str| {
        let told = of.as_ref().filter(|trend| trend.p_value <= TOLD);
        told.map(|trend| format!("drift {:+.2} % a {per}", trend.slope * 100.0))
    };
    let modes = |of: Option<wb_stats::Dip>, what: &str| {
        of.filter(|dip| dip.p_value <= TOLD).map(|_| format!("modes of {what}"))
    };
    let left_out = (noise.left_out > 0).then(|| format!("{} runs of another definition left out", noise.left_out));
    let all = [
        drift(&noise.drift, "run"),
        drift(&noise.drift_within, "sample"),
        modes(noise.modes, "runs"),
        modes(noise.modes_within, "samples"),
        left_out,
    ];
    let told: Vec<String> = all.into_iter().flatten().collect();
    if told.is_empty() { NONE.to_owned() } else { told.join(", ") }
}

/// What the builds were measured on, each thing once.
fn provenance(model: &NoiseModel, style: Style) -> String {
    let named = model.learnt_from.iter().flat_map(|learnt| &learnt.provenance);
    let names: BTreeSet<&String> = named.clone().map(|(name, _)| name).collect();
    let line = |name: &String| {
        let values = named.clone().filter(|(other, _)| *other == name).flat_map(|(_, values)| values);
        let values: BTreeSet<&str> = values.map(String::as_str).collect();
        style.remark(name, &values.into_iter().collect::<Vec<_>>().join(", "))
    };
    names.into_iter().map(line).collect()
}

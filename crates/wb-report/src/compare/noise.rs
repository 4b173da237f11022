//! What a model says of noise.

use std::collections::BTreeSet;

use wb_compare::NoiseModel;
use wb_compare::model::noise::MetricNoise;
use wb_model::pluralize;

use super::figures::{format_figure, readable_id};
use crate::phrasing::NO_VALUE;
use crate::text::{Style, Table, figure_columns, figure_row};

/// Below this probability a trend or modes are told.
const SIGNIFICANCE: f64 = 0.05;

/// A line for each metric: how far its runs and samples lie apart, what else was seen, and whether it can be used; then
/// what the model was learnt from.
pub fn noise_text(model: &NoiseModel, style: Style) -> String {
    let heads =
        ["runs", "samples", "level", "between runs", "at most", "within", "outliers", "disturbed", "seen", "use"];
    let mut table = Table::new(&figure_columns("", &heads));
    for (id, noise) in &model.checks {
        let variation = noise.variation.as_ref();
        let share = |share: Option<f64>| share.map_or(NO_VALUE.to_owned(), |share| format!("{:.2} %", share * 100.0));
        let figures = [
            noise.runs.to_string(),
            noise.samples.to_string(),
            format_figure(Some(noise.level), noise.unit.as_ref()),
            share(variation.map(|it| it.between)),
            share(variation.map(|it| it.between_upper)),
            share(variation.and_then(|it| it.noise.within)),
            noise.outliers.to_string(),
            noise.disturbed.to_string(),
            describe_patterns(noise),
            noise.unusable_reason().map_or("yes".to_owned(), |why| format!("no: {why}")),
        ];
        table.row(figure_row(readable_id(id), figures));
    }
    let usable = model.checks.values().filter(|noise| noise.usable().is_some()).count();
    let runs: usize = model.trained_on.iter().map(|learnt| learnt.runs.len()).sum();
    let taken = if model.one_system { ", each build a single run, all taken for runs of one" } else { "" };
    let about = format!(
        "{}, {usable} of them known well enough; learnt from {} of {}{taken}",
        pluralize(model.checks.len(), "check"),
        pluralize(runs, "run"),
        pluralize(model.trained_on.len(), "build"),
    );
    table.draw(style) + &style.indent(0, &about) + &provenance_lines(model, style)
}

/// What else was seen, in words.
fn describe_patterns(noise: &MetricNoise) -> String {
    let drift = |of: &Option<wb_stats::Trend>, per: &str| {
        let told = of.as_ref().filter(|trend| trend.p_value <= SIGNIFICANCE);
        told.map(|trend| format!("drift {:+.2} % a {per}", trend.slope * 100.0))
    };
    let modes = |of: Option<wb_stats::Dip>, what: &str| {
        of.filter(|dip| dip.p_value <= SIGNIFICANCE).map(|_| format!("modes of {what}"))
    };
    let left_out =
        (noise.excluded_runs > 0).then(|| format!("{} runs of another definition left out", noise.excluded_runs));
    let all = [
        drift(&noise.drift, "run"),
        drift(&noise.drift_within, "sample"),
        modes(noise.modes, "runs"),
        modes(noise.modes_within, "samples"),
        left_out,
    ];
    let told: Vec<String> = all.into_iter().flatten().collect();
    if told.is_empty() { NO_VALUE.to_owned() } else { told.join(", ") }
}

/// What the builds were measured on, each thing once.
fn provenance_lines(model: &NoiseModel, style: Style) -> String {
    let named = model.trained_on.iter().flat_map(|learnt| &learnt.provenance);
    let names: BTreeSet<&String> = named.clone().map(|(name, _)| name).collect();
    let line = |name: &String| {
        let values = named.clone().filter(|(other, _)| *other == name).flat_map(|(_, values)| values);
        let values: BTreeSet<&str> = values.map(String::as_str).collect();
        style.remark(name, &values.into_iter().collect::<Vec<_>>().join(", "))
    };
    names.into_iter().map(line).collect()
}

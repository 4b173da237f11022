//! Renders a model of noise.

use std::collections::BTreeSet;

use wb_compare::NoiseModel;
use wb_compare::model::noise::MetricNoise;
use wb_model::pluralize;

use super::figures::{format_figure, format_signed, readable_id};
use crate::phrasing::NO_VALUE;
use crate::text::{Style, Table, figure_columns, figure_row};

/// Significance level for reporting a trend or modes.
const SIGNIFICANCE: f64 = 0.05;

/// Renders a line for each metric: its variation between runs and within them, observed patterns, and whether it is
/// usable; then the data that the model was learnt from.
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
            share(variation.map(|variation| variation.between)),
            share(variation.map(|variation| variation.between_upper)),
            share(variation.and_then(|variation| variation.noise.within)),
            noise.outliers.to_string(),
            noise.disturbed.to_string(),
            describe_patterns(noise),
            noise.unusable_reason().map_or("yes".to_owned(), |reason| format!("no: {reason}")),
        ];
        table.row(figure_row(readable_id(id), figures));
    }
    let usable = model.checks.values().filter(|noise| noise.usable().is_some()).count();
    let runs: usize = model.trained_on.iter().map(|build| build.runs.len()).sum();
    let assumption =
        if model.is_single_system { ", each build a single run, all treated as runs of one system" } else { "" };
    let about = format!(
        "{}, {usable} of them usable; learnt from {} of {}{assumption}",
        pluralize(model.checks.len(), "check"),
        pluralize(runs, "run"),
        pluralize(model.trained_on.len(), "build"),
    );
    table.draw(style) + &style.indent(0, &about) + &provenance_lines(model, style)
}

fn describe_patterns(noise: &MetricNoise) -> String {
    let drift = |trend: &Option<wb_stats::Trend>, per: &str| {
        let significant = trend.as_ref().filter(|trend| trend.p_value <= SIGNIFICANCE);
        significant.map(|trend| format!("drift {} % a {per}", format_signed(trend.slope * 100.0)))
    };
    let modes = |dip: Option<wb_stats::Dip>, units: &str| {
        dip.filter(|dip| dip.p_value <= SIGNIFICANCE).map(|_| format!("modes of {units}"))
    };
    let left_out =
        (noise.excluded_runs > 0).then(|| format!("{} runs of another definition excluded", noise.excluded_runs));
    let all = [
        drift(&noise.drift, "run"),
        drift(&noise.drift_within, "sample"),
        noise.two_modes.map_or_else(
            || modes(noise.modes, "runs"),
            |modes| Some(format!("two modes of runs, {:.1} % apart", modes.apart.exp_m1() * 100.0)),
        ),
        modes(noise.modes_within, "samples"),
        left_out,
    ];
    let patterns: Vec<String> = all.into_iter().flatten().collect();
    if patterns.is_empty() { NO_VALUE.to_owned() } else { patterns.join(", ") }
}

fn provenance_lines(model: &NoiseModel, style: Style) -> String {
    let properties = model.trained_on.iter().flat_map(|build| &build.provenance);
    let names: BTreeSet<&String> = properties.clone().map(|(name, _)| name).collect();
    let line = |name: &String| {
        let values = properties.clone().filter(|(other, _)| *other == name).flat_map(|(_, values)| values);
        let values: BTreeSet<&str> = values.map(String::as_str).collect();
        style.remark(name, &values.into_iter().collect::<Vec<_>>().join(", "))
    };
    names.into_iter().map(line).collect()
}

//! Renders all details of cells for the terminal.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{CellId, MetricKey, Unit};
use wb_results::{AttemptResult, CellResult, CurveSet, MetricResult, NestedLatency, Study};

use super::Style;
use super::definitions::definition_list;
use super::nested::nested_latency_table;
use super::table::{Table, Tone, figure_columns, figure_row};
use super::wrap::wrap;
use crate::findings::group_findings_of_cell;
use crate::phrasing;
use crate::systems;

/// Renders all details of the cells that `is_selected` accepts, and the systems.
pub fn format(study: &Study, is_selected: impl Fn(&CellId) -> bool, style: Style) -> String {
    let cells = study.cells.iter().filter(|cell| is_selected(&cell.id));
    let mut parts: Vec<String> = cells.map(|result| cell_text(result, style)).collect();
    parts.extend(study.run.systems.iter().map(|system| systems::system_text(system, style)));
    parts.join("\n\n")
}

fn cell_text(cell: &CellResult, style: Style) -> String {
    let mut out = String::new();
    let (name, identifier) = (phrasing::cell_name(&cell.id), cell.id.to_string());
    for line in wrap(&name, style.width) {
        out += &format!("{}\n", style.paint(&line, Tone::Strong));
    }
    let pairs = [
        ("identifier", if identifier == name { String::new() } else { identifier }),
        ("test", cell.description.clone()),
        ("outcome", phrasing::describe_outcome(cell)),
        ("failures", phrasing::describe_failures_with_cause(&cell.failures).unwrap_or_default()),
        ("rule", phrasing::describe_rule(&cell.rule)),
        ("key", cell.key.to_string()),
    ];
    out += &definition_list(pairs.iter().map(|(name, text)| (*name, text.clone())), style);
    let params: Vec<(&str, String)> =
        cell.params.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect();
    let sections = [
        ("parameters", definition_list(params, style)),
        ("metrics", metrics_table(&cell.metrics, style)),
        ("samples", samples_table(cell, style)),
        ("remarks on samples", sample_remarks(cell, style)),
        ("findings", group_findings_of_cell(cell).iter().map(|finding| style.indent(2, finding)).collect()),
        ("provenance", definition_list(cell.provenance.iter().map(|(k, v)| (k.as_str(), v.clone())), style)),
    ];
    let (before, after) = sections.split_at(4);
    let add = |out: &mut String, (title, body): &(&str, String)| {
        if !body.is_empty() {
            *out += &style.heading(title);
            *out += body;
        }
    };
    before.iter().for_each(|section| add(&mut out, section));
    for cell_curve in &cell.curves {
        add(&mut out, &(cell_curve.title.as_str(), curve_table(cell_curve, style)));
    }
    for latency in &cell.latency {
        add(&mut out, &(&format!("latency: {}", latency.title), per_second_table(latency, style)));
    }
    after.iter().for_each(|section| add(&mut out, section));
    out
}

fn metrics_table(metrics: &[MetricResult], style: Style) -> String {
    let heads = ["n", "median", "", "min", "q1", "q3", "max", "mean", "stddev", "interval"];
    let mut table = Table::new(&figure_columns("", &heads));
    for result in metrics {
        let unit = &result.metric.unit;
        let versions = [(&result.summary, ""), (&result.undisturbed, " undisturbed")];
        for (summary, version) in versions {
            let Some(summary) = summary else { continue };
            let interval = phrasing::format_interval(summary, unit).unwrap_or_else(|| phrasing::NO_VALUE.to_owned());
            let figures = phrasing::summary_figures(summary, unit, "").into_iter().chain([interval]);
            table.row(figure_row(format!("  {}{version}", metric_name(result)), figures));
        }
        if result.summary.is_none() {
            table.row(figure_row(format!("  {}", metric_name(result)), ["0"]));
        }
    }
    if metrics.is_empty() { String::new() } else { table.draw(style) }
}

fn metric_name(result: &MetricResult) -> String {
    let primary = if result.metric.primary { " (primary)" } else { "" };
    format!("{}{primary}", result.key())
}

fn samples_table(cell: &CellResult, style: Style) -> String {
    let units: BTreeMap<MetricKey, &Unit> =
        cell.metrics.iter().map(|result| (result.key(), &result.metric.unit)).collect();
    let values = cell.attempts.iter().flat_map(|sample| sample.values.keys());
    let undeclared: BTreeSet<&MetricKey> = values.filter(|key| !units.contains_key(key)).collect();
    let declared = cell.metrics.iter().map(MetricResult::key);
    let keys: Vec<MetricKey> = declared.chain(undeclared.into_iter().cloned()).collect();
    let names: Vec<String> = keys.iter().map(MetricKey::to_string).collect();
    let columns: Vec<&str> = ["at", "took", "counted"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(&figure_columns("", &columns));
    for sample in &cell.attempts {
        let mut figures = vec![
            phrasing::format_elapsed(sample.start_seconds),
            phrasing::format_duration(sample.seconds),
            if sample.counted { "yes" } else { "no" }.to_owned(),
        ];
        for key in &keys {
            let unit = units.get(key);
            let figure = |value: &f64| unit.map_or_else(|| value.to_string(), |unit| unit.quantity(*value).to_string());
            figures.push(sample.values.get(key).map_or_else(|| phrasing::NO_VALUE.to_owned(), figure));
        }
        table.row(figure_row(format!("  {}", sample_name(sample)), figures));
    }
    let unlisted = phrasing::unlisted_samples(cell).map(|note| format!("  {note}\n")).unwrap_or_default();
    if cell.attempts.is_empty() { unlisted } else { table.draw(style) + &unlisted }
}

fn sample_name(sample: &AttemptResult) -> String {
    let attempt = if sample.attempt > 0 { format!(" attempt {}", sample.attempt) } else { String::new() };
    phrasing::sample_name(sample) + &attempt
}

/// Renders why samples are not counted, and what disturbed them.
fn sample_remarks(cell: &CellResult, style: Style) -> String {
    let remarks = cell.attempts.iter().flat_map(|sample| {
        phrasing::sample_remarks(sample).into_iter().map(move |remark| style.remark(&sample_name(sample), &remark))
    });
    remarks.collect()
}

fn curve_table(curve: &CurveSet, style: Style) -> String {
    let columns: Vec<&str> = curve.lines.iter().flat_map(|line| [line.name.as_str(), "interval"]).collect();
    let mut table = Table::new(&figure_columns(&format!("  {}", curve.x.0), &columns));
    for x in phrasing::x_values(curve) {
        let mut figures = Vec::new();
        let points = curve.lines.iter().filter_map(|line| line.points.iter().find(|point| point.x == x));
        let common = curve.y.1.common(points.map(|point| point.y));
        let figure = |value: f64| common.format(value);
        for line in &curve.lines {
            let point = line.points.iter().find(|point| point.x == x);
            let ends = point.and_then(|point| point.interval);
            figures.push(point.map_or_else(|| phrasing::NO_VALUE.to_owned(), |point| figure(point.y)));
            figures.push(ends.map_or_else(String::new, |(low, high)| format!("{} to {}", figure(low), figure(high))));
        }
        table.row(figure_row(format!("  {}", curve.x.1.quantity(x)), figures));
    }
    table.draw(style)
}

fn per_second_table(table: &NestedLatency, style: Style) -> String {
    let rows = table.rows.iter().map(|row| (row.percentile, row.cumulative_ns, row.over_seconds_ns.clone()));
    nested_latency_table(&table.over_seconds, rows, style)
}

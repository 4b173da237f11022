//! Everything of one cell, as the page shows it.

use std::collections::BTreeMap;

use minijinja::Value;
use serde::Serialize;
use wb_model::Unit;
use wb_stats::Summary;
use wb_study::result::{CellResult, Curve, MetricResult, NestedLatency, SampleResult};

use super::RunExtras;
use super::components::{IdGenerator, NamedText, PageFigure, named_text};
use crate::chart::{self, CurveChart, SampleMark, TelemetryChart, TelemetrySegment};
use crate::phrasing;

/// A cell.
#[derive(Serialize)]
pub(super) struct CellView {
    id: String,
    label: String,
    name: String,
    outcome: String,
    facts: Vec<NamedText>,
    params: Vec<NamedText>,
    provenance: Vec<NamedText>,
    findings: Vec<String>,
    metrics: Vec<MetricView>,
    curves: Vec<CurveView>,
    latency: Vec<TableView>,
    sample_heads: Vec<String>,
    samples: Vec<SampleView>,
    telemetry: Vec<TelemetryView>,
    command: String,
}

#[derive(Serialize)]
struct MetricView {
    name: String,
    direction: &'static str,
    figures: Vec<String>,
}

#[derive(Serialize)]
struct CurveView {
    figure: PageFigure,
    table: TableView,
}

/// A table of figures: the first column names the rows.
#[derive(Serialize)]
struct TableView {
    name: String,
    title: String,
    /// What all columns after the second have in common.
    over: Option<&'static str>,
    heads: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

#[derive(Serialize)]
struct SampleView {
    name: String,
    mark: Value,
    state: &'static str,
    start: String,
    duration: String,
    values: Vec<String>,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct TelemetryView {
    name: String,
    chart: Value,
}

impl CellView {
    pub(super) fn new(
        cell: &CellResult,
        label: String,
        id: String,
        extras: &RunExtras,
        common: &BTreeMap<&str, &str>,
        ids: &mut IdGenerator,
    ) -> Self {
        let own = cell.provenance.iter().filter(|(name, _)| !common.contains_key(name.as_str()));
        Self {
            id,
            label,
            name: cell.cell.to_string(),
            outcome: cell.outcome.to_string(),
            facts: vec![
                named_text("rule", phrasing::describe_rule(&cell.rule)),
                named_text("definition key", cell.key.to_string()),
            ],
            params: cell.params.iter().map(|(name, value)| named_text(name, value.to_string())).collect(),
            provenance: own.map(|(name, text)| named_text(name, text)).collect(),
            findings: cell.findings.clone(),
            metrics: cell.metrics.iter().flat_map(metric_views).collect(),
            curves: cell.curves.iter().map(|curve| CurveView::new(curve, ids)).collect(),
            latency: cell.latency.iter().map(latency_table).collect(),
            sample_heads: cell.metrics.iter().map(metric_name).collect(),
            samples: cell.samples.iter().map(|one| sample_view(cell, one)).collect(),
            telemetry: telemetry_views(cell, extras, ids),
            command: rerun_command(cell),
        }
    }
}

fn metric_name(result: &MetricResult) -> String {
    phrasing::value_key(&result.metric, result.worker.as_ref())
}

/// A metric's line, and one for its undisturbed samples where some are disturbed.
fn metric_views(result: &MetricResult) -> Vec<MetricView> {
    let view = |name: String, summary: &Summary| MetricView {
        name,
        direction: phrasing::describe_direction(result.metric.direction),
        figures: figures(summary, &result.metric.unit),
    };
    let all = result.summary.iter().map(|summary| view(metric_name(result), summary));
    let quiet = result.undisturbed.iter().map(|summary| view("… undisturbed".to_owned(), summary));
    all.chain(quiet).collect()
}

fn figures(summary: &Summary, unit: &Unit) -> Vec<String> {
    let figure = |value: f64| unit.quantity(value).to_string();
    vec![
        summary.n.to_string(),
        figure(summary.median),
        phrasing::format_half_width(summary).unwrap_or_else(|| phrasing::NO_VALUE.to_owned()),
        figure(summary.min),
        figure(summary.q1),
        figure(summary.q3),
        figure(summary.max),
        figure(summary.mean),
        summary.stddev.map_or_else(|| phrasing::NO_VALUE.to_owned(), figure),
    ]
}

impl CurveView {
    fn new(curve: &Curve, ids: &mut IdGenerator) -> Self {
        let rows = phrasing::x_values(curve).into_iter().map(|x| {
            let at = |line: &wb_study::result::CurveLine| {
                let point = line.points.iter().find(|point| point.x == x);
                point.map_or_else(|| phrasing::NO_VALUE.to_owned(), |point| curve.y.1.quantity(point.y).to_string())
            };
            (curve.x.1.quantity(x).to_string(), curve.lines.iter().map(at).collect())
        });
        let table = TableView {
            name: curve.title.clone(),
            title: format!("{}, in figures", curve.title),
            over: None,
            heads: std::iter::once(curve.x.0.clone()).chain(curve.lines.iter().map(|line| line.name.clone())).collect(),
            rows: rows.collect(),
        };
        let caption = format!("{}: medians over the samples; the bands are their intervals.", curve.title);
        Self { figure: PageFigure::of(&CurveChart(curve), caption, ids), table }
    }
}

fn latency_table(latency: &NestedLatency) -> TableView {
    let ns = Unit::new("ns");
    let heads = ["percentile", "all operations"].map(str::to_owned).into_iter();
    let over = latency.over_seconds.iter().map(|percentile| phrasing::percentile_label(*percentile));
    let rows = latency.rows.iter().map(|row| {
        let values = std::iter::once(row.cumulative).chain(row.per_second.iter().copied());
        (format!("p{}", row.percentile), values.map(|value| ns.quantity(value).to_string()).collect())
    });
    let name = format!("{} latency", latency.title);
    let title = "percentiles of latency, over all operations and of each second by itself".to_owned();
    TableView { name, title, over: Some("over the seconds"), heads: heads.chain(over).collect(), rows: rows.collect() }
}

fn sample_view(cell: &CellResult, sample: &SampleResult) -> SampleView {
    let values = cell.metrics.iter().map(|result| {
        let value = sample.values.get(&metric_name(result));
        value.map_or_else(|| phrasing::NO_VALUE.to_owned(), |value| result.metric.unit.quantity(*value).to_string())
    });
    let primary = cell.primary().and_then(|primary| sample.values.get(&metric_name(primary)).copied());
    let mark = SampleMark::of(sample, primary);
    let attempt = if sample.attempt > 0 { format!(", attempt {}", sample.attempt) } else { String::new() };
    SampleView {
        name: format!("{} {}{attempt}", phrasing::purpose_label(sample.purpose), sample.sample),
        mark: Value::from_safe_string(chart::mark_key(mark)),
        state: mark.name(),
        start: phrasing::format_elapsed(sample.start_seconds),
        duration: phrasing::format_duration(sample.seconds),
        values: values.collect(),
        remarks: phrasing::sample_remarks(sample),
    }
}

const TELEMETRY_WIDTH: f64 = 310.0;

/// One strip for each thing that was watched, over all samples of the cell.
fn telemetry_views(cell: &CellResult, extras: &RunExtras, ids: &mut IdGenerator) -> Vec<TelemetryView> {
    let watched = cell.samples.iter().filter_map(|sample| Some((sample, extras.telemetry.get(&sample.folder)?)));
    let mut strips: Vec<TelemetryChart> = Vec::new();
    for (sample, series) in watched {
        let disturbed = if sample.disturbances.is_empty() { "" } else { ", disturbed" };
        let label = format!("{} {}{disturbed}", phrasing::purpose_label(sample.purpose), sample.sample);
        let plain = sample.counted && sample.disturbances.is_empty();
        for series in series {
            let segment =
                TelemetrySegment { label: label.clone(), is_undisturbed: plain, points: series.points.clone() };
            match strips.iter_mut().find(|strip| strip.title == series.name && strip.unit == series.unit) {
                Some(strip) => strip.segments.push(segment),
                None => {
                    let (title, unit) = (series.name.clone(), series.unit.clone());
                    strips.push(TelemetryChart { title, unit, segments: vec![segment] });
                }
            }
        }
    }
    let mut drawn = |strip: &TelemetryChart| TelemetryView {
        name: strip.title.clone(),
        chart: Value::from_safe_string(chart::inline(strip, TELEMETRY_WIDTH, &ids.next())),
    };
    strips.iter().map(&mut drawn).collect()
}

/// The command that measures this cell again, with every parameter as it was.
fn rerun_command(cell: &CellResult) -> String {
    let params = serde_json::to_string(&cell.params).unwrap_or_default();
    let quoted = format!("{}:{params}", cell.cell.test).replace('\'', r"'\''");
    format!("weighbridge run '{quoted}'")
}

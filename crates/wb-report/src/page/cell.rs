//! View of a cell with all details for the page.

use std::collections::BTreeMap;

use minijinja::Value;
use serde::Serialize;
use wb_model::Unit;
use wb_results::{AttemptResult, CellResult, CurveSet, MetricResult, NestedLatency};
use wb_stats::Summary;

use super::RunExtras;
use super::components::{FigureTable, IdGenerator, NamedText, PageFigure, named_text};
use crate::chart::{self, CurveChart, SampleMark, TelemetryChart, TelemetrySegment};
use crate::findings::group_findings_of_cell;
use crate::phrasing;

#[derive(Serialize)]
pub(super) struct CellView {
    id: String,
    label: String,
    name: String,
    outcome: String,
    failures: Option<String>,
    facts: Vec<NamedText>,
    params: Vec<NamedText>,
    provenance: Vec<NamedText>,
    findings: Vec<String>,
    metrics: Vec<MetricView>,
    curves: Vec<CurveView>,
    latency: Vec<LatencyView>,
    sample_heads: Vec<String>,
    samples: Vec<SampleView>,
    unlisted: Option<String>,
    telemetry: Vec<TelemetryView>,
    command: String,
}

#[derive(Serialize)]
struct MetricView {
    name: String,
    direction: &'static str,
    figures: [String; 9],
}

#[derive(Serialize)]
struct CurveView {
    figure: PageFigure,
    table: FigureTable,
}

#[derive(Serialize)]
struct LatencyView {
    name: String,
    /// Percentiles over the time of a sample.
    figure: Option<PageFigure>,
    table: FigureTable,
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
        let distinct = cell.provenance.iter().filter(|(name, _)| !common.contains_key(name.as_str()));
        Self {
            id,
            label,
            name: cell.id.to_string(),
            outcome: phrasing::describe_outcome(cell),
            failures: phrasing::describe_failures_with_cause(&cell.failures),
            facts: vec![
                named_text("rule", phrasing::describe_rule(&cell.rule)),
                named_text("definition key", cell.key.to_string()),
            ],
            params: cell.params.iter().map(|(name, value)| named_text(name, value.to_string())).collect(),
            provenance: distinct.map(|(name, text)| named_text(name, text)).collect(),
            findings: group_findings_of_cell(cell),
            metrics: cell.metrics.iter().flat_map(metric_views).collect(),
            curves: cell.curves.iter().map(|curve| CurveView::new(curve, ids)).collect(),
            latency: cell.latency.iter().map(|latency| latency_view(latency, ids)).collect(),
            sample_heads: cell.metrics.iter().map(|result| result.key().to_string()).collect(),
            samples: cell.attempts.iter().map(|result| sample_view(cell, result)).collect(),
            unlisted: phrasing::unlisted_samples(cell),
            telemetry: telemetry_views(cell, extras, ids),
            command: rerun_command(cell),
        }
    }
}

/// A metric's row, and one for its undisturbed samples if some are disturbed.
fn metric_views(result: &MetricResult) -> Vec<MetricView> {
    let view = |name: String, summary: &Summary| MetricView {
        name,
        direction: phrasing::describe_direction(result.metric.direction),
        figures: phrasing::summary_figures(summary, &result.metric.unit, phrasing::NO_VALUE),
    };
    let all = result.summary.iter().map(|summary| view(result.key().to_string(), summary));
    let undisturbed = result.undisturbed.iter().map(|summary| view("… undisturbed".to_owned(), summary));
    all.chain(undisturbed).collect()
}

impl CurveView {
    fn new(curve: &CurveSet, ids: &mut IdGenerator) -> Self {
        let rows = phrasing::x_values(curve).into_iter().map(|x| {
            let value =
                |line: &wb_results::SummaryCurve| line.points.iter().find(|point| point.x == x).map(|point| point.y);
            let common = curve.y.1.common(curve.lines.iter().filter_map(value));
            let value_at = |line: &wb_results::SummaryCurve| {
                value(line).map_or_else(|| phrasing::NO_VALUE.to_owned(), |value| common.format(value))
            };
            (curve.x.1.quantity(x).to_string(), curve.lines.iter().map(value_at).collect())
        });
        let table = FigureTable {
            title: format!("{}, in figures", curve.title),
            over: None,
            heads: std::iter::once(curve.x.0.clone()).chain(curve.lines.iter().map(|line| line.name.clone())).collect(),
            rows: rows.collect(),
        };
        let caption = format!("{}: medians over the samples; the bands are their intervals.", curve.title);
        Self { figure: PageFigure::new(&CurveChart(curve), caption, ids), table }
    }
}

fn latency_view(latency: &NestedLatency, ids: &mut IdGenerator) -> LatencyView {
    let ns = Unit::new("ns");
    let heads = ["percentile", "all operations"].map(str::to_owned).into_iter();
    let over = latency.over_seconds.iter().map(|percentile| phrasing::percentile_label(*percentile));
    let rows = latency.rows.iter().map(|row| {
        let values = || std::iter::once(row.cumulative_ns).chain(row.over_seconds_ns.iter().copied());
        let common = ns.common(values());
        (format!("p{}", row.percentile), values().map(|value| common.format(value)).collect())
    });
    let name = format!("{} latency", latency.title);
    let title = "percentiles of latency over all operations and per second".to_owned();
    let (heads, rows) = (heads.chain(over).collect(), rows.collect());
    let figure = latency.over_time.as_ref().map(|curve| {
        let caption = format!(
            "{}: percentiles of the operations at that time, medians over the samples; the bands are their intervals.",
            curve.title
        );
        PageFigure::new(&CurveChart(curve), caption, ids)
    });
    LatencyView { name, figure, table: FigureTable { title, over: Some("over the seconds"), heads, rows } }
}

fn sample_view(cell: &CellResult, sample: &AttemptResult) -> SampleView {
    let values = cell.metrics.iter().map(|result| {
        let value = sample.values.get(&result.key());
        value.map_or_else(|| phrasing::NO_VALUE.to_owned(), |value| result.metric.unit.quantity(*value).to_string())
    });
    let primary = cell.primary().and_then(|primary| sample.values.get(&primary.key()).copied());
    let mark = SampleMark::new(sample, primary);
    let attempt = if sample.attempt > 0 { format!(", attempt {}", sample.attempt) } else { String::new() };
    SampleView {
        name: phrasing::sample_name(sample) + &attempt,
        mark: Value::from_safe_string(mark.legend_symbol()),
        state: mark.name(),
        start: phrasing::format_elapsed(sample.start_seconds),
        duration: phrasing::format_duration(sample.seconds),
        values: values.collect(),
        remarks: phrasing::sample_remarks(sample),
    }
}

const TELEMETRY_WIDTH: f64 = 310.0;

fn telemetry_views(cell: &CellResult, extras: &RunExtras, ids: &mut IdGenerator) -> Vec<TelemetryView> {
    let recorded = cell.attempts.iter().filter_map(|sample| Some((sample, extras.telemetry.get(&sample.folder)?)));
    let mut strips: Vec<TelemetryChart> = Vec::new();
    for (sample, series) in recorded {
        let disturbed = if sample.disturbances.is_empty() { "" } else { ", disturbed" };
        let label = phrasing::sample_name(sample) + disturbed;
        let plain = sample.counted && sample.disturbances.is_empty();
        for series in series {
            let segment = TelemetrySegment {
                label: label.clone(),
                is_counted_and_undisturbed: plain,
                points: series.points.clone(),
            };
            match strips.iter_mut().find(|strip| strip.title == series.name && strip.unit == series.unit) {
                Some(strip) => strip.segments.push(segment),
                None => {
                    let (title, unit) = (series.name.clone(), series.unit.clone());
                    strips.push(TelemetryChart { title, unit, segments: vec![segment] });
                }
            }
        }
    }
    let mut view = |strip: &TelemetryChart| TelemetryView {
        name: strip.title.clone(),
        chart: Value::from_safe_string(chart::inline(strip, TELEMETRY_WIDTH, &ids.next())),
    };
    strips.iter().map(&mut view).collect()
}

fn rerun_command(cell: &CellResult) -> String {
    let params = serde_json::to_string(&cell.params).expect("plain data has a JSON form");
    let quoted = format!("{}:{params}", cell.id.test).replace('\'', r"'\''");
    format!("weighbridge run '{quoted}'")
}

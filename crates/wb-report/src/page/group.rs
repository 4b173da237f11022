//! View of a group of cells for the page: rows of the overview, charts, and details of its cells.

use minijinja::Value;
use serde::Serialize;
use wb_model::CellOutcome;
use wb_results::{CellResult, MetricResult};

use super::RunExtras;
use super::cell::CellView;
use super::components::{IdGenerator, PageFigure};
use super::metric_charts;
use super::view::Detail;
use crate::chart::{SummaryBars, summary_bar};
use crate::groups::CellGroup;
use crate::phrasing;

#[derive(Serialize)]
pub(super) struct GroupView {
    id: String,
    title: String,
    summary: String,
    shared: String,
    metric_description: String,
    rows: Vec<RowView>,
    axis: Option<Value>,
    is_log: bool,
    figures: Vec<PageFigure>,
    other_figures: Vec<PageFigure>,
    cells: Vec<CellView>,
}

#[derive(Serialize)]
struct RowView {
    id: String,
    label: String,
    median: String,
    half_width: String,
    bar: Option<Value>,
    spread: String,
    n: String,
    outcome: String,
    css_class: &'static str,
    symbol: &'static str,
    failures: Option<String>,
    invalid: usize,
    disturbed: usize,
    /// What has no column: the other primary metrics, why the cell was not measured as requested, and the estimate
    /// without disturbed samples.
    remarks: Vec<String>,
}

impl GroupView {
    pub(super) fn new(
        group: &CellGroup,
        index: usize,
        extras: &RunExtras,
        common: &std::collections::BTreeMap<&str, &str>,
        detail: Detail,
        ids: &mut IdGenerator,
    ) -> Self {
        let is_full = detail != Detail::Rows;
        let bars = group.scale.filter(|_| is_full).map(|(unit, _)| {
            let summaries = group.cells.iter().filter_map(|cell| cell.primary()?.summary.as_ref());
            SummaryBars::new(unit, summaries)
        });
        let id = |nth: usize| format!("g{index}-{nth}");
        let cells = group.cells.iter().enumerate();
        Self {
            id: format!("g{index}"),
            title: group.title.clone(),
            summary: group.summary().to_owned(),
            shared: group.shared_text(),
            metric_description: group.metric_description(),
            rows: cells.clone().map(|(nth, cell)| overview_row(group, cell, id(nth), bars.as_ref())).collect(),
            axis: bars.as_ref().map(|bars| Value::from_safe_string(bars.axis())),
            is_log: bars.as_ref().is_some_and(SummaryBars::is_log),
            figures: match detail {
                Detail::Rows => Vec::new(),
                Detail::FewCharts => metric_charts::first(group, ids),
                Detail::Full => {
                    let first = metric_charts::first(group, ids);
                    first.into_iter().chain(metric_charts::further_primary(group, ids)).collect()
                }
            },
            other_figures: if detail == Detail::Full { metric_charts::others(group, ids) } else { Vec::new() },
            cells: cells
                .filter(|_| is_full)
                .map(|(nth, cell)| CellView::new(cell, group.label(cell), id(nth), extras, common, ids))
                .collect(),
        }
    }
}

fn overview_row(group: &CellGroup, cell: &CellResult, id: String, bars: Option<&SummaryBars>) -> RowView {
    let primary = cell.primary();
    let summary = primary.and_then(|primary| primary.summary.as_ref());
    let unit = primary.map(|primary| &primary.metric.unit);
    let description = unit.zip(summary).map(|(unit, summary)| {
        let interval =
            phrasing::format_interval(summary, unit).map(|ends| format!("interval {ends}, ")).unwrap_or_default();
        let common = unit.common([summary.min, summary.max]);
        format!("{interval}range {} to {}", common.format(summary.min), common.format(summary.max))
    });
    let chart = bars
        .zip(summary)
        .zip(description)
        .map(|((bars, summary), description)| summary_bar(bars, summary, &description));
    let [median, half_width, spread, n] = phrasing::overview_values(cell);
    let (css_class, symbol) = outcome_symbol(&cell.outcome);
    RowView {
        id,
        label: group.label(cell),
        median,
        half_width,
        bar: chart.map(Value::from_safe_string),
        spread,
        n,
        outcome: phrasing::outcome_label(&cell.outcome) + &phrasing::describe_workers(cell),
        css_class,
        symbol,
        failures: phrasing::describe_failures(&cell.failures),
        invalid: phrasing::invalid_count(cell),
        disturbed: phrasing::disturbed_count(cell),
        remarks: [describe_other_primaries(cell), overview_reason(cell), primary.and_then(describe_undisturbed)]
            .into_iter()
            .flatten()
            .collect(),
    }
}

fn describe_other_primaries(cell: &CellResult) -> Option<String> {
    let others = cell.primary_metrics().skip(1).map(|result| {
        let [median, half_width, ..] = phrasing::metric_values(cell, Some(result));
        format!("{} {median} {half_width}", result.metric.name).trim_end().to_owned()
    });
    let others: Vec<String> = others.collect();
    (!others.is_empty()).then(|| others.join(", "))
}

/// Why a cell was not measured as requested, and why attempts at it failed.
fn overview_reason(cell: &CellResult) -> Option<String> {
    let incompleteness = phrasing::describe_incompleteness(cell);
    let is_failed = matches!(cell.outcome, CellOutcome::Failed { .. });
    let failures = phrasing::describe_failures_with_cause(&cell.failures).filter(|_| !is_failed);
    let reasons: Vec<String> = incompleteness.into_iter().chain(failures).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn describe_undisturbed(primary: &MetricResult) -> Option<String> {
    let summary = primary.undisturbed.as_ref()?;
    let half = phrasing::format_half_width(summary).map(|half| format!(" {half}")).unwrap_or_default();
    Some(format!(
        "without the disturbed samples {}{half}, n {}",
        primary.metric.unit.quantity(summary.median),
        summary.n
    ))
}

fn outcome_symbol(outcome: &CellOutcome) -> (&'static str, &'static str) {
    match outcome {
        CellOutcome::Measured => ("good", "●"),
        CellOutcome::NotConverged { .. } => ("doubtful", "◐"),
        CellOutcome::Partial { .. } => ("doubtful", "◔"),
        CellOutcome::Failed { .. } => ("bad", "✕"),
        CellOutcome::Unsupported { .. } => ("none", "○"),
    }
}

//! View of a group of cells for the page: rows of the overview, charts, and details of its cells.

use minijinja::Value;
use serde::Serialize;
use wb_model::CellOutcome;
use wb_study::result::{CellResult, MetricResult};

use super::RunExtras;
use super::cell::CellView;
use super::components::{IdGenerator, PageFigure};
use super::view::Detail;
use crate::chart::{BoxPlot, BoxRow, SampleDot, SampleMark, SampleTimeline, SummaryBars, TimelineRow, summary_bar};
use crate::groups::CellGroup;
use crate::phrasing;

/// View of a group.
#[derive(Serialize)]
pub(super) struct GroupView {
    id: String,
    title: String,
    summary: String,
    shared: String,
    metric_description: String,
    rows: Vec<RowView>,
    axis: Option<Value>,
    figures: Vec<PageFigure>,
    cells: Vec<CellView>,
}

/// A cell's row in the overview.
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
    disturbed: usize,
    undisturbed: Option<String>,
    reason: Option<String>,
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
        let is_full = detail == Detail::Full;
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
            figures: if is_full { group_charts(group, ids) } else { Vec::new() },
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
        format!("{interval}range {} to {}", unit.quantity(summary.min), unit.quantity(summary.max))
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
        disturbed: phrasing::disturbed_count(cell),
        undisturbed: primary.and_then(describe_undisturbed),
        reason: overview_reason(cell),
    }
}

/// Why a cell was not measured as requested, and why attempts at it failed.
fn overview_reason(cell: &CellResult) -> Option<String> {
    let incompleteness = phrasing::describe_incompleteness(cell);
    let is_failed = matches!(cell.outcome, CellOutcome::Failed { .. });
    let failures = phrasing::describe_failures_with_cause(&cell.failures).filter(|_| !is_failed);
    let reasons: Vec<String> = incompleteness.into_iter().chain(failures).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Describes the estimate without the disturbed samples.
fn describe_undisturbed(primary: &MetricResult) -> Option<String> {
    let summary = primary.undisturbed.as_ref()?;
    let half = phrasing::format_half_width(summary).map(|half| format!(" {half}")).unwrap_or_default();
    Some(format!(
        "without the disturbed samples {}{half}, n {}",
        primary.metric.unit.quantity(summary.median),
        summary.n
    ))
}

/// An outcome's CSS class and symbol, in addition to its word.
fn outcome_symbol(outcome: &CellOutcome) -> (&'static str, &'static str) {
    match outcome {
        CellOutcome::Measured => ("good", "●"),
        CellOutcome::NotConverged { .. } => ("doubtful", "◐"),
        CellOutcome::Partial { .. } => ("doubtful", "◔"),
        CellOutcome::Failed { .. } => ("bad", "✕"),
        CellOutcome::Unsupported { .. } => ("none", "○"),
    }
}

/// The number of samples of one cell that charts show of imported series, evenly spread.
const PLOTTED_SAMPLES: usize = 1000;

fn plotted_samples(step: usize) -> String {
    match step {
        1 => "every sample".to_owned(),
        step => format!("every sample, or of long series one of up to {step}"),
    }
}

fn group_charts(group: &CellGroup, ids: &mut IdGenerator) -> Vec<PageFigure> {
    let Some((unit, _)) = group.scale else { return Vec::new() };
    let metric_name = group.metric().map_or("primary metric", |metric| metric.name.as_str());
    let mut boxes = Vec::new();
    let mut strips = Vec::new();
    let mut largest_step = 1;
    for cell in &group.cells {
        let Some(primary) = cell.primary() else { continue };
        let key = primary.key();
        let step = cell.series_count().div_ceil(PLOTTED_SAMPLES).max(1);
        largest_step = largest_step.max(step);
        let mut dots: Vec<SampleDot> = cell.attempts.iter().map(|sample| SampleDot::of(sample, &key, unit)).collect();
        dots.extend(cell.series_samples(step).map(|sample| SampleDot::of(&sample, &key, unit)));
        let label = group.label(cell);
        if let Some(summary) = primary.summary.clone() {
            let counts = |dot: &&SampleDot| matches!(dot.mark, SampleMark::Counted | SampleMark::Disturbed);
            let dots = dots.iter().filter(counts).cloned().collect();
            boxes.push(BoxRow { dots, ..BoxRow::new(label.clone(), summary) });
        }
        if !dots.is_empty() {
            strips.push(TimelineRow { label, summary: primary.summary.clone(), dots });
        }
    }
    let mut figures = Vec::new();
    if !boxes.is_empty() {
        let title = format!("{}: {metric_name} by case", group.title);
        let caption = format!(
            "{metric_name}: range, quartiles, median and {}; below each box the 95 % interval of the median.",
            plotted_samples(largest_step)
        );
        figures.push(PageFigure::of(&BoxPlot::new(title, unit.clone(), boxes), caption, ids));
    }
    if !strips.is_empty() {
        let title = format!("{}: samples in time order", group.title);
        let which = match largest_step {
            1 => "The samples".to_owned(),
            step => format!("The samples ({})", plotted_samples(step)),
        };
        let caption = format!(
            "{which} in time order, each row on its own scale, with their median and its interval. Outliers beyond the \
             scale are drawn at its edge, with an arrow."
        );
        let occurs = |mark: &SampleMark| strips.iter().flat_map(|row| &row.dots).any(|dot| dot.mark == *mark);
        let marks: Vec<SampleMark> = SampleMark::ALL.into_iter().filter(occurs).collect();
        let legend = marks.into_iter().map(|mark| (mark.legend_symbol(), mark.name()));
        let sequence = SampleTimeline { title, unit: unit.clone(), rows: strips };
        figures.push(PageFigure::of(&sequence, caption, ids).with_legend(legend));
    }
    figures
}

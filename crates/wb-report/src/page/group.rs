//! A group of cells on the page: its lines in the overview, its charts, and its cells in full.

use minijinja::Value;
use serde::Serialize;
use wb_model::CellOutcome;
use wb_study::result::{CellResult, MetricResult};

use super::Extras;
use super::cell::CellView;
use super::pieces::{Figure, Ids};
use crate::chart::{Bars, BoxPlot, BoxRow, Dot, Mark, Sequence, SequenceRow, bar, mark_key};
use crate::groups::Group;
use crate::words;

/// A group.
#[derive(Serialize)]
pub(super) struct GroupView {
    id: String,
    title: String,
    summary: String,
    shared: String,
    measure: String,
    rows: Vec<RowView>,
    axis: Option<Value>,
    figures: Vec<Figure>,
    cells: Vec<CellView>,
}

/// A cell's line in the overview.
#[derive(Serialize)]
struct RowView {
    id: String,
    label: String,
    median: String,
    plus_minus: String,
    bar: Option<Value>,
    spread: String,
    n: usize,
    outcome: String,
    kind: &'static str,
    symbol: &'static str,
    disturbed: usize,
    undisturbed: Option<String>,
    why: Option<String>,
}

impl GroupView {
    pub(super) fn new(
        group: &Group,
        at: usize,
        extras: &Extras,
        common: &std::collections::BTreeMap<&str, &str>,
        ids: &mut Ids,
    ) -> Self {
        let bars = group.scale.map(|(unit, _)| {
            let summaries = group.cells.iter().filter_map(|cell| cell.primary()?.summary.as_ref());
            Bars::new(unit, summaries)
        });
        let id = |nth: usize| format!("g{at}-{nth}");
        let cells = group.cells.iter().enumerate();
        Self {
            id: format!("g{at}"),
            title: group.title.clone(),
            summary: group.summary().to_owned(),
            shared: group.shared_text(),
            measure: group.measure(),
            rows: cells.clone().map(|(nth, cell)| row(group, cell, id(nth), bars.as_ref())).collect(),
            axis: bars.as_ref().map(|bars| Value::from_safe_string(bars.axis())),
            figures: figures(group, ids),
            cells: cells
                .map(|(nth, cell)| CellView::new(cell, group.label(cell), id(nth), extras, common, ids))
                .collect(),
        }
    }
}

fn row(group: &Group, cell: &CellResult, id: String, bars: Option<&Bars>) -> RowView {
    let primary = cell.primary();
    let summary = primary.and_then(|primary| primary.summary.as_ref());
    let or_none = |text: Option<String>| text.unwrap_or_else(|| words::NONE.to_owned());
    let unit = primary.map(|primary| &primary.metric.unit);
    let median = unit.zip(summary).map(|(unit, summary)| unit.figure(summary.median).to_string());
    let told = unit.zip(summary).map(|(unit, summary)| {
        let interval = words::interval(summary, unit).map(|ends| format!("interval {ends}, ")).unwrap_or_default();
        format!("{interval}range {} to {}", unit.figure(summary.min), unit.figure(summary.max))
    });
    let drawn = bars.zip(summary).zip(told).map(|((bars, summary), told)| bar(bars, summary, &told));
    let (kind, symbol) = look(&cell.outcome);
    RowView {
        id,
        label: group.label(cell),
        median: or_none(median),
        plus_minus: summary.and_then(words::plus_minus).unwrap_or_default(),
        bar: drawn.map(Value::from_safe_string),
        spread: or_none(summary.and_then(words::spread)),
        n: summary.map_or(0, |summary| summary.n),
        outcome: words::outcome(&cell.outcome) + &words::place(cell),
        kind,
        symbol,
        disturbed: words::disturbed(cell),
        undisturbed: primary.and_then(undisturbed),
        why: words::shortfall(cell),
    }
}

/// The estimate without the disturbed samples.
fn undisturbed(primary: &MetricResult) -> Option<String> {
    let quiet = primary.undisturbed.as_ref()?;
    let half = words::plus_minus(quiet).map(|half| format!(" {half}")).unwrap_or_default();
    Some(format!("without the disturbed samples {}{half}, n {}", primary.metric.unit.figure(quiet.median), quiet.n))
}

/// An outcome's class and symbol: two carriers of meaning beside the word.
fn look(outcome: &CellOutcome) -> (&'static str, &'static str) {
    match outcome {
        CellOutcome::Measured => ("good", "●"),
        CellOutcome::NotConverged { .. } => ("doubtful", "◐"),
        CellOutcome::Partial { .. } => ("doubtful", "◔"),
        CellOutcome::Failed { .. } => ("bad", "✕"),
        CellOutcome::Unsupported { .. } => ("none", "○"),
    }
}

fn figures(group: &Group, ids: &mut Ids) -> Vec<Figure> {
    let Some((unit, _)) = group.scale else { return Vec::new() };
    let measure = group.metric().map_or("primary metric", |metric| metric.name.as_str());
    let mut boxes = Vec::new();
    let mut strips = Vec::new();
    for cell in &group.cells {
        let Some(primary) = cell.primary() else { continue };
        let key = words::value_key(&primary.metric, primary.worker.as_ref());
        let dots: Vec<Dot> = cell.samples.iter().map(|sample| Dot::of(sample, &key, unit)).collect();
        let label = group.label(cell);
        if let Some(summary) = primary.summary.clone() {
            let counts = |dot: &&Dot| matches!(dot.mark, Mark::Counted | Mark::Disturbed);
            let dots = dots.iter().filter(counts).cloned().collect();
            boxes.push(BoxRow { dots, ..BoxRow::new(label.clone(), summary) });
        }
        if !dots.is_empty() {
            strips.push(SequenceRow { label, summary: primary.summary.clone(), dots });
        }
    }
    let mut figures = Vec::new();
    if !boxes.is_empty() {
        let title = format!("{}: {measure} by case", group.title);
        let caption = format!(
            "{measure}: range, quartiles, median and every sample; beneath each box the 95 % interval of the median."
        );
        figures.push(Figure::of(&BoxPlot::new(title, unit.clone(), boxes), caption, ids));
    }
    if !strips.is_empty() {
        let title = format!("{}: samples in time order", group.title);
        let caption = "The samples in time order, each strip on a scale of its own, before their median and its \
                       interval. A sample far outside is drawn at the edge, with an arrow.";
        let occurs = |mark: &Mark| strips.iter().flat_map(|row| &row.dots).any(|dot| dot.mark == *mark);
        let marks: Vec<Mark> = Mark::ALL.into_iter().filter(occurs).collect();
        let legend = marks.into_iter().map(|mark| (mark_key(mark), mark.name()));
        let sequence = Sequence { title, unit: unit.clone(), rows: strips };
        figures.push(Figure::of(&sequence, caption.to_owned(), ids).explaining(legend));
    }
    figures
}

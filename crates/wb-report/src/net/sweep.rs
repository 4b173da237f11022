//! A sweep over loads: as a table, as a chart, and as a page.

use serde::Serialize;
use wb_model::Unit;
use wb_net::result::{LatencySummary, RunStatus};
use wb_net::sweep::{Sweep, SweepPoint};
use wb_study::result::{CurveSet, SummaryCurve, SummaryPoint};

use super::figures::{format_figure, format_nanos};
use crate::chart::{Chart, CurveChart, Drawing, KneeMark};
use crate::page::PageError;
use crate::page::components::{FigureTable, IdGenerator, PageFigure};
use crate::page::document::Document;
use crate::text::{Style, Table, figure_columns, figure_row};

/// The line whose runs differ visibly.
const P99: &str = "p99";

/// The response time over the offered load.
#[derive(Debug)]
pub struct SweepChart {
    curve: CurveSet,
    knee: Option<KneeMark>,
}

impl SweepChart {
    /// The chart of a sweep; loads without a figure are left out.
    pub fn new(sweep: &Sweep) -> Self {
        let line = |name: &str, percentile: fn(&LatencySummary) -> u64| SummaryCurve {
            name: name.to_owned(),
            points: sweep
                .points
                .iter()
                .filter_map(|point| {
                    let y = percentile(point.response.as_ref()?) as f64;
                    let range = point.p99_range_ns.filter(|_| name == P99 && point.runs > 1);
                    let interval = range.map(|(low, high)| (low as f64, high as f64));
                    Some(SummaryPoint { x: point.offered, y, interval, spread: None })
                })
                .collect(),
        };
        let curve = CurveSet {
            title: sweep.title.clone(),
            x: ("offered load".to_owned(), Unit::new("/s")),
            y: ("response time".to_owned(), Unit::new("ns")),
            lines: vec![
                line("p50", |latency| latency.percentiles.p50_ns),
                line(P99, |latency| latency.percentiles.p99_ns),
                line("p99.9", |latency| latency.percentiles.p99_9_ns),
            ],
        };
        let knee =
            sweep.knee().map(|knee| KneeMark { x: knee.offered, label: format!("knee: {} % load", knee.load_percent) });
        Self { curve, knee }
    }
}

impl Chart for SweepChart {
    fn title(&self) -> String {
        CurveChart(&self.curve).title()
    }

    fn description(&self) -> String {
        let knee = self.knee.iter().map(|knee| format!("; {}", knee.label));
        std::iter::once(CurveChart(&self.curve).description()).chain(knee).collect()
    }

    fn draw(&self, width: f64) -> Drawing {
        CurveChart(&self.curve).draw_with_mark(width, self.knee.as_ref())
    }
}

/// The columns of a sweep's tables, after the load.
const COLUMNS: [&str; 7] = ["offered", "achieved", "p50", "p99", "p99.9", "max", ""];

fn row(sweep: &Sweep, point: &SweepPoint) -> (String, Vec<String>) {
    let time = |part: fn(&LatencySummary) -> u64| format_nanos(point.response.as_ref().map(|one| part(one) as f64));
    let is_knee = sweep.knee_percent == Some(point.load_percent);
    let remark = match (&point.outcome, is_knee, point.is_saturated) {
        (RunStatus::Completed | RunStatus::Truncated, true, _) => "knee",
        (RunStatus::Completed | RunStatus::Truncated, _, true) => "saturated",
        (RunStatus::Completed | RunStatus::Truncated, ..) => "",
        _ => "failed",
    };
    let figures = vec![
        format_figure(Some(point.offered), "/s"),
        format_figure(Some(point.achieved), "/s"),
        time(|latency| latency.percentiles.p50_ns),
        time(|latency| latency.percentiles.p99_ns),
        time(|latency| latency.percentiles.p99_9_ns),
        time(|latency| latency.percentiles.max_ns),
        remark.to_owned(),
    ];
    (format!("{} %", point.load_percent), figures)
}

/// What the sweep found, in a sentence.
fn conclusion(sweep: &Sweep) -> String {
    let capacity = format_figure(Some(sweep.capacity), "/s");
    match (sweep.knee(), sweep.points.first()) {
        (Some(knee), Some(first)) => format!(
            "knee at {} % load, {}: p99 {} there, {} at {} %; capacity {capacity}",
            knee.load_percent,
            format_figure(Some(knee.offered), "/s"),
            format_nanos(knee.p99()),
            format_nanos(first.p99()),
            first.load_percent,
        ),
        _ => format!("no knee: no load has a response time; capacity {capacity}"),
    }
}

/// Renders a sweep for the terminal.
pub fn sweep_text(sweep: &Sweep, style: Style) -> String {
    let mut table = Table::new(&figure_columns("  load", &COLUMNS));
    for point in &sweep.points {
        let (load, figures) = row(sweep, point);
        table.row(figure_row(format!("  {load}"), figures));
    }
    let notes = sweep.notes.iter().map(|note| style.indent(2, &format!("note: {note}")));
    [table.draw(style), "\n".to_owned(), style.indent(2, &conclusion(sweep))].into_iter().chain(notes).collect()
}

#[derive(Serialize)]
struct SweepView {
    title: String,
    conclusion: String,
    chart: PageFigure,
    table: FigureTable,
    notes: Vec<String>,
}

/// Renders a page with the chart and the table of a sweep.
///
/// # Errors
/// A template that does not match: a bug.
pub fn sweep_page(sweep: &Sweep) -> Result<String, PageError> {
    let caption = "Response time, from the intended start of a round, over the rounds that were to begin per second: of \
        each load the run with the median p99, the band from the smallest to the largest p99.";
    let view = SweepView {
        title: sweep.title.clone(),
        conclusion: conclusion(sweep),
        chart: PageFigure::of(&SweepChart::new(sweep), caption.to_owned(), &mut IdGenerator::default()),
        table: FigureTable {
            title: "response time by load".to_owned(),
            over: None,
            heads: std::iter::once("load").chain(COLUMNS).map(str::to_owned).collect(),
            rows: sweep.points.iter().map(|point| row(sweep, point)).collect(),
        },
        notes: sweep.notes.clone(),
    };
    let template = include_str!("../../templates/sweep.html");
    Document { template, styles: &[], scripts: &[] }.render(view)
}

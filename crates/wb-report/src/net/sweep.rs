//! A sweep over loads: as a table, as a chart, and as a page.

use serde::Serialize;
use wb_model::Unit;
use wb_results::net::{LatencySummary, Percentiles, RunStatus};
use wb_results::net::{Sweep, SweepPoint};
use wb_results::{CurveSet, SummaryCurve, SummaryPoint};

use super::figures::{format_bound, format_figure, format_nanos};
use crate::chart::{Chart, CurveChart, Drawing, KneeMark};
use crate::page::PageError;
use crate::page::components::{FigureTable, IdGenerator, PageFigure};
use crate::page::document::Document;
use crate::phrasing::NO_VALUE;
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
    /// Creates the chart of a sweep; loads without a figure are left out.
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

const COLUMNS: [&str; 8] = ["offered", "achieved", "p50", "p99", "p99 of the runs", "p99.9", "max", ""];

fn row(sweep: &Sweep, point: &SweepPoint) -> (String, Vec<String>) {
    let time = |fraction: f64, part: fn(&Percentiles) -> u64| {
        let format = |one: &LatencySummary| format_bound(one.is_at_least(fraction), part(&one.percentiles) as f64);
        point.response.as_ref().map_or_else(|| NO_VALUE.to_owned(), format)
    };
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
        time(0.5, |percentiles| percentiles.p50_ns),
        time(0.99, |percentiles| percentiles.p99_ns),
        range(point).unwrap_or_default(),
        time(0.999, |percentiles| percentiles.p99_9_ns),
        time(1.0, |percentiles| percentiles.max_ns),
        remark.to_owned(),
    ];
    (format!("{} %", point.load_percent), figures)
}

/// The smallest and the largest p99 of several runs.
fn range(point: &SweepPoint) -> Option<String> {
    let (low, high) = point.p99_range_ns.filter(|_| point.runs > 1)?;
    let [low, high] = [low, high].map(|end| format_nanos(Some(end as f64)));
    Some(format!("{low} to {high}"))
}

fn p99(point: &SweepPoint) -> String {
    let range = range(point).map(|range| format!(" ({range})"));
    format!("p99 {}{}", format_nanos(point.p99()), range.unwrap_or_default())
}

fn conclusion(sweep: &Sweep) -> String {
    let capacity = format_figure(Some(sweep.capacity), "/s");
    let finding = match (sweep.knee(), sweep.disturbed_lowest(), sweep.undecided_knee()) {
        (Some(knee), ..) => describe_knee(sweep, knee),
        (None, Some([first, better]), _) => format!(
            "no knee, as the lowest load was disturbed: {} at {} % load, {} at {} %",
            p99(first),
            first.load_percent,
            p99(better),
            better.load_percent,
        ),
        (None, None, Some([last, next])) => format!(
            "knee undecided, as runs of these loads overlap: {} at {} % load, {} at {} %",
            p99(last),
            last.load_percent,
            p99(next),
            next.load_percent,
        ),
        (None, None, None) => match sweep.points.first().filter(|first| first.is_saturated) {
            Some(first) => format!(
                "no knee, as the lowest load was not achieved: {} of {} at {} % load",
                format_figure(Some(first.achieved), "/s"),
                format_figure(Some(first.offered), "/s"),
                first.load_percent,
            ),
            None => "no knee: no load has a response time".to_owned(),
        },
    };
    format!("{finding}; capacity {capacity}")
}

/// Where the knee is: a load that is not between others bounds it on one side only.
fn describe_knee(sweep: &Sweep, knee: &SweepPoint) -> String {
    let is = |end: Option<&SweepPoint>| end.is_some_and(|end| end.load_percent == knee.load_percent);
    let (load, offered) = (knee.load_percent, format_figure(Some(knee.offered), "/s"));
    match (sweep.points.first(), sweep.points.last()) {
        (_, last) if is(last) => {
            format!("knee at or above {load} % load, the highest measured, {offered}: {} there", p99(knee))
        }
        (first, _) if is(first) => {
            format!("knee at or below {load} % load, the lowest measured, {offered}: {} there", p99(knee))
        }
        (first, _) => {
            let lowest = first.map(|first| format!(", {} at {} %", p99(first), first.load_percent));
            format!("knee at {load} % load, {offered}: {} there{}", p99(knee), lowest.unwrap_or_default())
        }
    }
}

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

pub fn sweep_page(sweep: &Sweep) -> Result<String, PageError> {
    let caption = "Response time, from the intended start of a round, over the rounds that were to begin per second: of \
        each load the run with the median p99, the band from the smallest to the largest p99.";
    let view = SweepView {
        title: sweep.title.clone(),
        conclusion: conclusion(sweep),
        chart: PageFigure::new(&SweepChart::new(sweep), caption.to_owned(), &mut IdGenerator::default()),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A load with the p99 of its runs in microseconds: the smallest, the median and the largest.
    fn point(load_percent: f64, is_saturated: bool, [low, p99, high]: [u64; 3]) -> SweepPoint {
        let percentiles =
            Percentiles { min_ns: 0, p50_ns: 0, p90_ns: 0, p99_ns: p99 * 1000, p99_9_ns: 0, p99_99_ns: 0, max_ns: 0 };
        let response =
            LatencySummary { count: 10_000, pending: 0, mean_ns: 0.0, percentiles, histogram: String::new() };
        SweepPoint {
            load_percent,
            offered: load_percent * 100.0,
            achieved: load_percent * 100.0,
            is_saturated,
            response: Some(response),
            service: None,
            unsuccessful_rounds: 0,
            outcome: RunStatus::Completed,
            runs: 3,
            p99_range_ns: Some((low * 1000, high * 1000)),
        }
    }

    fn sentence(points: Vec<SweepPoint>) -> String {
        conclusion(&Sweep::new(String::new(), 10_000.0, points))
    }

    #[test]
    fn the_sentence_has_the_knee_with_the_range_of_its_runs() {
        let (first, knee) = (point(10.0, false, [90, 100, 110]), point(50.0, false, [120, 150, 190]));
        let above = point(80.0, false, [300, 400, 500]);
        assert_eq!(
            sentence(vec![first, knee, above]),
            "knee at 50 % load, 5 k/s: p99 150 µs (120 µs to 190 µs) there, p99 100 µs (90.0 µs to 110 µs) at 10 %; capacity \
             10 k/s"
        );
    }

    #[test]
    fn a_lowest_load_that_is_not_achieved_is_named() {
        let first = SweepPoint { achieved: 500.0, ..point(10.0, true, [90, 100, 110]) };
        assert_eq!(
            sentence(vec![first]),
            "no knee, as the lowest load was not achieved: 500 /s of 1 k/s at 10 % load; capacity 10 k/s"
        );
    }

    #[test]
    fn a_knee_at_an_end_of_the_loads_is_at_or_beyond_it() {
        let (first, above) = (point(10.0, false, [90, 100, 110]), point(50.0, false, [300, 400, 500]));
        let kept_up = point(50.0, false, [90, 100, 110]);
        assert_eq!(
            sentence(vec![first.clone(), above]),
            "knee at or below 10 % load, the lowest measured, 1 k/s: p99 100 µs (90.0 µs to 110 µs) there; capacity 10 k/s"
        );
        assert_eq!(
            sentence(vec![first, kept_up]),
            "knee at or above 50 % load, the highest measured, 5 k/s: p99 100 µs (90.0 µs to 110 µs) there; capacity 10 k/s"
        );
    }

    #[test]
    fn loads_whose_runs_overlap_have_no_knee_between_them() {
        let (first, above) = (point(10.0, false, [90, 100, 350]), point(50.0, false, [300, 400, 500]));
        assert_eq!(
            sentence(vec![first.clone(), above]),
            "knee undecided, as runs of these loads overlap: p99 100 µs (90.0 µs to 350 µs) at 10 % load, p99 400 µs \
             (300 µs to 500 µs) at 50 %; capacity 10 k/s"
        );
        let saturated = point(50.0, true, [300, 400, 500]);
        assert!(sentence(vec![first, saturated]).starts_with("knee at or below 10 % load"));
    }
}

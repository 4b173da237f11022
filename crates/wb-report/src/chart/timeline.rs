//! Draws the samples of a group's cells in time order, one row per cell with a common time axis, so that a disturbance
//! of several cells shows in one column.

use wb_model::Unit;
use wb_stats::Summary;

use super::element::{Element, format_pixels};
use super::scale::{Scale, extent, time_ticks};
use super::{Chart, Drawing, SampleDot, SampleMark, text_width, truncate_to_width};
use crate::phrasing;

#[derive(Debug, Clone)]
pub struct SampleTimeline {
    pub title: String,
    pub unit: Unit,
    /// From the top.
    pub rows: Vec<TimelineRow>,
}

#[derive(Debug, Clone)]
pub struct TimelineRow {
    pub label: String,
    /// Median and interval are drawn as a line in a band.
    pub summary: Option<Summary>,
    pub dots: Vec<SampleDot>,
}

const NAME_LINE: f64 = 18.0;
const STRIP: f64 = 48.0;
const GAP: f64 = 10.0;
const AXIS: f64 = 32.0;
const EDGE: f64 = 8.0;

impl Chart for SampleTimeline {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let count = |mark: SampleMark| row.dots.iter().filter(|dot| dot.mark == mark).count();
            let counts = SampleMark::ALL.into_iter().filter(|mark| count(*mark) > 0);
            let counts: Vec<String> = counts.map(|mark| format!("{} {}", count(mark), mark.name())).collect();
            format!("{}: {}", row.label, counts.join(", "))
        });
        rows.collect::<Vec<_>>().join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        let dots = || self.rows.iter().flat_map(|row| &row.dots);
        let first = dots().map(|dot| dot.at).fold(f64::MAX, f64::min);
        let last = dots().map(|dot| dot.at).fold(0.0, f64::max);
        let clock = Scale::linear_between(&Unit::new("s"), first.min(last), last).with_range(EDGE, width - EDGE);
        let bottom = (NAME_LINE + STRIP + GAP) * self.rows.len() as f64;
        let mut body = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            body.extend(self.draw_row(row, &clock, (NAME_LINE + STRIP + GAP) * index as f64, width));
        }
        for tick in time_ticks(&clock, (width / 70.0) as usize) {
            body.push(Element::line("whisker", (tick.at, bottom - GAP), (tick.at, bottom - GAP + 4.0)));
            body.push(Element::text("middle", (tick.at, bottom + 7.0), &tick.label));
        }
        body.push(Element::text("middle", (width / 2.0, bottom + 22.0), "minutes and seconds since the run began"));
        Drawing { width, height: bottom + AXIS, body }
    }
}

impl SampleTimeline {
    fn draw_row(&self, row: &TimelineRow, clock: &Scale, top: f64, width: f64) -> Vec<Element> {
        let (upper, lower) = (top + NAME_LINE, top + NAME_LINE + STRIP);
        let scale = self.scale(row).with_range(lower - EDGE, upper + EDGE);
        let mut body = vec![Element::rect("background", (0.0, upper), (width, lower))];
        let mut label_width = width;
        if let Some(interval) = row.summary.as_ref().and_then(|summary| summary.median_interval) {
            let (low, high) = (scale.position(interval.low), scale.position(interval.high));
            body.push(Element::rect("band", (0.0, low.max(high + 1.0)), (width, high)));
        }
        if let Some(summary) = &row.summary {
            let y = scale.position(summary.median);
            body.push(Element::line("middle", (0.0, y), (width, y)));
            let half = phrasing::format_half_width(summary).map(|half| format!(" {half}")).unwrap_or_default();
            let figure = format!("{}{half}", self.unit.quantity(summary.median));
            label_width -= text_width(&figure, 11.0) + 8.0;
            body.push(Element::text("end", (width, top + 13.0), &figure).with_attribute("class", "value"));
        }
        let label = truncate_to_width(&row.label, 12.0, label_width);
        body.push(Element::text("start", (0.0, top + 13.0), &label).with_attribute("class", "case"));
        for dot in &row.dots {
            body.push(draw_dot(dot, &scale, (clock.position(dot.at), lower)).with_title(&dot.tooltip));
        }
        body
    }

    /// A scale that fits the counted samples; others farther outside than their range are drawn at the edge.
    fn scale(&self, row: &TimelineRow) -> Scale {
        let counts = |dot: &&SampleDot| matches!(dot.mark, SampleMark::Counted | SampleMark::Disturbed);
        let values = row.dots.iter().filter(counts).filter_map(|dot| dot.value);
        let inner = Scale::fit(&self.unit, values.chain(row.summary.iter().flat_map(extent)), 0.02);
        let (low, high) = inner.domain();
        let range = high - low;
        let is_near = |value: &f64| *value > low - range && *value < high + range;
        let near = row.dots.iter().filter_map(|dot| dot.value).filter(is_near);
        let (low, high) = near.fold((low, high), |(low, high), value| (low.min(value), high.max(value)));
        Scale::linear_between(&self.unit, low, high)
    }
}

/// Draws a sample; one beyond the scale is drawn at the edge with an arrow.
fn draw_dot(dot: &SampleDot, scale: &Scale, (x, lower): (f64, f64)) -> Element {
    let (low, high) = scale.domain();
    let group = Element::new("g");
    match dot.value.filter(|_| dot.mark != SampleMark::NoValue) {
        None => group.with_children([dot.mark.draw((x, lower - EDGE))]),
        Some(value) if value < low || value > high => {
            let y = scale.position(value) + if value < low { 3.0 } else { -3.0 };
            let tip = if value < low { 4.0 } else { -4.0 };
            let arrow = format!("M{} {}l4 {tip}l4 {}", format_pixels(x - 4.0), format_pixels(y + tip / 4.0), -tip);
            group.with_children([dot.mark.draw((x, y - tip)), Element::path("beyond", arrow)])
        }
        Some(value) => group.with_children([dot.mark.draw((x, scale.position(value)))]),
    }
}

//! Box plots: for each cell its range, quartiles, median and interval, and the samples themselves.

use wb_model::Unit;
use wb_stats::Summary;

use super::element::Element;
use super::scale::{Scale, Tick};
use super::{Chart, Dot, Drawing, Mark, fitted, text_width};
use crate::words;

/// Boxes on one scale.
#[derive(Debug, Clone)]
pub struct BoxPlot {
    /// What is measured.
    pub title: String,
    /// In which unit.
    pub unit: Unit,
    /// The boxes, from the top.
    pub rows: Vec<BoxRow>,
}

/// One box.
#[derive(Debug, Clone)]
pub struct BoxRow {
    /// The cell's name.
    pub label: String,
    /// What is drawn.
    pub summary: Summary,
    /// The samples that count.
    pub dots: Vec<Dot>,
}

const ROW: f64 = 34.0;
const NAME_LINE: f64 = 15.0;
const AXIS: f64 = 30.0;
const LEAST_SPAN: f64 = 0.01;

impl Chart for BoxPlot {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let figure = |value| self.unit.figure(value).to_string();
        let rows = self.rows.iter().map(|row| {
            let s = &row.summary;
            let ends = words::interval(s, &self.unit).map(|ends| format!(", interval {ends}")).unwrap_or_default();
            format!("{}: median {}{ends}, range {} to {}", row.label, figure(s.median), figure(s.min), figure(s.max))
        });
        rows.collect::<Vec<_>>().join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        let longest = self.rows.iter().map(|row| text_width(&row.label, 12.0) + 14.0).fold(0.0, f64::max);
        let beside = longest <= width * 0.36;
        let medians = self.rows.iter().map(|row| self.unit.figure(row.summary.median).to_string());
        let values = medians.map(|median| text_width(&median, 11.0) + 14.0).fold(0.0, f64::max);
        let (left, right) = if beside { (longest, width - values) } else { (6.0, width - 6.0) };
        let row_height = if beside { ROW } else { ROW + NAME_LINE };
        let bottom = row_height * self.rows.len() as f64 + 4.0;
        let ends = self.rows.iter().flat_map(|row| [row.summary.min, row.summary.max]);
        let scale = Scale::fit(&self.unit, ends, LEAST_SPAN).over(left, right);

        let ticks = scale.ticks(((right - left) / 80.0).max(3.0) as usize);
        let mut body = axis(&scale, &ticks, (left, right), bottom);
        for (at, row) in self.rows.iter().enumerate() {
            let top = at as f64 * row_height;
            let middle = if beside { top + ROW / 2.0 } else { top + NAME_LINE + ROW / 2.0 };
            let line = if beside { middle + 4.0 } else { top + 12.0 };
            let room = if beside { left } else { width - values };
            body.push(Element::text("start", (0.0, line), &fitted(&row.label, 12.0, room)).with("class", "case"));
            let median = self.unit.figure(row.summary.median).to_string();
            body.push(Element::text("end", (width, line), &median).with("class", "value"));
            let grid =
                |tick: &Tick| Element::line("grid", (tick.at, middle - ROW / 2.0), (tick.at, middle + ROW / 2.0));
            body.extend(ticks.0.iter().map(grid));
            body.extend(boxed(row, &scale, middle));
        }
        Drawing { width, height: bottom + AXIS, body }
    }
}

fn boxed(row: &BoxRow, scale: &Scale, middle: f64) -> Vec<Element> {
    let s = &row.summary;
    let x = |value| scale.place(value);
    let mut body = vec![
        Element::line("whisker", (x(s.min), middle), (x(s.max), middle)),
        Element::line("whisker", (x(s.min), middle - 4.0), (x(s.min), middle + 4.0)),
        Element::line("whisker", (x(s.max), middle - 4.0), (x(s.max), middle + 4.0)),
        Element::rect("box", (x(s.q1), middle - 7.0), (x(s.q3), middle + 7.0)),
        Element::line("median", (x(s.median), middle - 7.0), (x(s.median), middle + 7.0)),
    ];
    if let Some(interval) = s.median_interval {
        let (low, high) = (x(interval.low), x(interval.high));
        body.push(Element::rect("interval", (low, middle + 9.5), (high.max(low + 1.5), middle + 12.5)));
    }
    for dot in &row.dots {
        let Some(value) = dot.value else { continue };
        let place = (x(value), middle);
        let shape = match dot.mark {
            Mark::Disturbed => dot.mark.draw(place),
            _ => Element::new("circle").with("class", "dot").at("cx", place.0).at("cy", place.1).at("r", 2.2),
        };
        body.push(shape.with("fill-opacity", "0.65").titled(&dot.remark));
    }
    body
}

/// The values of the lines, and their unit, below the boxes.
fn axis(scale: &Scale, (ticks, unit): &(Vec<Tick>, String), (left, right): (f64, f64), bottom: f64) -> Vec<Element> {
    let mut body = Vec::new();
    for tick in ticks {
        body.push(Element::text("middle", (tick.at, bottom + 13.0), &tick.label));
    }
    let kind = if scale.is_log() { "logarithmic" } else { "" };
    let unit = [unit.as_str(), kind].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    body.push(Element::text("middle", ((left + right) / 2.0, bottom + 27.0), &unit));
    body
}

//! Box plots: for each cell its range, quartiles, median and interval, and the samples themselves.

use wb_model::Unit;
use wb_stats::Summary;

use super::element::{Element, format_pixels};
use super::scale::{Scale, Tick};
use super::{Chart, Drawing, SampleDot, SampleMark, text_width, truncate_to_width};
use crate::phrasing;

/// Boxes on one scale, logarithmic where they differ more than tenfold.
#[derive(Debug, Clone)]
pub struct BoxPlot {
    /// What is measured.
    pub title: String,
    /// In which unit.
    pub unit: Unit,
    /// The boxes, from the top.
    pub rows: Vec<BoxRow>,
    /// Lines across all boxes.
    pub reference_lines: Vec<ReferenceLine>,
    /// The ends of the scale; without, it has room for everything. What lies beyond is drawn at an end, with an arrow.
    pub span: Option<(f64, f64)>,
    /// What else is to be said of what is drawn, beneath it.
    pub note: Option<String>,
}

/// One box.
#[derive(Debug, Clone)]
pub struct BoxRow {
    /// What this box and those below it have in common, on a line of its own.
    pub heading: Option<String>,
    /// The cell's name.
    pub label: String,
    /// What is drawn.
    pub summary: Summary,
    /// The samples that count.
    pub dots: Vec<SampleDot>,
    /// What it is held against: a line across this box alone.
    pub reference: Option<f64>,
}

/// A value that others are seen against.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceLine {
    /// Whose it is.
    pub label: String,
    /// Where the line is.
    pub value: f64,
}

const ROW: f64 = 34.0;
const NAME_LINE: f64 = 15.0;
const HEADING: f64 = 24.0;
const AXIS: f64 = 30.0;
const MIN_SPAN: f64 = 0.01;

impl BoxPlot {
    /// With no more than boxes.
    pub fn new(title: String, unit: Unit, rows: Vec<BoxRow>) -> Self {
        Self { title, unit, rows, reference_lines: Vec::new(), span: None, note: None }
    }

    fn scale(&self) -> Scale {
        if let Some((low, high)) = self.span {
            return Scale::linear_between(&self.unit, low, high);
        }
        let ends = self.rows.iter().flat_map(|row| [row.summary.min, row.summary.max]);
        let references = self.rows.iter().filter_map(|row| row.reference);
        let lines = self.reference_lines.iter().map(|line| line.value);
        Scale::fit(&self.unit, ends.chain(references).chain(lines), MIN_SPAN)
    }
}

impl BoxRow {
    /// A box by itself.
    pub fn new(label: String, summary: Summary) -> Self {
        Self { heading: None, label, summary, dots: Vec::new(), reference: None }
    }
}

impl Chart for BoxPlot {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let figure = |value| self.unit.quantity(value).to_string();
        let rows = self.rows.iter().map(|row| {
            let s = &row.summary;
            let above = row.heading.as_ref().map(|above| format!("{above}: ")).unwrap_or_default();
            let ends =
                phrasing::format_interval(s, &self.unit).map(|ends| format!(", interval {ends}")).unwrap_or_default();
            let (median, min, max) = (figure(s.median), figure(s.min), figure(s.max));
            format!("{above}{}: median {median}{ends}, range {min} to {max}", row.label)
        });
        let lines =
            self.reference_lines.iter().map(|line| format!("line at {} for {}", figure(line.value), line.label));
        rows.chain(lines).collect::<Vec<_>>().join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        let longest = self.rows.iter().map(|row| text_width(&row.label, 12.0) + 14.0).fold(0.0, f64::max);
        let beside = longest <= width * 0.36;
        let medians = self.rows.iter().map(|row| self.unit.quantity(row.summary.median).to_string());
        let values = medians.map(|median| text_width(&median, 11.0) + 14.0).fold(0.0, f64::max);
        let (left, right) = if beside { (longest, width - values) } else { (6.0, width - 6.0) };
        let scale = self.scale().with_range(left, right);
        let ticks = scale.ticks(((right - left) / 80.0).max(3.0) as usize);

        let (mut body, mut top) = line_labels(&self.reference_lines, &scale, width);
        let upper = top;
        for row in &self.rows {
            if let Some(above) = &row.heading {
                let heading =
                    Element::text("start", (0.0, top + HEADING - 7.0), &truncate_to_width(above, 12.0, width));
                body.push(heading.with_attribute("class", "heading"));
                top += HEADING;
            }
            let middle = if beside { top + ROW / 2.0 } else { top + NAME_LINE + ROW / 2.0 };
            let line = if beside { middle + 4.0 } else { top + 12.0 };
            let room = if beside { left } else { width - values };
            body.push(
                Element::text("start", (0.0, line), &truncate_to_width(&row.label, 12.0, room))
                    .with_attribute("class", "case"),
            );
            let median = self.unit.quantity(row.summary.median).to_string();
            body.push(Element::text("end", (width, line), &median).with_attribute("class", "value"));
            let (above, below) = (middle - ROW / 2.0, middle + ROW / 2.0);
            body.extend(ticks.0.iter().map(|tick| Element::line("grid", (tick.at, above), (tick.at, below))));
            body.extend(draw_box(row, &scale, middle));
            if let Some(reference) = row.reference {
                let x = scale.position(reference);
                body.push(Element::line("middle", (x, above), (x, below)));
            }
            top += if beside { ROW } else { ROW + NAME_LINE };
        }
        let bottom = top + 4.0;
        let across = |line: &ReferenceLine| {
            let x = scale.position(line.value);
            Element::line("baseline", (x, upper - 2.0), (x, bottom - 2.0)).with_title(&line.label)
        };
        body.extend(self.reference_lines.iter().map(across));
        body.extend(draw_axis(&scale, &ticks, (left, right), bottom));
        let note =
            |text: &String| Element::text("start", (0.0, bottom + AXIS + 13.0), &truncate_to_width(text, 11.0, width));
        body.extend(self.note.as_ref().map(note));
        let below = if self.note.is_some() { AXIS + NAME_LINE } else { AXIS };
        Drawing { width, height: bottom + below, body }
    }
}

/// The names of lines above them, none over another, and where the boxes begin below.
fn line_labels(lines: &[ReferenceLine], scale: &Scale, width: f64) -> (Vec<Element>, f64) {
    let mut sorted: Vec<(f64, &str)> =
        lines.iter().map(|line| (scale.position(line.value), line.label.as_str())).collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut levels: Vec<f64> = Vec::new();
    let mut body = Vec::new();
    for (x, label) in sorted {
        let label = truncate_to_width(label, 11.0, width);
        let half = text_width(&label, 11.0) / 2.0;
        let x = x.clamp(half.min(width / 2.0), (width - half).max(width / 2.0));
        let level = levels.iter().position(|end| *end + 8.0 <= x - half).unwrap_or(levels.len());
        if level == levels.len() {
            levels.push(0.0);
        }
        levels[level] = x + half;
        body.push(
            Element::text("middle", (x, 11.0 + level as f64 * NAME_LINE), &label).with_attribute("class", "line-name"),
        );
    }
    (body, levels.len() as f64 * NAME_LINE)
}

fn draw_box(row: &BoxRow, scale: &Scale, middle: f64) -> Vec<Element> {
    let s = &row.summary;
    let x = |value| scale.position(value);
    let mut body = vec![Element::line("whisker", (x(s.min), middle), (x(s.max), middle))];
    for (end, inwards) in [(s.min, 4.0), (s.max, -4.0)] {
        body.push(match scale.contains(end) {
            true => Element::line("whisker", (x(end), middle - 4.0), (x(end), middle + 4.0)),
            false => {
                let arrow = format!(
                    "M{} {}l{} 4l{inwards} 4",
                    format_pixels(x(end) + inwards),
                    format_pixels(middle - 4.0),
                    -inwards
                );
                Element::new("path").with_attribute("class", "beyond").with_attribute("d", arrow)
            }
        });
    }
    body.push(Element::rect("box", (x(s.q1), middle - 7.0), (x(s.q3), middle + 7.0)));
    body.push(Element::line("median", (x(s.median), middle - 7.0), (x(s.median), middle + 7.0)));
    if let Some(interval) = s.median_interval {
        let (low, high) = (x(interval.low), x(interval.high));
        body.push(Element::rect("interval", (low, middle + 9.5), (high.max(low + 1.5), middle + 12.5)));
    }
    for dot in &row.dots {
        let Some(value) = dot.value else { continue };
        let place = (x(value), middle);
        let shape = match dot.mark {
            SampleMark::Disturbed => dot.mark.draw(place),
            _ => Element::new("circle")
                .with_attribute("class", "dot")
                .with_coordinate("cx", place.0)
                .with_coordinate("cy", place.1)
                .with_coordinate("r", 2.2),
        };
        body.push(shape.with_attribute("fill-opacity", "0.65").with_title(&dot.tooltip));
    }
    body
}

/// The values of the lines, and their unit, below the boxes.
fn draw_axis(
    scale: &Scale,
    (ticks, unit): &(Vec<Tick>, String),
    (left, right): (f64, f64),
    bottom: f64,
) -> Vec<Element> {
    let mut body = Vec::new();
    for tick in ticks {
        body.push(Element::text("middle", (tick.at, bottom + 13.0), &tick.label));
    }
    let kind = if scale.is_log() { "logarithmic" } else { "" };
    let unit = [unit.as_str(), kind].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    body.push(Element::text("middle", ((left + right) / 2.0, bottom + 27.0), &unit));
    body
}

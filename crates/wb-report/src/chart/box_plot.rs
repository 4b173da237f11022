//! Draws box plots: each cell's range, quartiles, median, interval and samples.

use wb_model::Unit;
use wb_stats::Summary;

use super::curve::join_nonempty;
use super::element::{Element, format_pixels};
use super::scale::{Scale, Tick, extent};
use super::{Chart, Drawing, SampleDot, SampleMark, text_width, truncate_to_width, with_minus};
use crate::phrasing;

/// Box plots on one scale, which is logarithmic if values differ more than tenfold.
#[derive(Debug, Clone)]
pub struct BoxPlot {
    pub title: String,
    pub unit: Unit,
    /// From the top.
    pub rows: Vec<BoxRow>,
    pub reference_lines: Vec<ReferenceLine>,
    /// The range of the scale; `None` fits all values. Values outside are drawn at its ends, with an arrow.
    pub span: Option<(f64, f64)>,
    pub note: Option<String>,
}

#[derive(Debug, Clone)]
pub struct BoxRow {
    /// A heading above this box, on a line of its own, for it and those below.
    pub heading: Option<String>,
    pub label: String,
    pub summary: Summary,
    pub dots: Vec<SampleDot>,
    /// A value drawn as a line across this box alone.
    pub reference: Option<f64>,
    /// How many values are below and above the scale; they are named at its ends.
    pub beyond: [usize; 2],
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceLine {
    pub label: String,
    pub value: f64,
}

const ROW: f64 = 34.0;
const NAME_LINE: f64 = 15.0;
const HEADING: f64 = 24.0;
const AXIS: f64 = 30.0;
const MIN_SPAN: f64 = 0.01;

impl BoxPlot {
    pub fn new(title: String, unit: Unit, rows: Vec<BoxRow>) -> Self {
        Self { title, unit, rows, reference_lines: Vec::new(), span: None, note: None }
    }

    fn format(&self, value: f64) -> String {
        with_minus(&self.unit.quantity(value).to_string())
    }

    /// Names the values beyond the scale at its ends, above the arrows.
    fn name_extremes(&self, row: &BoxRow, (left, right): (f64, f64), y: f64) -> Vec<Element> {
        let name = |count: usize, end: f64| match count {
            1 => self.format(end),
            _ => format!("{count} beyond, {}", self.format(end)),
        };
        let [below, above] = row.beyond;
        let below =
            (below > 0).then(|| Element::text("start", (left, y), &format!("← {}", name(below, row.summary.min))));
        let above =
            (above > 0).then(|| Element::text("end", (right, y), &format!("{} →", name(above, row.summary.max))));
        let names = below.into_iter().chain(above);
        names.map(|name| name.with_attribute("class", "extreme")).collect()
    }

    fn scale(&self) -> Scale {
        if let Some((low, high)) = self.span {
            return Scale::linear_between(&self.unit, low, high);
        }
        let ends = self.rows.iter().flat_map(|row| extent(&row.summary));
        // Outliers may be beyond the whiskers.
        let dots = self.rows.iter().flat_map(|row| &row.dots).filter_map(|dot| dot.value);
        let references = self.rows.iter().filter_map(|row| row.reference);
        let lines = self.reference_lines.iter().map(|line| line.value);
        Scale::fit(&self.unit, ends.chain(dots).chain(references).chain(lines), MIN_SPAN)
    }
}

impl BoxRow {
    pub fn new(label: String, summary: Summary) -> Self {
        Self { heading: None, label, summary, dots: Vec::new(), reference: None, beyond: [0; 2] }
    }
}

impl Chart for BoxPlot {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let figure = |value| self.format(value);
        let rows = self.rows.iter().map(|row| {
            let s = &row.summary;
            let heading = row.heading.as_ref().map(|heading| format!("{heading}: ")).unwrap_or_default();
            let ends =
                phrasing::format_interval(s, &self.unit).map(|ends| format!(", interval {ends}")).unwrap_or_default();
            let (median, min, max) = (figure(s.median), figure(s.min), figure(s.max));
            format!("{heading}{}: median {median}{ends}, range {min} to {max}", row.label)
        });
        let lines =
            self.reference_lines.iter().map(|line| format!("line at {} for {}", figure(line.value), line.label));
        rows.chain(lines).collect::<Vec<_>>().join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        let longest = self.rows.iter().map(|row| text_width(&row.label, 12.0) + 14.0).fold(0.0, f64::max);
        let beside = longest <= width * 0.36;
        let medians = self.rows.iter().map(|row| self.format(row.summary.median));
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
            let median = self.format(row.summary.median);
            body.push(Element::text("end", (width, line), &median).with_attribute("class", "value"));
            let (above, below) = (middle - ROW / 2.0, middle + ROW / 2.0);
            body.extend(ticks.0.iter().map(|tick| Element::line("grid", (tick.at, above), (tick.at, below))));
            body.extend(draw_box(row, &scale, middle));
            body.extend(self.name_extremes(row, (left, right), middle - 9.0));
            if let Some(reference) = row.reference {
                let x = scale.position(reference);
                body.push(Element::line("middle", (x, above), (x, below)));
            }
            // Not across the names above the boxes.
            if !beside {
                body.extend(self.reference_lines.iter().map(|line| line.draw(&scale, above, below)));
            }
            top += if beside { ROW } else { ROW + NAME_LINE };
        }
        let bottom = top + 4.0;
        if beside {
            body.extend(self.reference_lines.iter().map(|line| line.draw(&scale, upper - 2.0, bottom - 2.0)));
        }
        body.extend(draw_axis(&scale, &ticks, (left, right), bottom));
        let note =
            |text: &String| Element::text("start", (0.0, bottom + AXIS + 13.0), &truncate_to_width(text, 11.0, width));
        body.extend(self.note.as_ref().map(note));
        let below = if self.note.is_some() { AXIS + NAME_LINE } else { AXIS };
        Drawing { width, height: bottom + below, body }
    }
}

impl ReferenceLine {
    fn draw(&self, scale: &Scale, from: f64, to: f64) -> Element {
        let x = scale.position(self.value);
        Element::line("baseline", (x, from), (x, to)).with_title(&self.label)
    }
}

/// Draws the labels of reference lines above the boxes without overlap; also returns where the boxes start.
fn line_labels(lines: &[ReferenceLine], scale: &Scale, width: f64) -> (Vec<Element>, f64) {
    let mut sorted: Vec<(f64, &str)> =
        lines.iter().map(|line| (scale.position(line.value), line.label.as_str())).collect();
    sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
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
        body.push(if scale.contains(end) {
            Element::line("whisker", (x(end), middle - 4.0), (x(end), middle + 4.0))
        } else {
            let (tip, top) = (format_pixels(x(end) + inwards), format_pixels(middle - 4.0));
            Element::path("beyond", format!("M{tip} {top}l{} 4l{inwards} 4", -inwards))
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
        let position = (x(value), middle);
        let shape = match dot.mark {
            SampleMark::Disturbed => dot.mark.draw(position),
            _ => Element::circle("dot", position, 2.2),
        };
        body.push(shape.with_attribute("fill-opacity", "0.65").with_title(&dot.tooltip));
    }
    body
}

fn draw_axis(
    scale: &Scale,
    (ticks, unit): &(Vec<Tick>, String),
    (left, right): (f64, f64),
    bottom: f64,
) -> Vec<Element> {
    let labels = ticks.iter().map(|tick| Element::text("middle", (tick.at, bottom + 13.0), &tick.label));
    let kind = if scale.is_log() { "logarithmic" } else { "" };
    let unit = Element::text("middle", ((left + right) / 2.0, bottom + 27.0), &join_nonempty(&[unit, kind]));
    labels.chain([unit]).collect()
}

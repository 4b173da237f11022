//! Draws curves: one quantity over another, with intervals as bands.

use wb_model::Unit;
use wb_results::{CurveSet, SummaryCurve, SummaryPoint};

use super::element::{Element, format_pixels};
use super::scale::Scale;
use super::{Chart, Drawing, truncate_to_width};

#[derive(Debug, Clone, Copy)]
pub struct CurveChart<'a>(pub &'a CurveSet);

/// A labelled mark on the horizontal axis.
#[derive(Debug, Clone)]
pub(crate) struct KneeMark {
    pub(crate) x: f64,
    pub(crate) label: String,
}

const TOP: f64 = 18.0;
const BELOW: f64 = 36.0;
const LEFT: f64 = 46.0;
const LABEL_WIDTH: f64 = 66.0;
const STYLES: usize = 4;

impl Chart for CurveChart<'_> {
    fn title(&self) -> String {
        self.0.title.clone()
    }

    fn description(&self) -> String {
        let (x, y) = (&self.0.x.1, &self.0.y.1);
        let describe = |line: &SummaryCurve| {
            let point = |point: &SummaryPoint| format!("{} at {}", y.quantity(point.y), x.quantity(point.x));
            let ends = [line.points.first(), line.points.last()];
            let ends: Vec<String> = ends.into_iter().flatten().map(point).collect();
            format!("{}: from {}", line.name, ends.join(" to "))
        };
        self.0.lines.iter().map(describe).collect::<Vec<_>>().join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        self.draw_with_mark(width, None)
    }
}

impl CurveChart<'_> {
    pub(crate) fn draw_with_mark(&self, width: f64, mark: Option<&KneeMark>) -> Drawing {
        let curve = self.0;
        let height = (width * 0.44).clamp(210.0, 320.0);
        let (right, bottom) = (width - LABEL_WIDTH, height - BELOW);
        let x = self.x_scale().with_range(LEFT, right);
        let y = self.y_scale().with_range(bottom, TOP);
        let mut body = draw_axes(&x, &y, AxisNames { x: &curve.x.0, y: &curve.y.0 }, (right, bottom));
        if let Some(mark) = mark {
            let position = x.position(mark.x);
            body.push(Element::line("baseline", (position, TOP), (position, bottom)));
            let text = Element::text("end", (position - 5.0, TOP + 10.0), &mark.label);
            body.push(text.with_attribute("class", "line-name"));
        }
        let mut names = Vec::new();
        for (index, line) in curve.lines.iter().enumerate() {
            let style = index % STYLES;
            body.extend(interval_band(line, &x, &y, style));
            body.push(line_path(line, &x, &y, index));
            body.extend(line.points.iter().map(|point| draw_point(point, &x, &y, line, curve, style)));
            if let Some(last) = line.points.last() {
                names.push((y.position(last.y), style, line.name.as_str()));
            }
        }
        body.extend(line_labels(names, right));
        Drawing { width, height, body }
    }

    fn points(&self) -> impl Iterator<Item = &SummaryPoint> {
        self.0.lines.iter().flat_map(|line| &line.points)
    }

    fn x_scale(&self) -> Scale {
        let unit = &self.0.x.1;
        let (low, high) =
            self.points().fold((f64::MAX, 0.0), |(low, high): (f64, f64), p| (low.min(p.x), high.max(p.x)));
        let binary = *unit == Unit::new("B");
        if binary && low > 0.0 && low <= high {
            Scale::log_between(unit, low, high)
        } else {
            Scale::linear_between(unit, low.min(high), high)
        }
    }

    /// The vertical scale: from 0, except if the values differ more than tenfold.
    fn y_scale(&self) -> Scale {
        let values = self.points().flat_map(|point| point.interval.map_or([point.y; 2], |(low, high)| [low, high]));
        let fitted = Scale::fit(&self.0.y.1, values, 0.1);
        if fitted.is_log() {
            fitted
        } else {
            Scale::linear_between(&self.0.y.1, fitted.domain().0.min(0.0), fitted.domain().1)
        }
    }
}

pub(super) struct AxisNames<'a> {
    pub(super) x: &'a str,
    pub(super) y: &'a str,
}

/// Draws both axes; the position is the lower right corner of the chart.
pub(super) fn draw_axes(x: &Scale, y: &Scale, names: AxisNames<'_>, (right, bottom): (f64, f64)) -> Vec<Element> {
    let mut body = Vec::new();
    let (ticks, unit) = y.ticks(5);
    for tick in ticks {
        body.push(Element::line("grid", (LEFT, tick.at), (right, tick.at)));
        body.push(Element::text("end", (LEFT - 6.0, tick.at + 4.0), &tick.label));
    }
    let log = if y.is_log() { "logarithmic" } else { "" };
    body.push(Element::text("start", (0.0, 10.0), &join_nonempty(&[names.y, &unit, log])));
    let (ticks, unit) = x.ticks(((right - LEFT) / 62.0) as usize);
    for tick in ticks {
        body.push(Element::line("whisker", (tick.at, bottom), (tick.at, bottom + 4.0)));
        body.push(Element::text("middle", (tick.at, bottom + 16.0), &tick.label));
    }
    body.push(Element::line("axis", (LEFT, bottom), (right, bottom)));
    body.push(Element::text("middle", ((LEFT + right) / 2.0, bottom + 32.0), &join_nonempty(&[names.x, &unit])));
    body
}

pub(super) fn join_nonempty(parts: &[&str]) -> String {
    parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

const BANDS: [&str; STYLES] = ["b0", "b1", "b2", "b3"];
const STROKES: [&str; STYLES] = ["l0", "l1", "l2", "l3"];
const LABEL_CLASSES: [&str; STYLES] = ["t0", "t1", "t2", "t3"];
const DASHES: [&str; 3] = ["", " dash-1", " dash-2"];

/// Fills the area between the ends of the intervals, over points without one; `None` if fewer than two have one.
fn interval_band(line: &SummaryCurve, x: &Scale, y: &Scale, style: usize) -> Option<Element> {
    let ends: Vec<(f64, f64, f64)> = line
        .points
        .iter()
        .filter_map(|p| p.interval.map(|(low, high)| (x.position(p.x), y.position(low), y.position(high))))
        .collect();
    let upper = ends.iter().map(|(x, _, high)| (*x, *high));
    let lower = ends.iter().rev().map(|(x, low, _)| (*x, *low));
    let d = format!("{}z", path_data(upper.chain(lower)));
    (ends.len() > 1).then(|| Element::path(BANDS[style], d))
}

fn line_path(line: &SummaryCurve, x: &Scale, y: &Scale, index: usize) -> Element {
    let class = format!("curve {}{}", STROKES[index % STYLES], DASHES[(index / STYLES) % DASHES.len()]);
    let d = path_data(line.points.iter().map(|point| (x.position(point.x), y.position(point.y))));
    Element::path(class, d)
}

pub(super) fn path_data(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (x, y) in points {
        let command = if d.is_empty() { "M" } else { "L" };
        d += &format!("{command}{} {}", format_pixels(x), format_pixels(y));
    }
    d
}

/// Draws a point of a line. Shapes and colours repeat after [`STYLES`] lines; only dashes distinguish curves beyond.
fn draw_point(
    point: &SummaryPoint,
    x: &Scale,
    y: &Scale,
    line: &SummaryCurve,
    curve: &CurveSet,
    style: usize,
) -> Element {
    let (px, py) = (x.position(point.x), y.position(point.y));
    let class = format!("point {}", STROKES[style]);
    let (sx, sy) = (format_pixels(px), format_pixels(py));
    let shape = match style {
        0 => Element::circle(class, (px, py), 2.4),
        1 => Element::rect(class, (px - 2.2, py - 2.2), (px + 2.2, py + 2.2)),
        2 => Element::path(class, format!("M{sx} {sy}m0-3.2l3.2 5.4h-6.4z")),
        _ => Element::path(class, format!("M{sx} {sy}m0-3.4l3.4 3.4l-3.4 3.4l-3.4-3.4z")),
    };
    let unit = &curve.y.1;
    let ends = point.interval.map(|(low, high)| format!(" ({} to {})", unit.quantity(low), unit.quantity(high)));
    let x_value = curve.x.1.quantity(point.x);
    shape.with_title(&format!("{} at {x_value}: {}{}", line.name, unit.quantity(point.y), ends.unwrap_or_default()))
}

/// Draws the lines' names beside their ends, moved apart to avoid overlap.
fn line_labels(mut names: Vec<(f64, usize, &str)>, right: f64) -> Vec<Element> {
    names.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut free = 0.0;
    let mut body = Vec::new();
    for (y, style, name) in names {
        let y = f64::max(y, free);
        free = y + 13.0;
        let text = Element::text("start", (right + 8.0, y + 4.0), &truncate_to_width(name, 11.0, LABEL_WIDTH - 8.0));
        body.push(text.with_attribute("class", LABEL_CLASSES[style]).with_title(name));
    }
    body
}

//! Draws a forest plot: a difference with its interval in each row, on one scale in percent.

use wb_model::Unit;

use super::element::{Element, format_pixels};
use super::scale::Scale;
use super::{Chart, Drawing, text_width, truncate_to_width};

#[derive(Debug, Clone)]
pub(crate) struct ForestPlot {
    pub(crate) title: String,
    /// From the top.
    pub(crate) rows: Vec<ForestRow>,
}

#[derive(Debug, Clone)]
pub(crate) struct ForestRow {
    pub(crate) label: String,
    /// The better direction, beside the label; empty if neither is.
    pub(crate) better: &'static str,
    /// The CSS class of the verdict, and the verdict in words.
    pub(crate) verdict: (&'static str, &'static str),
    /// `None` if there is nothing to compare. May be infinite.
    pub(crate) estimate: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// Whether the interval is of the samples alone, which is drawn thinner.
    pub(crate) by_samples: bool,
    /// The shaded area around zero.
    pub(crate) negligible: (f64, f64),
    pub(crate) text: String,
}

const ROW: f64 = 24.0;
const NAME_LINE: f64 = 15.0;
const AXIS: f64 = 22.0;
const GAP: f64 = 12.0;
/// How many times farther than the estimates the scale may reach, so that one wide interval does not flatten the
/// others.
const MAX_REACH: f64 = 5.0;

impl Chart for ForestPlot {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let describe = |row: &ForestRow| {
            let better = if row.better.is_empty() { String::new() } else { format!(", {}", row.better) };
            format!("{}{better}: {}, {}", row.label, row.verdict.1, row.text)
        };
        self.rows.iter().map(describe).collect::<Vec<_>>().join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        let longest = |text: fn(&ForestRow) -> &str| {
            self.rows.iter().map(|row| text_width(text(row), 12.0)).fold(0.0, f64::max).ceil()
        };
        let names = longest(|row| &row.label);
        let better = longest(|row| row.better);
        let before = if better > 0.0 { names + GAP + better } else { names };
        let beside = before <= width * 0.45;
        let (left, line) = if beside { (before + GAP, 0.0) } else { (0.0, NAME_LINE) };
        let right = (width - longest(|row| &row.text) - GAP).max(left + 60.0);
        let scale = self.scale().with_range(left + 6.0, right - 6.0);
        let bottom = self.rows.len() as f64 * (ROW + line);
        let mut body = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let top = index as f64 * (ROW + line);
            let (name, room, side) =
                if beside { (top + ROW / 2.0 + 4.0, names, before) } else { (top + 12.0, width - better - GAP, width) };
            let label = Element::text("start", (0.0, name), &truncate_to_width(&row.label, 12.0, room));
            body.push(label.with_attribute("class", "case"));
            if !row.better.is_empty() {
                body.push(Element::text("end", (side, name), row.better));
            }
            let figure = Element::text("end", (width, top + line + ROW / 2.0 + 4.0), &row.text);
            body.push(figure.with_attribute("class", "value"));
            body.extend(row.marks(&scale, top + line));
            // Not across the names above the rows.
            let zero = scale.position(0.0);
            body.push(Element::line("middle", (zero, top + line), (zero, top + line + ROW)));
        }
        body.extend(axis(&scale, bottom, (left, right)));
        Drawing { width, height: bottom + AXIS, body }
    }
}

impl ForestPlot {
    fn scale(&self) -> Scale {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let estimates = self.rows.iter().filter_map(|row| finite(row.estimate?));
        let limit = estimates
            .chain(self.rows.iter().map(|row| row.negligible.1))
            .fold(1.0, |max: f64, value| max.max(value.abs()))
            * MAX_REACH;
        let ends = self.rows.iter().flat_map(|row| {
            let interval = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
            let negligible = [row.negligible.0, row.negligible.1];
            interval.chain(row.estimate).chain(negligible).map(|end| end.clamp(-limit, limit))
        });
        let (low, high) = ends.fold((-1.0, 1.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
        let pad = (high - low) * 0.04;
        Scale::linear_between(&Unit::new("%"), low - pad, high + pad)
    }
}

impl ForestRow {
    fn marks(&self, scale: &Scale, top: f64) -> Vec<Element> {
        let (class, word) = self.verdict;
        let x = |value| scale.position(value);
        let middle = top + ROW / 2.0;
        let mut body = vec![Element::rect("band", (x(self.negligible.0), top), (x(self.negligible.1), top + ROW))];
        if let Some((low, high)) = self.interval {
            let half = if self.by_samples { 1.0 } else { 2.5 };
            let (start, end) = ((x(low), middle - half), (x(high).max(x(low) + 2.0), middle + half));
            body.push(Element::rect(format!("{class} range"), start, end));
            let clipped = [(low, -5.0), (high, 5.0)].into_iter().filter(|(end, _)| !scale.contains(*end));
            body.extend(clipped.map(|(end, length)| arrow((x(end), middle), length)));
        }
        if let Some(estimate) = self.estimate {
            let point = Element::circle(format!("{class} estimate"), (x(estimate), middle), 5.0);
            body.push(point.with_title(&format!("{}: {word}, {}", self.label, self.text)));
        }
        body
    }
}

/// Draws an arrow at the end of an interval that reaches beyond the scale.
fn arrow((x, y): (f64, f64), length: f64) -> Element {
    let [tip, base] = [x + length, x].map(format_pixels);
    let [top, middle, bottom] = [y - 5.0, y, y + 5.0].map(format_pixels);
    Element::path("beyond", format!("M{base} {top}L{tip} {middle}L{base} {bottom}"))
}

fn axis(scale: &Scale, top: f64, (left, right): (f64, f64)) -> Vec<Element> {
    let (ticks, unit) = scale.ticks(if right - left > 400.0 { 8 } else { 4 });
    let mut body = vec![Element::line("axis", (left, top), (right, top))];
    let last = ticks.len().saturating_sub(1);
    for (index, tick) in ticks.iter().enumerate() {
        let label = if index == last { format!("{} {unit}", tick.label) } else { tick.label.clone() };
        body.push(Element::line("whisker", (tick.at, top), (tick.at, top + 3.0)));
        body.push(Element::text("middle", (tick.at, top + 15.0), &label));
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(estimate: f64, interval: Option<(f64, f64)>) -> ForestRow {
        let verdict = ("regressed", "regressed");
        let label = "fio bs=4k".to_owned();
        ForestRow {
            label,
            better: "lower is better",
            verdict,
            estimate: Some(estimate),
            interval,
            by_samples: false,
            negligible: (-5.0, 5.0),
            text: String::new(),
        }
    }

    #[test]
    fn one_wide_interval_does_not_flatten_the_others() {
        let rows = vec![row(-20.0, Some((-25.0, -15.0))), row(3.0, Some((-60.0, 4000.0)))];
        let chart = ForestPlot { title: String::new(), rows };
        let (low, high) = chart.scale().domain();
        assert!(low < -60.0 && high > 50.0 && high < 200.0, "{low} {high}");
        let drawn: Vec<String> = chart.draw(860.0).body.iter().map(ToString::to_string).collect();
        assert_eq!(drawn.iter().filter(|element| element.contains("beyond")).count(), 1, "an arrow at the clipped end");
    }

    // On phones names are above the rows, and the line at no difference crossed them.
    #[test]
    fn no_line_crosses_a_name() {
        let chart = ForestPlot { title: String::new(), rows: vec![row(-20.0, None), row(3.0, None)] };
        let drawn: Vec<String> = chart.draw(326.0).body.iter().map(ToString::to_string).collect();
        let lines: Vec<&String> = drawn.iter().filter(|element| element.contains("class=\"middle\"")).collect();
        let [first, second] = lines[..] else { panic!("a line in each row: {lines:?}") };
        assert!(first.contains("15") && first.contains("39"), "below the first name: {first}");
        assert!(second.contains("54") && second.contains("78"), "below the second name: {second}");
    }

    #[test]
    fn any_difference_has_a_place_on_the_scale() {
        for estimate in [0.0, f64::INFINITY, f64::NEG_INFINITY, 1e300, 1e-300] {
            let chart = ForestPlot { title: String::new(), rows: vec![row(estimate, None)] };
            for width in [326.0, 860.0] {
                let drawn = chart.draw(width).body.iter().map(ToString::to_string).collect::<String>();
                assert!(drawn.contains("estimate") && !drawn.contains("NaN"), "{drawn}");
            }
        }
    }
}

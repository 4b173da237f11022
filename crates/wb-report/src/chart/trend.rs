//! Draws trends: the distribution of several checks' gains in each build, with the counts of verdicts below.

use std::collections::BTreeMap;

use wb_model::Unit;
use wb_stats::Summary;

use super::counts::CountRow;
use super::element::{Element, format_pixels};
use super::scale::Scale;
use super::{Chart, Drawing, truncate_to_width, with_minus};

/// A chart with builds from left to right and gains in percent from bottom to top.
#[derive(Debug, Clone)]
pub(crate) struct TrendChart {
    pub(crate) title: String,
    pub(crate) columns: Vec<TrendColumn>,
    /// The range of the scale in percent; values outside are drawn at its ends, with an arrow.
    pub(crate) span: (f64, f64),
    /// In percent; smaller gains are within the shaded band.
    pub(crate) tolerance: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct TrendColumn {
    /// Statistics of the gains; `None` if no check has one.
    pub(crate) summary: Option<Summary>,
    pub(crate) counts: CountRow,
}

const LEFT: f64 = 40.0;
const TOP: f64 = 6.0;
const UPPER: f64 = 92.0;
const GAP: f64 = 15.0;
const LOWER: f64 = 30.0;
const LABELS: f64 = 17.0;
/// Minimum width for the name of a build.
const NAME: f64 = 58.0;
/// Of a box or bar.
const MAX_WIDTH: f64 = 18.0;

impl Chart for TrendChart {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        self.columns.iter().map(TrendColumn::description).collect::<Vec<_>>().join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        let (low, high) = self.span;
        let scale = Scale::linear_between(&Unit::new("%"), low.min(-self.tolerance), high.max(self.tolerance));
        let scale = scale.with_range(TOP + UPPER, TOP);
        let step = (width - LEFT) / self.columns.len().max(1) as f64;
        let middle = |index: usize| LEFT + (index as f64 + 0.5) * step;
        let bottom = TOP + UPPER + GAP + LOWER;
        let mut body = self.draw_background(&scale, width);
        body.extend(self.draw_boxes(&scale, &middle, (step * 0.55).min(MAX_WIDTH) / 2.0));
        body.extend(self.draw_bars(bottom, &middle, (step * 0.8).min(MAX_WIDTH) / 2.0));
        body.extend(self.draw_names(bottom + 13.0, &middle, step));
        body.extend(self.columns.iter().enumerate().map(|(index, column)| {
            let (left, right) = (LEFT + index as f64 * step, LEFT + (index + 1) as f64 * step);
            Element::rect("hit", (left, 0.0), (right, bottom)).with_title(&column.description())
        }));
        Drawing { width, height: bottom + LABELS, body }
    }
}

impl TrendColumn {
    fn description(&self) -> String {
        let spread = self.summary.as_ref().map(|summary| {
            let Summary { median, min, max, .. } = summary;
            if summary.n == 1 {
                format!("{median:+.2} %")
            } else {
                format!("median {median:+.2} %, {min:+.2} to {max:+.2} %")
            }
        });
        let spread = spread.map(|text| with_minus(&text));
        let all: Vec<String> = spread.into_iter().chain(self.counts.texts()).collect();
        let all = if all.is_empty() { "no check".to_owned() } else { all.join(", ") };
        format!("{}: {all}", self.counts.label)
    }
}

impl TrendChart {
    fn draw_background(&self, scale: &Scale, width: f64) -> Vec<Element> {
        let (upper, lower) = (scale.position(self.tolerance), scale.position(-self.tolerance));
        let mut body = vec![Element::rect("background", (LEFT, upper), (width, lower))];
        let (ticks, unit) = scale.ticks(4);
        for tick in ticks {
            body.push(Element::line("grid", (LEFT, tick.at), (width, tick.at)));
            body.push(Element::text("end", (LEFT - 5.0, tick.at + 4.0), &format!("{} {unit}", tick.label)));
        }
        let zero = scale.position(0.0);
        body.push(Element::line("middle", (LEFT, zero), (width, zero)));
        body
    }

    /// Draws range, quartiles and median of each build; a line connects the medians.
    fn draw_boxes(&self, scale: &Scale, middle: &impl Fn(usize) -> f64, half: f64) -> Vec<Element> {
        let [mut whiskers, mut boxes, mut medians, mut line, mut beyond] = [const { String::new() }; 5];
        let mut pen = 'M';
        for (index, column) in self.columns.iter().enumerate() {
            let Some(summary) = &column.summary else {
                pen = 'M';
                continue;
            };
            let (x, y) = (middle(index), |value| format_pixels(scale.position(value)));
            let (left, right, centre) = (format_pixels(x - half), format_pixels(x + half), format_pixels(x));
            let (q1, q3, median) = (y(summary.q1), y(summary.q3), y(summary.median));
            line += &format!("{pen}{centre} {median}");
            medians += &format!("M{left} {median}H{right}");
            if summary.n > 1 {
                whiskers += &format!("M{centre} {}V{}", y(summary.min), y(summary.max));
                boxes += &format!("M{left} {q1}H{right}V{q3}H{left}z");
            }
            let ends = [(summary.min, -4.0), (summary.max, 4.0)];
            for (end, inwards) in ends.into_iter().filter(|(end, _)| !scale.contains(*end)) {
                let tip = scale.position(end);
                beyond += &format!(
                    "M{} {}l4 {}l4 {}",
                    format_pixels(x - 4.0),
                    format_pixels(tip + inwards),
                    -inwards,
                    inwards
                );
            }
            pen = 'L';
        }
        let svg = [("whisker", whiskers), ("box", boxes), ("series", line), ("median", medians), ("beyond", beyond)];
        svg.into_iter().filter(|(_, path)| !path.is_empty()).map(|(class, path)| Element::path(class, path)).collect()
    }

    /// Draws a stacked bar for each build, from gains at the bottom to losses at the top.
    fn draw_bars(&self, bottom: f64, middle: &impl Fn(usize) -> f64, half: f64) -> Vec<Element> {
        let max_count = self.columns.iter().map(|column| column.counts.count()).max().unwrap_or_default();
        let per_check = LOWER / max_count.max(1) as f64;
        // Sorted by kind, which is the order of the parts.
        let mut paths: BTreeMap<usize, (&'static str, String)> = BTreeMap::new();
        for (index, column) in self.columns.iter().enumerate() {
            let mut lower = bottom;
            let [left, right] = [middle(index) - half, middle(index) + half].map(format_pixels);
            for (kind, (class, _, count)) in column.counts.parts.iter().enumerate().filter(|(_, part)| part.2 > 0) {
                let upper = lower - *count as f64 * per_check;
                let (_, path) = paths.entry(kind).or_insert((class, String::new()));
                *path += &format!("M{left} {}H{right}V{}H{left}z", format_pixels(lower), format_pixels(upper));
                lower = upper;
            }
        }
        let max_label = Element::text("end", (LEFT - 5.0, bottom - LOWER + 9.0), &max_count.to_string());
        let zero_label = Element::text("end", (LEFT - 5.0, bottom), "0");
        paths.into_values().map(|(class, path)| Element::path(class, path)).chain([max_label, zero_label]).collect()
    }

    /// Draws the names of as many builds as fit, always including the last.
    fn draw_names(&self, y: f64, middle: &impl Fn(usize) -> f64, step: f64) -> Vec<Element> {
        let every = (NAME / step).ceil().max(1.0) as usize;
        let last = self.columns.len().saturating_sub(1);
        let indices = (0..=last).rev().step_by(every);
        let name = |index: usize| {
            let label = &self.columns[index].counts.label;
            if every == 1 {
                return Element::text("middle", (middle(index), y), &truncate_to_width(label, 11.0, step - 6.0));
            }
            // A name wider than its column is right-aligned to it, so that it does not extend into the next one.
            let right = middle(index) + step / 2.0;
            Element::text("end", (right, y), &truncate_to_width(label, 11.0, right.min(step * every as f64 - 6.0)))
        };
        indices.map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use wb_stats::Samples;

    use super::*;

    fn column(label: &str, gains: &[f64], losses: usize) -> TrendColumn {
        let summary = Samples::new(gains).ok().map(|samples| Summary::new(&samples));
        let parts = vec![("equivalent", "equivalent", gains.len() - losses), ("regressed", "regressed", losses)];
        TrendColumn { summary, counts: CountRow { label: label.to_owned(), parts } }
    }

    fn trend(columns: Vec<TrendColumn>) -> TrendChart {
        TrendChart { title: "Localhost/fio".to_owned(), columns, span: (-20.0, 4.0), tolerance: 5.0 }
    }

    #[test]
    fn description_has_gains_and_counts_of_each_build() {
        let columns = [column("two", &[-18.0, 0.5, 1.0], 1), column("three", &[2.0], 0), column("four", &[], 0)];
        let trend = trend(columns.to_vec());
        let expected = "two: median +0.50 %, −18.00 to +1.00 %, 2 equivalent, 1 regressed; three: +2.00 %, 1 equivalent; four: no check";
        assert_eq!(trend.description(), expected);
        let svg = crate::chart::inline(&trend, 326.0, "c");
        assert_eq!(svg.matches("class=\"hit\"").count(), 3);
        assert!(svg.contains("class=\"regressed\"") && svg.contains(">three</text>"), "{svg}");
    }

    #[test]
    fn build_without_gains_is_a_gap_and_names_of_forty_builds_fit() {
        let mut columns: Vec<TrendColumn> =
            (0..40).map(|index| column(&format!("build-{index}"), &[0.1, 0.2], 0)).collect();
        columns[20].summary = None;
        let svg = crate::chart::inline(&trend(columns), 326.0, "c");
        let series = svg.split("class=\"series\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(series.matches('M').count(), 2, "{series}");
        assert!(svg.contains(">build-39</text>"), "{svg}");
        let names = svg.matches("text-anchor=\"end\">build-").count();
        assert!((4..=6).contains(&names), "{names} names fit: {svg}");
    }
}

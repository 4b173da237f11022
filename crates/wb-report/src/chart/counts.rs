//! Draws counts as stacked bars: one bar per row, one part per kind.

use super::element::Element;
use super::{Chart, Drawing, text_width, truncate_to_width};

#[derive(Debug, Clone)]
pub(crate) struct CountsChart {
    pub(crate) title: String,
    /// From the top.
    pub(crate) rows: Vec<CountRow>,
}

#[derive(Debug, Clone)]
pub(crate) struct CountRow {
    pub(crate) label: String,
    /// From the left: the kind's CSS class, its name and its count.
    pub(crate) parts: Vec<(&'static str, &'static str, usize)>,
}

const ROW: f64 = 26.0;
const BAR: f64 = 18.0;
const NAME_LINE: f64 = 15.0;

impl Chart for CountsChart {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let describe = |row: &CountRow| format!("{}: {}", row.label, row.texts().collect::<Vec<_>>().join(", "));
        self.rows.iter().map(describe).collect::<Vec<_>>().join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        let longest = self.rows.iter().map(|row| text_width(&row.label, 12.0) + 14.0).fold(0.0, f64::max);
        let beside = longest <= width * 0.3;
        let (left, line) = if beside { (longest, 0.0) } else { (0.0, NAME_LINE) };
        let max_count = self.rows.iter().map(CountRow::count).max().unwrap_or(0).max(1);
        let per_check = (width - left) / max_count as f64;
        let mut body = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let top = index as f64 * (ROW + line);
            let (name, room) = if beside { (top + BAR / 2.0 + 4.0, left) } else { (top + 11.0, width) };
            body.push(
                Element::text("start", (0.0, name), &truncate_to_width(&row.label, 12.0, room))
                    .with_attribute("class", "case"),
            );
            body.extend(row.bar((left, top + line), per_check));
        }
        Drawing { width, height: self.rows.len() as f64 * (ROW + line), body }
    }
}

impl CountRow {
    pub(super) fn count(&self) -> usize {
        self.parts.iter().map(|(.., count)| count).sum()
    }

    /// The parts that occur: `3 improved`.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.parts.iter().filter(|(.., count)| *count > 0).map(|(_, name, count)| format!("{count} {name}"))
    }

    fn bar(&self, (mut left, top): (f64, f64), per_check: f64) -> Vec<Element> {
        let mut body = Vec::new();
        for (class, name, count) in self.parts.iter().filter(|(.., count)| *count > 0) {
            let right = left + *count as f64 * per_check;
            // A gap between parts, and a minimum width for the smallest.
            let end = (right - 1.0).max(left + 0.7);
            let part = Element::rect(*class, (left, top), (end, top + BAR));
            body.push(part.with_title(&format!("{}: {count} {name}", self.label)));
            let text = count.to_string();
            if text_width(&text, 11.0) + 4.0 < end - left {
                let label = Element::text("middle", ((left + end) / 2.0, top + BAR / 2.0 + 4.0), &text);
                body.push(label.with_attribute("class", format!("on {class}")));
            }
            left = right;
        }
        body
    }
}

pub(crate) fn count_key(class: &'static str) -> String {
    Element::rect(class, (1.0, 1.0), (11.0, 11.0)).into_legend_symbol()
}

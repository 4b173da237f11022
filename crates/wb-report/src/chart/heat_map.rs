//! Draws heat maps: a panel for each combination, with a cell for each pair.

use wb_model::Unit;

use super::element::Element;
use super::{Chart, Drawing, text_width, truncate_to_width};

/// Heat maps of one metric on one colour scale, which is logarithmic if values differ more than tenfold.
#[derive(Debug, Clone)]
pub struct HeatMap {
    pub title: String,
    pub unit: Unit,
    /// What the rows are, such as `dialer`.
    pub row_axis: String,
    pub column_axis: String,
    /// From the top.
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    pub panels: Vec<HeatPanel>,
    pub hue: HeatHue,
}

/// What the darkest colour of a heat map stands for: the highest value, which is the best or the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeatHue {
    Rate,
    Time,
}

#[derive(Debug, Clone)]
pub struct HeatPanel {
    pub title: String,
    /// By row and column.
    pub cells: Vec<Vec<HeatCell>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HeatCell {
    Value {
        /// In the unit of the map.
        value: f64,
        tooltip: String,
    },
    /// Not measured.
    Missing {
        /// `fail` or `invalid`.
        word: &'static str,
        tooltip: String,
    },
    /// There is no such pair.
    Absent,
}

const ROW: f64 = 26.0;
const PANEL_TITLE: f64 = 20.0;
const GAP: f64 = 26.0;
const MIN_CELL: f64 = 36.0;
const MAX_CELL: f64 = 50.0;
const LEGEND: f64 = 50.0;
/// Cosine and sine of the angle of column names that do not fit horizontally.
const SLANT: (f64, f64) = (0.766, 0.643);

struct Layout {
    label: f64,
    cell: f64,
    head: f64,
    is_slanted: bool,
    panel: (f64, f64),
    per_row: usize,
}

impl HeatMap {
    fn layout(&self, width: f64) -> Layout {
        let widest = |names: &[String], size| names.iter().map(|name| text_width(name, size)).fold(0.0, f64::max);
        let label = (widest(&self.rows, 11.0) + 8.0).min(width * 0.3);
        let columns = self.columns.len().max(1) as f64;
        let longest = widest(&self.columns, 11.0);
        let cell = ((width - label) / columns).clamp(1.0, MAX_CELL);
        let cell = if cell > MIN_CELL { (longest + 8.0).clamp(MIN_CELL, cell) } else { cell };
        let is_slanted = longest + 4.0 > cell;
        let head = if is_slanted { (longest * SLANT.1 + 14.0).ceil().min(90.0) } else { 18.0 };
        let title = self.panels.iter().map(|panel| text_width(&panel.title, 12.0)).fold(0.0, f64::max);
        // The last slanted name ends beside its column.
        let beside = if is_slanted { (longest * SLANT.0 - cell / 2.0).max(0.0) } else { 0.0 };
        let panel_width = (label + columns * cell + beside).max(title).min(width);
        let per_row = (((width + GAP) / (panel_width + GAP)) as usize).clamp(1, self.panels.len().max(1));
        let height = PANEL_TITLE + head + self.rows.len() as f64 * ROW;
        Layout { label, cell, head, is_slanted, panel: (panel_width, height), per_row }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.panels.iter().flat_map(|panel| &panel.cells).flatten().filter_map(|cell| match cell {
            HeatCell::Value { value, .. } if value.is_finite() => Some(*value),
            _ => None,
        })
    }

    /// How dark a value is, from 0 to 1.
    fn shade(&self, value: f64, (low, high): (f64, f64)) -> f64 {
        let is_log = low > 0.0 && high / low > 10.0;
        let shade = if is_log { (value / low).ln() / (high / low).ln() } else { value / high };
        if shade.is_finite() { shade.clamp(0.0, 1.0) } else { 0.0 }
    }

    fn range(&self) -> (f64, f64) {
        self.values().fold((f64::INFINITY, 0.0), |(low, high), value| (f64::min(low, value), f64::max(high, value)))
    }

    fn draw_panel(&self, panel: &HeatPanel, layout: &Layout, (left, top): (f64, f64)) -> Vec<Element> {
        let title = truncate_to_width(&panel.title, 12.0, layout.panel.0);
        let mut body = vec![Element::text("start", (left, top + 12.0), &title).with_attribute("class", "heading")];
        let first_row = top + PANEL_TITLE + layout.head;
        for (index, name) in self.columns.iter().enumerate() {
            let x = left + layout.label + (index as f64 + 0.5) * layout.cell;
            let y = first_row - 6.0;
            let text = if layout.is_slanted {
                let position = format!("rotate(-40 {} {})", super::format_pixels(x), super::format_pixels(y));
                let longest = (layout.head - 14.0) / SLANT.1 + 4.0;
                Element::text("start", (x, y), &truncate_to_width(name, 11.0, longest))
                    .with_attribute("transform", position)
            } else {
                Element::text("middle", (x, y), name)
            };
            body.push(text.with_title(&format!("{}: {name}", self.column_axis)));
        }
        let (factor, _) = self.unit.readable(self.range().1);
        for (row, name) in self.rows.iter().enumerate() {
            let y = first_row + row as f64 * ROW;
            let label = truncate_to_width(name, 11.0, layout.label - 6.0);
            let label = Element::text("end", (left + layout.label - 6.0, y + ROW / 2.0 + 4.0), &label);
            body.push(label.with_title(&format!("{}: {name}", self.row_axis)));
            for column in 0..self.columns.len() {
                let x = left + layout.label + column as f64 * layout.cell;
                let cell = panel.cells.get(row).and_then(|cells| cells.get(column)).unwrap_or(&HeatCell::Absent);
                body.extend(self.draw_cell(cell, factor, (x, y), layout.cell));
            }
        }
        body
    }

    fn draw_cell(&self, cell: &HeatCell, factor: f64, (x, y): (f64, f64), width: f64) -> Vec<Element> {
        let corners = ((x + 1.0, y + 1.0), (x + width - 1.0, y + ROW - 1.0));
        let middle = (x + width / 2.0, y + ROW / 2.0 + 4.0);
        match cell {
            HeatCell::Value { value, tooltip } => {
                let shade = self.shade(*value, self.range());
                let class = match self.hue {
                    HeatHue::Rate => "heat",
                    HeatHue::Time => "heat slow",
                };
                let fill = Element::rect(class, corners.0, corners.1)
                    .with_attribute("fill-opacity", format!("{:.2}", 0.08 + 0.92 * shade))
                    .with_title(tooltip);
                let text = Element::text("middle", middle, &three_digits(value / factor));
                let class = if shade > 0.55 { "on-heat" } else { "value" };
                vec![fill, text.with_attribute("class", class)]
            }
            HeatCell::Missing { word, tooltip } => {
                let outline = Element::rect("no-heat", corners.0, corners.1).with_title(tooltip);
                let text = Element::text("middle", middle, &truncate_to_width(word, 11.0, width));
                vec![outline, text.with_attribute("class", "no-value")]
            }
            HeatCell::Absent => vec![Element::text("middle", middle, "·")],
        }
    }

    fn legend(&self) -> [String; 2] {
        let (_, suffix) = self.unit.readable(self.range().1);
        let meaning = match self.hue {
            HeatHue::Rate => "darker is faster",
            HeatHue::Time => "darker is slower",
        };
        let (low, high) = self.range();
        let scale = if low > 0.0 && high / low > 10.0 { ", on a logarithmic scale" } else { "" };
        let axes = format!("rows: {}, columns: {}", self.row_axis, self.column_axis);
        [format!("{suffix}; {meaning}{scale}"), axes]
    }
}

/// Formats a value in as few characters as its first three digits need.
fn three_digits(value: f64) -> String {
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

impl Chart for HeatMap {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let mut parts = Vec::new();
        for panel in &self.panels {
            for (row, cells) in self.rows.iter().zip(&panel.cells) {
                for (column, cell) in self.columns.iter().zip(cells) {
                    let text = match cell {
                        HeatCell::Value { value, .. } => self.unit.quantity(*value).to_string(),
                        HeatCell::Missing { word, .. } => (*word).to_owned(),
                        HeatCell::Absent => continue,
                    };
                    parts.push(format!("{}, {row} to {column}: {text}", panel.title));
                }
            }
        }
        parts.join("; ")
    }

    fn draw(&self, width: f64) -> Drawing {
        let layout = self.layout(width);
        let mut body = Vec::new();
        for (index, panel) in self.panels.iter().enumerate() {
            let (row, column) = (index / layout.per_row, index % layout.per_row);
            let position = (column as f64 * (layout.panel.0 + GAP), row as f64 * (layout.panel.1 + GAP));
            body.extend(self.draw_panel(panel, &layout, position));
        }
        let rows = self.panels.len().div_ceil(layout.per_row) as f64;
        let bottom = (rows * (layout.panel.1 + GAP) - GAP).max(0.0);
        for (line, text) in self.legend().iter().enumerate() {
            let y = bottom + 24.0 + 16.0 * line as f64;
            body.push(Element::text("start", (0.0, y), &truncate_to_width(text, 11.0, width)));
        }
        Drawing { width, height: bottom + LEGEND, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(values: &[f64]) -> HeatMap {
        let value = |value: &f64| HeatCell::Value { value: *value, tooltip: format!("<{value}>") };
        let missing = HeatCell::Missing { word: "fail", tooltip: "timeout".to_owned() };
        let cells = vec![values.iter().map(value).chain([missing]).collect()];
        let columns: Vec<String> = (0..=values.len()).map(|index| format!("listener-{index}")).collect();
        HeatMap {
            title: "Upload".to_owned(),
            unit: Unit::new("bit/s"),
            row_axis: "dialer".to_owned(),
            column_axis: "listener".to_owned(),
            rows: vec!["a".to_owned()],
            columns,
            panels: vec![HeatPanel { title: "tcp".to_owned(), cells }],
            hue: HeatHue::Rate,
        }
    }

    #[test]
    fn cells_show_their_value_or_why_there_is_none() {
        let svg = crate::chart::svg(&map(&[1e9, 3.5e9]), 400.0);
        assert!(svg.contains(">3.50</text>") && svg.contains(">fail</text>"), "{svg}");
        assert!(svg.contains("&lt;1000000000&gt;") && svg.contains("Gbit/s; darker is faster<"), "{svg}");
    }

    #[test]
    fn tenfold_differences_are_logarithmic() {
        let wide = map(&[1e6, 1e8, 1e9]);
        assert!(wide.legend()[0].contains("logarithmic"));
        let range = wide.range();
        assert!((wide.shade(1e8, range) - 2.0 / 3.0).abs() < 1e-9);
        assert!(!map(&[1e9, 2e9]).legend()[0].contains("logarithmic"));
    }

    #[test]
    fn a_map_without_values_is_drawn() {
        for values in [&[][..], &[0.0], &[f64::NAN]] {
            let svg = crate::chart::svg(&map(values), 300.0);
            assert!(!svg.contains("=\"NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}

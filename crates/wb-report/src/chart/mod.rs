//! SVG charts for pages and image files.
//!
//! The charts do not use plotters (evaluated: 0.3 with its SVG backend). It writes colours into the shapes and rounds
//! positions to whole pixels, so that charts cannot adapt to a dark page; it has no classes, accessible titles and
//! descriptions, or tooltips. The few shapes needed here fit in one short file. A chart is drawn for each width instead
//! of being scaled, so that its text stays readable on a phone.
//!
//! Start with [`Chart`] and [`svg`].

mod bar;
mod box_plot;
mod counts;
mod curve;
mod element;
mod forest;
mod heat_map;
mod palette;
mod pdf;
mod png;
mod ratio;
mod sample_mark;
mod scale;
mod scatter;
mod telemetry;
mod timeline;
mod trend;

pub(crate) use bar::{SummaryBars, summary_bar};
pub use box_plot::{BoxPlot, BoxRow, ReferenceLine};
pub(crate) use counts::{CountRow, CountsChart, count_key};
pub use curve::CurveChart;
pub(crate) use curve::KneeMark;
pub(crate) use forest::{ForestPlot, ForestRow};
pub use heat_map::{HeatCell, HeatHue, HeatMap, HeatPanel};
pub(crate) use palette::css_variables;
pub use pdf::{PdfError, pdf};
pub use png::{PngError, png};
pub(crate) use ratio::{RatioBars, RatioEstimate};
pub use sample_mark::{SampleDot, SampleMark};
pub use scatter::ScatterChart;
pub use telemetry::{TelemetryChart, TelemetrySegment};
pub use timeline::{SampleTimeline, TimelineRow};
pub(crate) use trend::{TrendChart, TrendColumn};

use element::{Element, format_pixels};

/// The style sheet of all charts; requires the palette's variables.
pub(crate) const CSS: &str = include_str!("chart.css");

/// A chart that can be drawn at any width.
pub trait Chart {
    fn title(&self) -> String;
    /// For screen readers.
    fn description(&self) -> String;
    /// Draws the chart for a width in pixels.
    fn draw(&self, width: f64) -> Drawing;
}

/// The elements of a drawn chart.
#[derive(Debug, Clone)]
pub struct Drawing {
    width: f64,
    height: f64,
    body: Vec<Element>,
}

/// Renders a chart as an SVG file, with its title, on a light background.
pub fn svg(chart: &dyn Chart, width: f64) -> String {
    let drawing = chart.draw(width - 2.0 * MARGIN);
    let style = Element::new("style").with_text(&palette::inline_variables(CSS));
    let name =
        Element::text("start", (MARGIN, MARGIN + 10.0), &truncate_to_width(&chart.title(), 14.0, width - 2.0 * MARGIN));
    let transform = format!("translate({} {})", format_pixels(MARGIN), format_pixels(MARGIN + TITLE_HEIGHT));
    let body = Element::new("g").with_attribute("transform", transform).with_children(drawing.body);
    let frame = Drawing { width, height: drawing.height + TITLE_HEIGHT + 2.0 * MARGIN, body: Vec::new() };
    let background =
        Element::rect("paper", (0.0, 0.0), (width, frame.height)).with_attribute("fill", palette::PALETTE[0].1);
    let root = root(chart, &frame, "chart").with_attribute("xmlns", "http://www.w3.org/2000/svg");
    format!("{}\n", root.with_children([style, background, name.with_attribute("class", "name"), body]))
}

/// Margin around a chart in a file, in pixels. [`TITLE_HEIGHT`] is the height of its title.
const MARGIN: f64 = 16.0;
const TITLE_HEIGHT: f64 = 26.0;

/// Renders a chart for a page that includes [`CSS`]. `id` must be unique within the page.
pub(crate) fn inline(chart: &dyn Chart, width: f64, id: &str) -> String {
    let drawing = chart.draw(width);
    root(chart, &drawing, id).with_children(drawing.body).to_string()
}

fn root(chart: &dyn Chart, drawing: &Drawing, id: &str) -> Element {
    let (title, description) = (format!("{id}-t"), format!("{id}-d"));
    let labelled = |name, id: &str, text: &str| Element::new(name).with_attribute("id", id).with_text(text);
    Element::new("svg")
        .with_attribute("class", "chart")
        .with_attribute("role", "img")
        .with_attribute("aria-labelledby", format!("{title} {description}"))
        .with_attribute("viewBox", format!("0 0 {} {}", format_pixels(drawing.width), format_pixels(drawing.height)))
        .with_coordinate("width", drawing.width)
        .with_coordinate("height", drawing.height)
        .with_children([
            labelled("title", &title, &chart.title()),
            labelled("desc", &description, &chart.description()),
        ])
}

/// Estimates the width of a text in the charts' font, in pixels.
fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

/// Replaces hyphens before digits by minus signs.
fn with_minus(text: &str) -> String {
    let parts =
        text.split('-').enumerate().map(|(index, part)| match part.starts_with(|next: char| next.is_ascii_digit()) {
            _ if index == 0 => part.to_owned(),
            true => format!("−{part}"),
            false => format!("-{part}"),
        });
    parts.collect()
}

fn truncate_to_width(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let length = (width / (size * 0.56)).floor().max(2.0) as usize - 1;
    format!("{}…", text.chars().take(length).collect::<String>())
}

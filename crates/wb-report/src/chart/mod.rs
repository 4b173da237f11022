//! Charts, drawn once and shown everywhere: in the page, and as files of their own.
//!
//! Drawn with shapes of our own rather than with plotters (looked at: 0.3 with its SVG backend): that writes every
//! colour into the shapes and rounds places to whole pixels, so that a chart cannot follow a dark page, has no
//! classes, titles or descriptions for who cannot see it, and no shape that tells what a pointer rests on. What is
//! needed of shapes here fits in one short file. A chart is drawn anew for each width instead of being scaled, so
//! that its text stays readable on a phone.
//!
//! Start with [`Chart`] and [`svg`].

mod bar;
mod box_plot;
mod counts;
mod curve;
mod element;
mod palette;
mod png;
mod ratio;
mod sample_mark;
mod scale;
mod telemetry;
mod timeline;
mod trend;

pub(crate) use bar::{SummaryBars, summary_bar};
pub use box_plot::{BoxPlot, BoxRow, ReferenceLine};
pub(crate) use counts::{CountRow, CountsChart, count_key};
pub use curve::CurveChart;
pub(crate) use palette::css_variables;
pub use png::{PngError, png};
pub(crate) use ratio::{RatioBars, RatioEstimate};
pub(crate) use sample_mark::legend_symbol as mark_key;
pub use sample_mark::{SampleDot, SampleMark};
pub(crate) use scale::common_prefix;
pub use telemetry::{TelemetryChart, TelemetrySegment};
pub use timeline::{SampleTimeline, TimelineRow};
pub(crate) use trend::{TrendChart, TrendColumn};

use element::{Element, format_pixels};

/// The style of all charts; needs the palette's variables.
pub(crate) const CSS: &str = include_str!("chart.css");

/// Something that can be drawn at any width.
pub trait Chart {
    /// What it shows, in a few words.
    fn title(&self) -> String;
    /// What is to be seen in it, for who cannot see it.
    fn description(&self) -> String;
    /// It, for so many pixels.
    fn draw(&self, width: f64) -> Drawing;
}

/// A drawn chart, not yet text.
#[derive(Debug, Clone)]
pub struct Drawing {
    width: f64,
    height: f64,
    body: Vec<Element>,
}

/// A chart as a file of its own, with its name, on light ground.
pub fn svg(chart: &dyn Chart, width: f64) -> String {
    let drawing = chart.draw(width - 2.0 * MARGIN);
    let style = Element::new("style").with_text(&palette::inline_variables(CSS));
    let name =
        Element::text("start", (MARGIN, MARGIN + 10.0), &truncate_to_width(&chart.title(), 14.0, width - 2.0 * MARGIN));
    let moved = format!("translate({} {})", format_pixels(MARGIN), format_pixels(MARGIN + TITLE_HEIGHT));
    let body = Element::new("g").with_attribute("transform", moved).with_children(drawing.body);
    let framed = Drawing { width, height: drawing.height + TITLE_HEIGHT + 2.0 * MARGIN, body: Vec::new() };
    let ground =
        Element::rect("paper", (0.0, 0.0), (width, framed.height)).with_attribute("fill", palette::PALETTE[0].1);
    let root = root(chart, &framed, "chart").with_attribute("xmlns", "http://www.w3.org/2000/svg");
    format!("{}\n", root.with_children([style, ground, name.with_attribute("class", "name"), body]))
}

/// Free ground around a chart that is a file, and the line of its name.
const MARGIN: f64 = 16.0;
const TITLE_HEIGHT: f64 = 26.0;

/// A chart within a page that has the style. `id` is unique within the page.
pub(crate) fn inline(chart: &dyn Chart, width: f64, id: &str) -> String {
    let drawing = chart.draw(width);
    root(chart, &drawing, id).with_children(drawing.body).to_string()
}

fn root(chart: &dyn Chart, drawing: &Drawing, id: &str) -> Element {
    let (title, description) = (format!("{id}-t"), format!("{id}-d"));
    let named = |name, id: &str, text: &str| Element::new(name).with_attribute("id", id).with_text(text);
    Element::new("svg")
        .with_attribute("class", "chart")
        .with_attribute("role", "img")
        .with_attribute("aria-labelledby", format!("{title} {description}"))
        .with_attribute("viewBox", format!("0 0 {} {}", format_pixels(drawing.width), format_pixels(drawing.height)))
        .with_coordinate("width", drawing.width)
        .with_coordinate("height", drawing.height)
        .with_children([named("title", &title, &chart.title()), named("desc", &description, &chart.description())])
}

/// About how wide a text is in the charts' font.
fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

/// A text cut to fit.
fn truncate_to_width(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let kept = (room / (size * 0.56)).floor().max(2.0) as usize - 1;
    format!("{}…", text.chars().take(kept).collect::<String>())
}

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
mod mark;
mod palette;
mod png;
mod ratio;
mod scale;
mod sequence;
mod strip;
mod trend;

pub(crate) use bar::{Bars, bar};
pub use box_plot::{Baseline, BoxPlot, BoxRow};
pub(crate) use counts::{CountRow, Counts, count_key};
pub use curve::CurveChart;
pub(crate) use mark::key as mark_key;
pub use mark::{Dot, Mark};
pub(crate) use palette::variables;
pub use png::{PngError, png};
pub(crate) use ratio::{Ratio, RatioBars};
pub(crate) use scale::prefixed;
pub use sequence::{Sequence, SequenceRow};
pub use strip::{Segment, Strip};
pub(crate) use trend::{Trend, TrendColumn};

use element::{Element, pixels};

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
    let drawing = chart.draw(width - 2.0 * EDGE);
    let style = Element::new("style").containing(&palette::resolved(CSS));
    let name = Element::text("start", (EDGE, EDGE + 10.0), &fitted(&chart.title(), 14.0, width - 2.0 * EDGE));
    let moved = format!("translate({} {})", pixels(EDGE), pixels(EDGE + NAME));
    let body = Element::new("g").with("transform", moved).holding(drawing.body);
    let framed = Drawing { width, height: drawing.height + NAME + 2.0 * EDGE, body: Vec::new() };
    let ground = Element::rect("paper", (0.0, 0.0), (width, framed.height)).with("fill", palette::PALETTE[0].1);
    let root = root(chart, &framed, "chart").with("xmlns", "http://www.w3.org/2000/svg");
    format!("{}\n", root.holding([style, ground, name.with("class", "name"), body]))
}

/// Free ground around a chart that is a file, and the line of its name.
const EDGE: f64 = 16.0;
const NAME: f64 = 26.0;

/// A chart within a page that has the style. `id` is unique within the page.
pub(crate) fn inline(chart: &dyn Chart, width: f64, id: &str) -> String {
    let drawing = chart.draw(width);
    root(chart, &drawing, id).holding(drawing.body).to_string()
}

fn root(chart: &dyn Chart, drawing: &Drawing, id: &str) -> Element {
    let (title, description) = (format!("{id}-t"), format!("{id}-d"));
    let named = |name, id: &str, text: &str| Element::new(name).with("id", id).containing(text);
    Element::new("svg")
        .with("class", "chart")
        .with("role", "img")
        .with("aria-labelledby", format!("{title} {description}"))
        .with("viewBox", format!("0 0 {} {}", pixels(drawing.width), pixels(drawing.height)))
        .at("width", drawing.width)
        .at("height", drawing.height)
        .holding([named("title", &title, &chart.title()), named("desc", &description, &chart.description())])
}

/// About how wide a text is in the charts' font.
fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

/// A text cut to fit.
fn fitted(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let kept = (room / (size * 0.56)).floor().max(2.0) as usize - 1;
    format!("{}…", text.chars().take(kept).collect::<String>())
}

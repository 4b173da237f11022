//! Draws the small bars of the overview: a cell's median, interval and range on the scale of its group.

use wb_model::Unit;
use wb_stats::Summary;

use super::element::Element;
use super::scale::{Scale, extent};

/// The common scale of a group's bars.
pub(crate) struct SummaryBars {
    scale: Scale,
}

pub(super) const WIDTH: f64 = 170.0;
pub(super) const HEIGHT: f64 = 18.0;
/// Minimum span as a fraction of the values, so that small scatter looks small.
const MIN_SPAN: f64 = 0.1;

impl SummaryBars {
    pub(crate) fn new<'a>(unit: &Unit, summaries: impl IntoIterator<Item = &'a Summary>) -> Self {
        let values = summaries.into_iter().flat_map(extent);
        Self { scale: Scale::fit(unit, values, MIN_SPAN).with_range(4.0, WIDTH - 4.0) }
    }

    pub(crate) fn is_log(&self) -> bool {
        self.scale.is_log()
    }

    pub(crate) fn axis(&self) -> String {
        draw_axis(&self.scale)
    }
}

pub(super) fn draw_axis(scale: &Scale) -> String {
    let (ticks, unit) = scale.ticks(4);
    let mut body = vec![Element::line("axis", (4.0, 1.0), (WIDTH - 4.0, 1.0))];
    let mut free = WIDTH;
    for (index, tick) in ticks.iter().rev().enumerate() {
        let label = if index == 0 && !unit.is_empty() { format!("{} {unit}", tick.label) } else { tick.label.clone() };
        let half = super::text_width(&label, 11.0) / 2.0;
        let x = tick.at.clamp(half, (WIDTH - half).max(half));
        body.push(Element::line("whisker", (tick.at, 1.0), (tick.at, 4.0)));
        if x + half <= free {
            body.push(Element::text("middle", (x, 14.0), &label));
            free = x - half - 6.0;
        }
    }
    let kind = if scale.is_log() { "logarithmic scale" } else { "scale" };
    small_svg(&format!("{kind} of the bars above"), body)
}

pub(crate) fn summary_bar(bars: &SummaryBars, summary: &Summary, description: &str) -> String {
    let x = |value| bars.scale.position(value);
    let middle = HEIGHT / 2.0;
    let track = Element::line("grid", (4.0, middle), (WIDTH - 4.0, middle));
    let mut body = vec![track, Element::line("whisker", (x(summary.min), middle), (x(summary.max), middle))];
    if let Some(interval) = summary.median_interval {
        let (low, high) = (x(interval.low), x(interval.high));
        let (low, high) =
            if high - low < 2.0 { ((low + high) / 2.0 - 1.0, (low + high) / 2.0 + 1.0) } else { (low, high) };
        body.push(Element::rect("interval", (low, middle - 3.5), (high, middle + 3.5)));
    }
    body.push(Element::line("median", (x(summary.median), middle - 6.5), (x(summary.median), middle + 6.5)));
    small_svg(description, body)
}

pub(super) fn small_svg(description: &str, body: Vec<Element>) -> String {
    let svg = Element::new("svg")
        .with_attribute("class", "chart")
        .with_attribute("role", "img")
        .with_attribute("aria-label", description);
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    svg.with_attribute("viewBox", view)
        .with_coordinate("width", WIDTH)
        .with_coordinate("height", HEIGHT)
        .with_children(body)
        .to_string()
}

//! The small bars of the overview: a cell's median, interval and range on the scale of its group.

use wb_model::Unit;
use wb_stats::Summary;

use super::element::Element;
use super::scale::Scale;

/// The scale that the bars of a group share.
pub(crate) struct Bars {
    scale: Scale,
}

pub(super) const WIDTH: f64 = 170.0;
pub(super) const HEIGHT: f64 = 18.0;
/// Small scatter must stay small beside the figure it belongs to.
const LEAST_SPAN: f64 = 0.1;

impl Bars {
    /// For these summaries.
    pub(crate) fn new<'a>(unit: &Unit, summaries: impl IntoIterator<Item = &'a Summary>) -> Self {
        let values = summaries.into_iter().flat_map(|summary| [summary.min, summary.max]);
        Self { scale: Scale::fit(unit, values, LEAST_SPAN).over(4.0, WIDTH - 4.0) }
    }

    /// The scale itself, under the last bar.
    pub(crate) fn axis(&self) -> String {
        axis(&self.scale)
    }
}

/// A scale under the bars that share it.
pub(super) fn axis(scale: &Scale) -> String {
    let (ticks, unit) = scale.ticks(4);
    let mut body = vec![Element::line("axis", (4.0, 1.0), (WIDTH - 4.0, 1.0))];
    let mut free = WIDTH;
    for (at, tick) in ticks.iter().rev().enumerate() {
        let label = if at == 0 && !unit.is_empty() { format!("{} {unit}", tick.label) } else { tick.label.clone() };
        let half = super::text_width(&label, 11.0) / 2.0;
        let x = tick.at.clamp(half, (WIDTH - half).max(half));
        body.push(Element::line("whisker", (tick.at, 1.0), (tick.at, 4.0)));
        if x + half <= free {
            body.push(Element::text("middle", (x, 14.0), &label));
            free = x - half - 6.0;
        }
    }
    let kind = if scale.is_log() { "logarithmic scale" } else { "scale" };
    drawn(&format!("{kind} of the bars above"), body)
}

/// The bar of one cell.
pub(crate) fn bar(bars: &Bars, summary: &Summary, told: &str) -> String {
    let x = |value| bars.scale.place(value);
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
    drawn(told, body)
}

/// A picture of this size, and what is to be seen in it.
pub(super) fn drawn(told: &str, body: Vec<Element>) -> String {
    let svg = Element::new("svg").with("class", "chart").with("role", "img").with("aria-label", told);
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    svg.with("viewBox", view).at("width", WIDTH).at("height", HEIGHT).holding(body).to_string()
}

//! How a sample is drawn: what became of it decides the shape, and the colour with it.

use wb_study::result::{Purpose, SampleResult};

use super::element::Element;
use crate::phrasing;

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleMark {
    /// It counts.
    Counted,
    /// It was disturbed from outside.
    Disturbed,
    /// It is a warm-up.
    WarmUp,
    /// Its values are fine and yet not among those that count.
    NotCounted,
    /// Its values did not stand up to a gate.
    Invalid,
    /// It has no value.
    NoValue,
}

/// A sample in a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleDot {
    /// Seconds since the run began.
    pub at: f64,
    /// Its value; none where it has none.
    pub value: Option<f64>,
    /// What became of it.
    pub mark: SampleMark,
    /// What a pointer resting on it is told.
    pub tooltip: String,
}

impl SampleMark {
    /// All of them, in the order of a legend.
    pub(crate) const ALL: [Self; 6] =
        [Self::Counted, Self::Disturbed, Self::WarmUp, Self::NotCounted, Self::Invalid, Self::NoValue];

    /// Of this sample; `value` tells whether it has one of the metric that is drawn.
    pub(crate) fn of(sample: &SampleResult, value: Option<f64>) -> Self {
        if value.is_none() || !sample.outcome.is_completed() {
            Self::NoValue
        } else if matches!(sample.validity, Some(wb_model::Validity::Invalid { .. })) {
            Self::Invalid
        } else if sample.purpose == Purpose::WarmUp {
            Self::WarmUp
        } else if !sample.disturbances.is_empty() {
            Self::Disturbed
        } else if sample.counted {
            Self::Counted
        } else {
            Self::NotCounted
        }
    }

    /// Its name in a legend.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Disturbed => "disturbed",
            Self::WarmUp => "warm-up",
            Self::NotCounted => "not counted",
            Self::Invalid => "invalid",
            Self::NoValue => "without a value",
        }
    }

    /// At a place.
    pub(super) fn draw(self, (x, y): (f64, f64)) -> Element {
        let path = |class: &str, d: String| Element::new("path").with_attribute("class", class).with_attribute("d", d);
        let circle = |class: &str, r: f64| {
            Element::new("circle")
                .with_attribute("class", class)
                .with_coordinate("cx", x)
                .with_coordinate("cy", y)
                .with_coordinate("r", r)
        };
        let p = super::element::format_pixels;
        match self {
            Self::Counted => circle("counted", 3.2),
            Self::WarmUp => circle("warm-up", 2.8),
            Self::Disturbed => path("disturbed", format!("M{} {}l4.4 7.6h-8.8z", p(x), p(y - 4.6))),
            Self::NotCounted => Element::rect("set-aside", (x - 2.6, y - 2.6), (x + 2.6, y + 2.6)),
            Self::Invalid => path("invalid", format!("M{} {}l6.4 6.4m0-6.4l-6.4 6.4", p(x - 3.2), p(y - 3.2))),
            Self::NoValue => Element::line("without-value", (x, y - 6.0), (x, y + 6.0)),
        }
    }
}

impl SampleDot {
    /// Of a sample, for the metric with this key.
    pub(crate) fn of(sample: &SampleResult, key: &str, unit: &wb_model::Unit) -> Self {
        let value = sample.values.get(key).copied();
        let mark = SampleMark::of(sample, value);
        let figure = value.map(|value| format!(": {}", unit.quantity(value))).unwrap_or_default();
        let remarks: String = phrasing::sample_remarks(sample).iter().map(|remark| format!("; {remark}")).collect();
        let name = format!("{} {}", phrasing::purpose_label(sample.purpose), sample.sample);
        let set_aside = if mark == SampleMark::NotCounted { "; not counted" } else { "" };
        let tooltip =
            format!("{name} at {}{figure}{set_aside}{remarks}", phrasing::format_elapsed(sample.start_seconds));
        Self { at: sample.start_seconds, value, mark, tooltip }
    }
}

/// A mark by itself, for a legend.
pub(crate) fn legend_symbol(mark: SampleMark) -> String {
    let svg = Element::new("svg")
        .with_attribute("class", "chart key")
        .with_attribute("aria-hidden", "true")
        .with_attribute("viewBox", "0 0 12 12");
    svg.with_coordinate("width", 12.0)
        .with_coordinate("height", 12.0)
        .with_children([mark.draw((6.0, 6.0))])
        .to_string()
}

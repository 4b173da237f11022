//! Draws samples; shape and colour show the status of a sample.

use wb_model::{AttemptPurpose, MetricKey};
use wb_results::AttemptResult;

use super::element::Element;
use crate::phrasing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleMark {
    Counted,
    /// Disturbed by other activity on the system.
    Disturbed,
    WarmUp,
    NotCounted,
    Invalid,
    NoValue,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SampleDot {
    /// Seconds since the start of the run.
    pub at: f64,
    pub value: Option<f64>,
    pub mark: SampleMark,
    pub tooltip: String,
}

impl SampleMark {
    /// In the order of the legend.
    pub(crate) const ALL: [Self; 6] =
        [Self::Counted, Self::Disturbed, Self::WarmUp, Self::NotCounted, Self::Invalid, Self::NoValue];

    /// The status of a sample; `value` is its value of the drawn metric.
    pub(crate) fn new(sample: &AttemptResult, value: Option<f64>) -> Self {
        if value.is_none() || !sample.outcome.is_completed() {
            Self::NoValue
        } else if matches!(sample.validity, Some(wb_model::Validity::Invalid { .. })) {
            Self::Invalid
        } else if sample.purpose == AttemptPurpose::WarmUp {
            Self::WarmUp
        } else if !sample.disturbances.is_empty() {
            Self::Disturbed
        } else if sample.counted {
            Self::Counted
        } else {
            Self::NotCounted
        }
    }

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

    pub(crate) fn legend_symbol(self) -> String {
        self.draw((6.0, 6.0)).into_legend_symbol()
    }

    pub(super) fn draw(self, (x, y): (f64, f64)) -> Element {
        let p = super::element::format_pixels;
        match self {
            Self::Counted => Element::circle("counted", (x, y), 3.2),
            Self::WarmUp => Element::circle("warm-up", (x, y), 2.8),
            Self::Disturbed => Element::path("disturbed", format!("M{} {}l4.4 7.6h-8.8z", p(x), p(y - 4.6))),
            Self::NotCounted => Element::rect("set-aside", (x - 2.6, y - 2.6), (x + 2.6, y + 2.6)),
            Self::Invalid => Element::path("invalid", format!("M{} {}l6.4 6.4m0-6.4l-6.4 6.4", p(x - 3.2), p(y - 3.2))),
            Self::NoValue => Element::line("without-value", (x, y - 6.0), (x, y + 6.0)),
        }
    }
}

impl SampleDot {
    pub(crate) fn new(sample: &AttemptResult, key: &MetricKey, unit: &wb_model::Unit) -> Self {
        let value = sample.values.get(key).copied();
        let mark = SampleMark::new(sample, value);
        let figure = value.map(|value| format!(": {}", unit.quantity(value))).unwrap_or_default();
        let remarks: String = phrasing::sample_remarks(sample).iter().map(|remark| format!("; {remark}")).collect();
        let name = phrasing::sample_name(sample);
        let note = if mark == SampleMark::NotCounted { "; not counted" } else { "" };
        let tooltip = format!("{name} at {}{figure}{note}{remarks}", phrasing::format_elapsed(sample.start_seconds));
        Self { at: sample.start_seconds, value, mark, tooltip }
    }
}

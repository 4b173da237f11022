//! The thresholds that checks were compared with.

use std::fmt;

use wb_results::comparison::{CheckResult, ComparisonMethod, ComparisonResult, negligible_percent};

use super::figures::format_value;

/// Both ends of a threshold: `+50 / -33.33 %`. Ratios decide, so that a half is as far from equal as the double.
pub fn format_threshold(percent: f64) -> String {
    let (low, high) = negligible_percent(percent);
    // Enough digits that neither end is shown as zero.
    let scale = if percent < 0.1 { 1e5 } else { 100.0 };
    let format = |percent: f64| format_value(Some((percent * scale).round() / scale));
    // A threshold of 0 has one end.
    if percent == 0.0 { "0 %".to_owned() } else { format!("+{} / {} %", format(high), format(low)) }
}

/// The smallest and the largest threshold of checks that statistics decide, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ThresholdRange {
    pub(super) smallest: f64,
    pub(super) largest: f64,
}

impl ThresholdRange {
    /// `None` if statistics decide none of the checks.
    pub(super) fn new<'a>(checks: impl Iterator<Item = &'a CheckResult>) -> Option<Self> {
        let by_statistics = checks.filter(|check| check.decided_by == ComparisonMethod::Statistical);
        let thresholds = by_statistics.filter_map(|check| Some(check.statistics.as_ref()?.threshold));
        thresholds.map(|percent| Self { smallest: percent, largest: percent }).reduce(|one, other| Self {
            smallest: one.smallest.min(other.smallest),
            largest: one.largest.max(other.largest),
        })
    }

    pub(super) fn of_primary(outcome: &ComparisonResult) -> Option<Self> {
        Self::new(outcome.checks.iter().filter(|check| check.primary))
    }
}

impl fmt::Display for ThresholdRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [smallest, largest] = [self.smallest, self.largest].map(format_threshold);
        if smallest == largest { write!(formatter, "{largest}") } else { write!(formatter, "{smallest} to {largest}") }
    }
}

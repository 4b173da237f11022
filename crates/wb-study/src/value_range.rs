//! The range of the valid samples of a cell, and whether they contradict each other.

use std::fmt;

use wb_model::{Metric, Unit};

use crate::evaluated_attempt::EvaluatedAttempt;

/// The factor from which on values of one cell contradict each other. A tool that prints a different unit is off by
/// 1000; the rest is a margin for noise.
const CONTRADICTION: f64 = 300.0;

/// The factor between values of one cell from which on the system was not steady.
const CHANGE: f64 = 2.0;

/// The lowest and the highest value of a metric over the valid samples of a cell, without warm-ups.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueRange {
    metric: String,
    unit: Unit,
    lowest: Extreme,
    highest: Extreme,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Extreme {
    sample: u32,
    value: f64,
}

impl ValueRange {
    /// The range of a metric by magnitude; `None` if no sample has a value other than zero.
    pub fn new(metric: &Metric, evaluated: &[EvaluatedAttempt]) -> Option<Self> {
        let value = |evaluated: &EvaluatedAttempt| {
            Some((evaluated.attempt.ended.sample, evaluated.valid_sample()?.get(metric)?))
        };
        Self::of_values(metric, evaluated.iter().filter_map(value))
    }

    /// The range of these values of a metric, each with the number of its sample.
    pub fn of_values(metric: &Metric, values: impl Iterator<Item = (u32, f64)>) -> Option<Self> {
        let mut range: Option<(Extreme, Extreme)> = None;
        for (sample, value) in values.filter(|(_, value)| *value != 0.0) {
            let this = Extreme { sample, value };
            let (lowest, highest) = range.get_or_insert((this, this));
            // Of equal values, use the earliest one.
            if value.abs() < lowest.value.abs() {
                *lowest = this;
            }
            if value.abs() > highest.value.abs() {
                *highest = this;
            }
        }
        let (lowest, highest) = range?;
        Some(Self { metric: metric.name.clone(), unit: metric.unit.clone(), lowest, highest })
    }

    fn factor(&self) -> f64 {
        (self.highest.value / self.lowest.value).abs()
    }

    /// Whether the values are orders of magnitude apart, so that at most one of them can be right.
    pub fn is_contradiction(&self) -> bool {
        self.factor() >= CONTRADICTION
    }

    /// Whether the values differ by a factor that noise does not explain.
    pub fn is_change(&self) -> bool {
        self.factor() >= CHANGE
    }
}

impl fmt::Display for ValueRange {
    /// Writes both values with their samples, the earlier sample first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = if self.lowest.sample <= self.highest.sample {
            (self.lowest, self.highest)
        } else {
            (self.highest, self.lowest)
        };
        let figure = |Extreme { sample, value }| format!("{} in sample {sample}", self.unit.quantity(value));
        write!(f, "{} is {} and {}, ", self.metric, figure(first), figure(second))?;
        write!(f, "a factor of {}", format_factor(self.factor()))
    }
}

/// With three significant digits.
fn format_factor(factor: f64) -> String {
    match factor {
        factor if factor < 10.0 => format!("{factor:.2}"),
        factor if factor < 100.0 => format!("{factor:.1}"),
        factor => format!("{factor:.0}"),
    }
}

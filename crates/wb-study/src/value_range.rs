//! How far apart the valid samples of a cell lie, and when they cannot all be right.

use std::fmt;

use wb_model::{Metric, Unit};

use crate::studied_attempt::StudiedAttempt;

/// Values of one cell that differ by this factor or more contradict each other. A tool that prints another unit is off
/// by 1000; the rest is room for noise.
const CONTRADICTION: f64 = 300.0;

/// Values of one cell that differ by this factor or more are not those of one steady system.
const CHANGE: f64 = 2.0;

/// The lowest and the highest value of a metric over the valid samples of a cell, warm-ups left out.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueRange {
    metric: String,
    unit: Unit,
    lowest: Extreme,
    highest: Extreme,
}

/// A value, and the number of the sample that it is from.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Extreme {
    sample: u32,
    value: f64,
}

impl ValueRange {
    /// The range of a metric by magnitude; none where no sample has a value other than zero.
    pub fn of(metric: &Metric, studied: &[StudiedAttempt]) -> Option<Self> {
        let value = |studied: &StudiedAttempt| {
            let value = studied.valid_sample()?.get(metric).filter(|value| *value != 0.0)?;
            Some(Extreme { sample: studied.attempt.ended.sample, value })
        };
        let values: Vec<Extreme> = studied.iter().filter_map(value).collect();
        let order = |one: &&Extreme, other: &&Extreme| one.value.abs().total_cmp(&other.value.abs());
        // Of equal values the earliest one is named.
        let lowest = *values.iter().min_by(order)?;
        let highest = *values.iter().min_by(|one, other| order(other, one))?;
        Some(Self { metric: metric.name.clone(), unit: metric.unit.clone(), lowest, highest })
    }

    /// The highest value over the lowest.
    fn factor(&self) -> f64 {
        (self.highest.value / self.lowest.value).abs()
    }

    /// Whether the values are orders of magnitude apart, so that no more than one of them can be right.
    pub fn is_contradiction(&self) -> bool {
        self.factor() >= CONTRADICTION
    }

    /// Whether the values differ by a factor that noise does not explain.
    pub fn is_change(&self) -> bool {
        self.factor() >= CHANGE
    }
}

impl fmt::Display for ValueRange {
    /// Both figures with their samples, the earlier sample first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = match self.lowest.sample <= self.highest.sample {
            true => (self.lowest, self.highest),
            false => (self.highest, self.lowest),
        };
        let figure = |Extreme { sample, value }| format!("{} in sample {sample}", self.unit.quantity(value));
        write!(f, "{} is {} and {}, ", self.metric, figure(first), figure(second))?;
        write!(f, "a factor of {}", format_factor(self.factor()))
    }
}

/// A factor with three significant digits.
fn format_factor(factor: f64) -> String {
    match factor {
        factor if factor < 10.0 => format!("{factor:.2}"),
        factor if factor < 100.0 => format!("{factor:.1}"),
        factor => format!("{factor:.0}"),
    }
}

//! Metrics of tests: name, class, unit, direction and aggregation.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MetricKey, Unit};

/// Class of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Work done per time.
    Throughput,
    /// Time per operation.
    Latency,
    /// Resources consumed.
    Resource,
    /// Evidence that the work was done correctly.
    Check,
}

impl Class {
    const ALL: [Self; 4] = [Self::Throughput, Self::Latency, Self::Resource, Self::Check];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Resource => "resource",
            Self::Check => "check",
        }
    }

    /// Whether a metric of the class is compared: what does not measure performance is only where it decides.
    pub fn is_compared(self, is_primary: bool) -> bool {
        self != Self::Check || is_primary
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid metric class `{0}`: expected throughput, latency, resource or check")]
pub struct ParseClassError(String);

impl FromStr for Class {
    type Err = ParseClassError;

    fn from_str(text: &str) -> Result<Self, ParseClassError> {
        let class = Self::ALL.into_iter().find(|class| class.as_str() == text);
        class.ok_or_else(|| ParseClassError(text.to_owned()))
    }
}

/// Which direction of change is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// Neither is better.
    Neither,
}

impl Direction {
    pub const ALL: [Self; 3] = [Self::Higher, Self::Lower, Self::Neither];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Neither => "neither",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How the values of several workers are aggregated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Sum, for throughput.
    Sum,
    /// Percentiles of the merged histograms.
    Merge,
    /// Maximum.
    Max,
    /// No aggregation.
    None,
}

/// A declared metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Its name, unique within its class.
    pub name: String,
    /// Its class.
    pub class: Class,
    /// Its unit.
    pub unit: Unit,
    /// Which direction of change is better.
    pub direction: Direction,
    /// Whether it determines the cell's convergence and verdict.
    #[serde(default)]
    pub primary: bool,
    /// How it is aggregated over workers.
    pub aggregate: Aggregate,
}

impl Metric {
    fn new(class: Class, name: &str, unit: &str, direction: Direction, aggregate: Aggregate) -> Self {
        Self { name: name.to_owned(), class, unit: Unit::new(unit), direction, primary: false, aggregate }
    }

    /// Creates a throughput metric: higher is better, summed over workers.
    pub fn throughput(name: &str, unit: &str) -> Self {
        Self::new(Class::Throughput, name, unit, Direction::Higher, Aggregate::Sum)
    }

    /// Creates a latency metric: lower is better, histograms merged over workers.
    pub fn latency(name: &str, unit: &str) -> Self {
        Self::new(Class::Latency, name, unit, Direction::Lower, Aggregate::Merge)
    }

    /// Creates a resource metric: lower is better, summed over workers.
    pub fn resource(name: &str, unit: &str) -> Self {
        Self::new(Class::Resource, name, unit, Direction::Lower, Aggregate::Sum)
    }

    /// Creates a check metric: neither direction is better, not aggregated over workers.
    pub fn check(name: &str, unit: &str) -> Self {
        Self::new(Class::Check, name, unit, Direction::Neither, Aggregate::None)
    }

    pub fn key(&self) -> MetricKey {
        MetricKey::new(self.class, &self.name)
    }

    /// Makes it a primary metric, which determines convergence and verdicts.
    pub fn primary(mut self) -> Self {
        self.primary = true;
        self
    }

    pub fn direction(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }
}

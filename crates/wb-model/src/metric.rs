//! Metrics: what a test measures, and how its figures are to be read.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Unit;

/// What kind of figure a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Work done per time.
    Throughput,
    /// Time per operation.
    Latency,
    /// What it cost.
    Resource,
    /// Evidence that the work was done and done right.
    Check,
}

impl Class {
    const ALL: [(Self, &str); 4] = [
        (Self::Throughput, "throughput"),
        (Self::Latency, "latency"),
        (Self::Resource, "resource"),
        (Self::Check, "check"),
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(class, _)| class == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

/// Text that is no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a class: throughput, latency, resource or check is expected")]
pub struct ParseClassError(String);

impl FromStr for Class {
    type Err = ParseClassError;

    fn from_str(text: &str) -> Result<Self, ParseClassError> {
        Self::ALL
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(class, _)| *class)
            .ok_or_else(|| ParseClassError(text.to_owned()))
    }
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// Neither is.
    Neither,
}

impl Direction {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Higher, Self::Lower, Self::Neither];

    /// In a word, as files and users have it.
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

/// How the values of several workers become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Added up: throughput.
    Sum,
    /// Their histograms are merged and read anew: percentiles.
    Merge,
    /// The largest.
    Max,
    /// They stay apart.
    None,
}

/// A declared metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Its name, within its class.
    pub name: String,
    /// What kind of figure it is.
    pub class: Class,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Whether the cell's convergence and verdict rest on it.
    #[serde(default)]
    pub primary: bool,
    /// How it aggregates over workers.
    pub aggregate: Aggregate,
}

impl Metric {
    fn new(class: Class, name: &str, unit: &str, direction: Direction, aggregate: Aggregate) -> Self {
        Self { name: name.to_owned(), class, unit: Unit::new(unit), direction, primary: false, aggregate }
    }

    /// A throughput: higher is better, workers add up.
    pub fn throughput(name: &str, unit: &str) -> Self {
        Self::new(Class::Throughput, name, unit, Direction::Higher, Aggregate::Sum)
    }

    /// A latency: lower is better, workers' histograms merge.
    pub fn latency(name: &str, unit: &str) -> Self {
        Self::new(Class::Latency, name, unit, Direction::Lower, Aggregate::Merge)
    }

    /// A cost: lower is better, workers add up.
    pub fn resource(name: &str, unit: &str) -> Self {
        Self::new(Class::Resource, name, unit, Direction::Lower, Aggregate::Sum)
    }

    /// Evidence: neither better nor worse, workers stay apart.
    pub fn check(name: &str, unit: &str) -> Self {
        Self::new(Class::Check, name, unit, Direction::Neither, Aggregate::None)
    }

    /// The same, as the one that convergence and verdicts rest on.
    pub fn primary(mut self) -> Self {
        self.primary = true;
        self
    }

    /// The same, with another direction.
    pub fn direction(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }
}

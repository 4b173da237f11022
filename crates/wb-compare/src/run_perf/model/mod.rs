//! run-perf's models: the normal range of each check.
//!
//! A [`ToleranceModel`] maps a value to a score by a straight line, so that the previously observed range becomes ± its
//! tolerance. [`fit()`] creates one from builds, [`rebase`] moves one to a new level, [`mod@file`] reads and writes it.

pub mod file;
pub mod fit;
pub mod rebase;

use std::collections::BTreeMap;
use std::path::PathBuf;

use wb_results::comparison::CheckId;

use crate::build::Builds;
pub use fit::{FitMethod, fit};

/// A tolerance model: the normal range of each check, by identifier in run-perf's syntax.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToleranceModel {
    /// `None` for a new model.
    pub file: Option<PathBuf>,
    /// `None` for a file without metadata, which has equations only.
    pub version: Option<u32>,
    /// The tolerance to which the ends of the range are mapped, in percent.
    pub tolerance: Option<f64>,
    /// By check.
    pub entries: BTreeMap<String, ModelEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelEntry {
    pub equation: Equation,
    /// Of the fitted values, in the unit of the check.
    pub average: Option<f64>,
    pub range: Option<NormalRange>,
}

/// score = slope · value + intercept, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equation {
    /// Percent per unit of the value.
    pub slope: f64,
    /// In percent.
    pub intercept: f64,
}

/// The ends of a range, as deviations from its mean in percent of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalRange {
    /// Below 0.
    pub min: f64,
    pub max: f64,
}

impl ToleranceModel {
    pub fn covers_any(&self, builds: &Builds) -> bool {
        self.entries.keys().any(|id| CheckId::parse(id).is_ok_and(|id| builds.find(&id).is_some()))
    }
}

impl Equation {
    pub fn score(&self, value: f64) -> f64 {
        self.slope * value + self.intercept
    }

    /// `None` for a horizontal line.
    pub fn value_at(&self, score: f64) -> Option<f64> {
        Some((score - self.intercept) / self.slope).filter(|value| value.is_finite())
    }

    /// The values with the scores −`tolerance` and +`tolerance`; `None` for a horizontal line.
    pub fn range(&self, tolerance: f64) -> Option<(f64, f64)> {
        Some((self.value_at(-tolerance)?, self.value_at(tolerance)?))
    }
}

//! Models: what history says is normal for a check.
//!
//! There are two kinds ([`AnyModel`]). A [`NoiseModel`] says how far runs of one build lie apart, for the method of
//! statistics. A [`Model`], as run-perf has it, is for the method of tolerances: it turns a value into a score by a straight line, so that the range that was seen before becomes ± its
//! tolerance. [`fit`] makes one of builds, [`rebase`] moves one to a new level, [`file`] reads and writes it.

pub mod file;
pub mod fit;
pub mod noise;
pub mod rebase;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::build::Builds;
use crate::id::CheckId;
pub use file::ModelError;
pub use fit::{FitMethod, fit};
pub use noise::{NoiseModel, file::AnyModel};

/// What history says of each check, by identifier as run-perf writes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToleranceModel {
    /// The file that it was read from; none where it was made here.
    pub file: Option<PathBuf>,
    /// The version of its file; none for one without metadata, which has equations only.
    pub version: Option<u32>,
    /// What the ends of the range are mapped to: ± so many percent.
    pub tolerance: Option<f64>,
    /// The checks that it knows.
    pub entries: BTreeMap<String, ModelEntry>,
}

/// What a model knows of one check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelEntry {
    /// From a value to a score.
    pub equation: Equation,
    /// The average that it was fitted on, in the unit of the check.
    pub average: Option<f64>,
    /// The ends of the range, in percent of the average.
    pub range: Option<NormalRange>,
}

/// score = slope · value + intercept, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equation {
    /// Percent per unit of the value.
    pub slope: f64,
    /// Percent.
    pub intercept: f64,
}

/// The ends of a range, in percent of its average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalRange {
    /// The lower end; below 0.
    pub min: f64,
    /// The upper end.
    pub max: f64,
}

impl ToleranceModel {
    /// Whether it knows any check that the builds have.
    pub fn covers_any(&self, builds: &Builds) -> bool {
        self.entries.keys().any(|id| CheckId::parse(id).is_ok_and(|id| builds.find(&id).is_some()))
    }
}

impl Equation {
    /// The score of a value.
    pub fn score(&self, value: f64) -> f64 {
        self.slope * value + self.intercept
    }

    /// The value that has a score; none for a line that does not rise or fall.
    pub fn value_at(&self, score: f64) -> Option<f64> {
        Some((score - self.intercept) / self.slope).filter(|value| value.is_finite())
    }

    /// The values that have the scores −`tolerance` and +`tolerance`; none for a line that does not rise or fall.
    pub fn range(&self, tolerance: f64) -> Option<(f64, f64)> {
        Some((self.value_at(-tolerance)?, self.value_at(tolerance)?))
    }
}

impl ModelEntry {
    /// The values that are mapped to −tolerance and +tolerance.
    pub fn range(&self, tolerance: f64) -> Option<(f64, f64)> {
        self.equation.range(tolerance)
    }
}

//! What a score is made of, and how the parts become one.
//!
//! Source of the formulas: run-perf, `RelativeResults._calculate_test_difference`, `ModelLinearRegression.check_result`,
//! `AveragesModifier`, `NOutOfResultsModifier`.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::build::{Builds, MetricIndex};
use crate::id::{CheckId, Statistic};
use crate::model::{ModelEntry, ToleranceModel};
use crate::uncertainty::weight_divisor;

/// What a part of a score says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreTerm {
    /// The difference from the source.
    Raw,
    /// A model's score, by its place among the models.
    Model(usize),
    /// The difference from a model's average.
    ModelRaw(usize),
    /// Twice the mean score over the builds: small losses of many builds show.
    BuildsAverage,
    /// In how many builds the score was beyond the tolerance.
    NOutOfResults,
}

impl fmt::Display for ScoreTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw => f.write_str("raw"),
            Self::Model(at) => write!(f, "model {at}"),
            Self::ModelRaw(at) => write!(f, "raw against the average of model {at}"),
            Self::BuildsAverage => f.write_str("average over the builds, twice"),
            Self::NOutOfResults => f.write_str("builds beyond the tolerance"),
        }
    }
}

/// A part of a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScorePart {
    /// What it says.
    pub term: ScoreTerm,
    /// The difference, in percent; may be infinite.
    pub difference: f64,
    /// How much it counts; 0 where it is only shown.
    pub weight: f64,
}

/// What the last build's score is averaged with, and how much that counts against the score itself, which counts 1 (with
/// models, 1 each). Both are divided by U(n), n being the builds after the source that know the check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Of [`Term::BuildsAverage`]; 0 leaves it out.
    pub builds_average: f64,
    /// Of [`Term::NOutOfResults`]; 0 leaves it out.
    pub n_out_of_results: f64,
    /// How many builds may be beyond the tolerance before that alone is beyond it.
    pub n: u32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { builds_average: 0.0, n_out_of_results: 0.0, n: 2 }
    }
}

/// A little more than the tolerance, so that one build more than allowed is beyond it.
const EXCESS_FACTOR: f64 = 1.1;
/// How much the mean over builds is enlarged, so that half a tolerance in every build is beyond it.
const AVERAGE_FACTOR: f64 = 2.0;

/// The difference of two values: of means in percent of the source, infinite from zero to anything else; of standard
/// deviations the percentage points by which the source has more.
pub fn difference(statistic: Statistic, src: f64, dst: f64) -> f64 {
    match statistic {
        Statistic::Mean if src == dst => 0.0,
        Statistic::Mean => (dst - src) / src.abs() * 100.0,
        Statistic::Stddev => src - dst,
    }
}

/// Adds the parts that two values and the models give; returns the raw difference.
pub(super) fn direct_parts<'m>(
    parts: &mut Vec<ScorePart>,
    statistic: Statistic,
    src: f64,
    dst: f64,
    entries: impl Iterator<Item = Option<&'m ModelEntry>>,
) -> f64 {
    for (at, entry) in entries.enumerate() {
        let Some(entry) = entry else { continue };
        parts.push(ScorePart { term: ScoreTerm::Model(at), difference: entry.equation.score(dst), weight: 1.0 });
        if let Some(average) = entry.average {
            let difference = difference(statistic, average, dst);
            parts.push(ScorePart { term: ScoreTerm::ModelRaw(at), difference, weight: 0.0 });
        }
    }
    let raw = difference(statistic, src, dst);
    let weight = if parts.is_empty() { 1.0 } else { 0.0 };
    parts.push(ScorePart { term: ScoreTerm::Raw, difference: raw, weight });
    raw
}

/// Σ difference · weight / Σ weight over the parts that count.
fn total(parts: &[ScorePart]) -> f64 {
    let counting = || parts.iter().filter(|part| part.weight != 0.0);
    let weight: f64 = counting().map(|part| part.weight).sum();
    counting().map(|part| part.difference * part.weight).sum::<f64>() / weight
}

/// What the builds so far say of a check.
#[derive(Debug, Default)]
pub(super) struct ScoreHistory {
    sum: f64,
    finite: usize,
    beyond: usize,
    judged: usize,
}

impl ScoreHistory {
    /// Adds what the history gives to the parts of the last build, takes every other into the history; returns the
    /// score.
    pub(super) fn final_score(
        &mut self,
        parts: &mut Vec<ScorePart>,
        weights: &Weights,
        tolerance: f64,
        last: bool,
    ) -> f64 {
        let score = total(parts);
        if score.is_finite() {
            self.sum += score;
            self.finite += 1;
        }
        if last && weights.builds_average != 0.0 && self.finite > 0 {
            let difference = self.sum / self.finite as f64 * AVERAGE_FACTOR;
            let weight = weights.builds_average / weight_divisor(self.finite);
            parts.push(ScorePart { term: ScoreTerm::BuildsAverage, difference, weight });
        }
        let score = total(parts);
        self.judged += 1;
        self.beyond += usize::from(score.abs() > tolerance);
        if last && weights.n_out_of_results != 0.0 {
            let size = self.beyond as f64 / (f64::from(weights.n) + 1.0) * tolerance * EXCESS_FACTOR;
            let difference = if score > 0.0 { size } else { -size };
            let weight = weights.n_out_of_results / weight_divisor(self.judged);
            parts.push(ScorePart { term: ScoreTerm::NOutOfResults, difference, weight });
        }
        total(parts)
    }
}

/// A model, by row instead of by identifier.
#[derive(Debug)]
pub(super) struct BoundModel {
    file: Option<PathBuf>,
    entries: Vec<[Option<ModelEntry>; 2]>,
}

impl BoundModel {
    pub(super) fn bind(model: &ToleranceModel, builds: &Builds) -> Self {
        let mut bound = vec![[None; 2]; builds.rows().len()];
        for (id, entry) in &model.entries {
            let Ok(id) = CheckId::parse(id) else { continue };
            if let Some(row) = builds.find(&id) {
                bound[row.index()][id.statistic as usize] = Some(*entry);
            }
        }
        Self { file: model.file.clone(), entries: bound }
    }

    pub(super) fn entry(&self, row: MetricIndex, statistic: Statistic) -> Option<&ModelEntry> {
        self.entries.get(row.index())?[statistic as usize].as_ref()
    }

    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_zero_to_anything_is_no_equality() {
        assert_eq!(difference(Statistic::Mean, 0.0, 0.0), 0.0);
        assert_eq!(difference(Statistic::Mean, 0.0, 3.0), f64::INFINITY);
        assert_eq!(difference(Statistic::Mean, 0.0, -3.0), f64::NEG_INFINITY);
        assert_eq!(difference(Statistic::Mean, -10.0, -5.0), 50.0);
        assert_eq!(difference(Statistic::Stddev, 3.0, 7.0), -4.0);
    }

    #[test]
    fn an_infinite_difference_leaves_the_average_of_the_others() {
        let weights = Weights { builds_average: 1.0, n_out_of_results: 1.0, n: 2 };
        let (mut prior, mut parts) = (ScoreHistory::default(), Vec::new());
        for (raw, last) in [(f64::INFINITY, false), (3.0, false), (1.0, true)] {
            parts = vec![ScorePart { term: ScoreTerm::Raw, difference: raw, weight: 1.0 }];
            prior.final_score(&mut parts, &weights, 5.0, last);
        }
        assert_eq!(parts[1], ScorePart { term: ScoreTerm::BuildsAverage, difference: 4.0, weight: 1.0 / 2.3 });
        assert_eq!(parts[2].weight, 1.0 / 1.7);
        assert!((parts[2].difference - 5.5 / 3.0).abs() < 1e-12);
    }
}

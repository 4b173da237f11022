//! Scores: their parts, and the formula that combines them.
//!
//! Source of the formulas: run-perf, `RelativeResults._calculate_test_difference`,
//! `ModelLinearRegression.check_result`, `AveragesModifier`, `NOutOfResultsModifier`.

use std::fmt;
use std::path::{Path, PathBuf};

use wb_results::comparison::{CheckId, Statistic};

use crate::build::{Builds, MetricIndex};
use crate::run_perf::model::{ModelEntry, ToleranceModel};
use crate::run_perf::uncertainty::weight_divisor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreTerm {
    Raw,
    /// The score of the model with this index.
    Model(usize),
    /// The difference from the average of the model with this index.
    ModelRaw(usize),
    /// Twice the mean score over the builds, which makes small losses in many builds visible.
    BuildsAverage,
    /// The number of builds whose score was beyond the tolerance.
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScorePart {
    pub term: ScoreTerm,
    /// In percent; may be infinite.
    pub difference: f64,
    /// 0 if it is only shown.
    pub weight: f64,
}

/// Weights of the terms with which the last build's score is averaged, relative to the score itself with weight 1 (with
/// models, 1 each). Both are divided by U(n), where n is the number of builds after the reference that have the check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// 0 disables it.
    pub builds_average: f64,
    /// 0 disables it.
    pub n_out_of_results: f64,
    /// The number of builds that may be beyond the tolerance before this alone is beyond it.
    pub n: u32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { builds_average: 0.0, n_out_of_results: 0.0, n: 2 }
    }
}

/// Slightly more than 1, so that one build more than allowed is beyond the tolerance.
const EXCESS_FACTOR: f64 = 1.1;
/// The factor of the mean over builds, so that half a tolerance in every build is beyond the tolerance.
const AVERAGE_FACTOR: f64 = 2.0;

/// The difference of two values: of means in percent of the reference, infinite from zero to any other value; of
/// standard deviations the decrease in percentage points.
pub fn difference(statistic: Statistic, reference: f64, judged: f64) -> f64 {
    match statistic {
        Statistic::Mean if reference == judged => 0.0,
        Statistic::Mean => (judged - reference) / reference.abs() * 100.0,
        Statistic::Stddev => reference - judged,
    }
}

/// Returns the raw difference.
pub(super) fn direct_parts<'m>(
    parts: &mut Vec<ScorePart>,
    statistic: Statistic,
    reference: f64,
    judged: f64,
    entries: impl Iterator<Item = Option<&'m ModelEntry>>,
) -> f64 {
    for (index, entry) in entries.enumerate() {
        let Some(entry) = entry else { continue };
        parts.push(ScorePart { term: ScoreTerm::Model(index), difference: entry.equation.score(judged), weight: 1.0 });
        if let Some(average) = entry.average {
            let difference = difference(statistic, average, judged);
            parts.push(ScorePart { term: ScoreTerm::ModelRaw(index), difference, weight: 0.0 });
        }
    }
    let raw = difference(statistic, reference, judged);
    let weight = if parts.is_empty() { 1.0 } else { 0.0 };
    parts.push(ScorePart { term: ScoreTerm::Raw, difference: raw, weight });
    raw
}

/// The weighted average: Σ difference · weight / Σ weight over the parts with a weight.
fn total(parts: &[ScorePart]) -> f64 {
    let counting = || parts.iter().filter(|part| part.weight != 0.0);
    let weight: f64 = counting().map(|part| part.weight).sum();
    counting().map(|part| part.difference * part.weight).sum::<f64>() / weight
}

/// The history of a check: its scores in the builds so far.
#[derive(Debug, Default)]
pub(super) struct ScoreHistory {
    sum: f64,
    finite: usize,
    beyond: usize,
    judged: usize,
}

impl ScoreHistory {
    /// Adds the terms of the history to the parts of the last build; any other build is added to the history.
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

/// A model, indexed by row instead of by identifier.
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
    fn a_difference_from_zero_is_infinite() {
        assert_eq!(difference(Statistic::Mean, 0.0, 0.0), 0.0);
        assert_eq!(difference(Statistic::Mean, 0.0, 3.0), f64::INFINITY);
        assert_eq!(difference(Statistic::Mean, 0.0, -3.0), f64::NEG_INFINITY);
        assert_eq!(difference(Statistic::Mean, -10.0, -5.0), 50.0);
        assert_eq!(difference(Statistic::Stddev, 3.0, 7.0), -4.0);
    }

    #[test]
    fn infinite_differences_are_excluded_from_the_average() {
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

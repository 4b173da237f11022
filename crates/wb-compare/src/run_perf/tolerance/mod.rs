//! The tolerance method: a difference in percent, or a model's score, is compared with a limit.
//!
//! Scores are those of run-perf's compare-perf ([`score`] has the formulas), signs included. Differences from run-perf:
//!
//! - Whether a difference is an improvement depends on the metric's direction ([`status`]); in run-perf higher
//!   is always better.
//! - The difference from a reference of zero to any other value is infinite; in run-perf it is zero.
//! - A value that is missing on a side has no score; in run-perf its score is −100.
//! - The ranges of minor gains and minor losses are symmetric; in run-perf every equal value is a minor loss.
//! - Only losses fail a build, unless gains are configured to ([`totals`]); in run-perf gains fail it as well.
//! - Failed iterations are read for every build or for none; run-perf never reads those of the reference.
//!
//! Start with [`compare`].

pub mod average;
pub mod averages;
pub mod groups;
pub mod limits;
pub mod pattern;
pub mod score;
mod status;
pub mod totals;

use rayon::prelude::*;
use wb_results::comparison::{CheckId, Statistic, Status};

use crate::build::{Build, Builds, MeasuredValue, MetricIndex, TestError};
use crate::direction::Directions;
use crate::run_perf::model::ToleranceModel;
use average::Average;
use groups::{ToleranceGroup, groups};
use score::{BoundModel, ScoreHistory, ScorePart, Weights, direct_parts};
use status::status_of;

/// Settings of the tolerance method.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The maximum difference of a mean, in percent.
    pub tolerance: f64,
    /// The maximum difference of a standard deviation, in percentage points.
    pub stddev_tolerance: f64,
    pub weights: Weights,
    pub directions: Directions,
    /// How scores are averaged; `None`: as in run-perf in its layout, and otherwise geometrically.
    pub average: Option<Average>,
}

impl Default for Options {
    fn default() -> Self {
        let (weights, directions) = (Weights::default(), Directions::default());
        Self { tolerance: 5.0, stddev_tolerance: 5.0, weights, directions, average: None }
    }
}

/// A comparison of builds with the first; the last one is judged, those in between are its history.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub builds: &'a Builds,
    pub options: &'a Options,
    /// In the builds' order.
    pub checks: Vec<Check>,
    /// The groups of primary means: by case, by case over all profiles, by profile.
    pub groups: Vec<ToleranceGroup<'a>>,
    models: Vec<BoundModel>,
    cells: Vec<Option<CheckScore>>,
}

/// A check: a statistic of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    pub row: MetricIndex,
    pub statistic: Statistic,
    /// Whether the metric is primary in any build.
    pub primary: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckScore {
    pub status: Status,
    /// The difference without any model, in percent (of a standard deviation, in percentage points); infinite from zero
    /// to any other value; `None` if a side has no valid value.
    pub raw: Option<f64>,
    /// The score, in percent; `None` if a side has no valid value.
    pub score: Option<f64>,
}

/// Compares every build with the first by the scores of [`score`]; several models are averaged.
pub fn compare<'a>(builds: &'a Builds, models: &[ToleranceModel], options: &'a Options) -> Comparison<'a> {
    let models: Vec<_> = models.iter().map(|model| BoundModel::bind(model, builds)).collect();
    let mut comparison = Comparison { builds, options, checks: vec![], groups: vec![], models, cells: vec![] };
    let rows: Vec<_> = builds.rows().collect();
    let chunks: Vec<_> = rows.par_chunks(2048).map(|rows| comparison.judge(rows)).collect();
    for (checks, cells) in chunks {
        comparison.checks.extend(checks);
        comparison.cells.extend(cells);
    }
    // Averages over unequal parts of one run mean nothing.
    if builds.within_run().is_none() {
        comparison.groups = groups(&comparison);
    }
    comparison
}

impl<'a> Comparison<'a> {
    /// The score of a check in a build, given by its index from 1; `None` if neither side has the check.
    pub fn cell(&self, check: usize, build: usize) -> Option<&CheckScore> {
        self.scores_of(check).get(build.checked_sub(1)?)?.as_ref()
    }

    /// The index of the judged build; `None` if there is nothing to compare with the reference.
    pub fn last(&self) -> Option<usize> {
        self.builds.list().len().checked_sub(1).filter(|last| *last > 0)
    }

    pub fn id(&self, check: usize) -> CheckId<'a> {
        let Check { row, statistic, .. } = self.checks[check];
        self.builds.id(row, statistic)
    }

    pub fn value(&self, check: usize, build: usize) -> MeasuredValue {
        let Check { row, statistic, .. } = self.checks[check];
        self.builds.list().get(build).map_or(MeasuredValue::Missing, |build| build.value(row, statistic))
    }

    /// The maximum deviation of a check's score from zero.
    pub fn tolerance(&self, check: usize) -> f64 {
        self.options.tolerance_of(self.checks[check].statistic)
    }

    /// The parts of a build's score; empty if a side has no valid value.
    pub fn parts(&self, check: usize, build: usize) -> Vec<ScorePart> {
        let mut result = Vec::new();
        self.for_each_build(self.checks[check], |position, _, parts| {
            if position == build {
                result = parts.to_vec();
            }
        });
        result
    }

    /// The errors of the reference and of a build, given by its index from 1, each with its build.
    pub fn errors(&self, build: usize) -> impl Iterator<Item = (&'a Build, &'a TestError)> {
        let sides = [self.builds.list().first(), self.builds.list().get(build)].into_iter().flatten();
        sides.flat_map(|build| build.errors().map(move |error| (build, error)))
    }

    fn scores_of(&self, check: usize) -> &[Option<CheckScore>] {
        let width = self.builds.list().len().saturating_sub(1);
        &self.cells[check * width..(check + 1) * width]
    }

    fn judge(&self, rows: &[MetricIndex]) -> (Vec<Check>, Vec<Option<CheckScore>>) {
        let (mut checks, mut cells) = (Vec::new(), Vec::new());
        for &row in rows {
            let primary = self.builds.is_primary(row);
            for statistic in Statistic::ALL {
                let check = Check { row, statistic, primary };
                if self.builds.list().iter().any(|build| build.value(row, statistic) != MeasuredValue::Missing) {
                    checks.push(check);
                    self.for_each_build(check, |_, cell, _| cells.push(cell));
                }
            }
        }
        (checks, cells)
    }

    /// Calls `each` with the index, the result and the parts of the score of each build after the first, in order.
    fn for_each_build(&self, check: Check, mut each: impl FnMut(usize, Option<CheckScore>, &[ScorePart])) {
        let Check { row, statistic, .. } = check;
        let builds = self.builds.list();
        let tolerance = self.options.tolerance_of(statistic);
        let entries = || self.models.iter().map(|model| model.entry(row, statistic));
        let sign = self.direction_sign(check);
        let (mut history, mut parts) = (ScoreHistory::default(), Vec::new());
        let Some((first, others)) = builds.split_first() else { return };
        let reference = first.value(row, statistic);
        for (position, build) in (1..).zip(others) {
            parts.clear();
            let cell = match (reference, build.value(row, statistic)) {
                (MeasuredValue::Missing, MeasuredValue::Missing) => None,
                (MeasuredValue::Missing, _) | (_, MeasuredValue::Missing) => {
                    Some(CheckScore::without_score(Status::Missing))
                }
                _ if !self.builds.is_comparable([first, build], row) => {
                    Some(CheckScore::without_score(Status::Incomparable))
                }
                (MeasuredValue::Known(reference), MeasuredValue::Known(judged)) => {
                    let raw = direct_parts(&mut parts, statistic, reference, judged, entries());
                    let score =
                        history.final_score(&mut parts, &self.options.weights, tolerance, position + 1 == builds.len());
                    Some(CheckScore::scored(raw, score, sign, tolerance))
                }
                (MeasuredValue::Invalid, _) | (_, MeasuredValue::Invalid) => {
                    Some(CheckScore::without_score(Status::Invalid))
                }
            };
            each(position, cell, &parts);
        }
    }

    /// The score of a check as averaged; `None` if not finite or, in a geometric mean, if the value became zero.
    pub(crate) fn averaged_score(&self, average: Average, check: usize, build: usize) -> Option<f64> {
        let score = self.cell(check, build)?.score.filter(|score| score.is_finite())?;
        average.term(score).map(|_| score)
    }

    /// The sign by which a score is multiplied so that positive is better; `None` if neither direction is better.
    pub fn direction_sign(&self, check: Check) -> Option<f64> {
        let Check { row, statistic, .. } = check;
        let modelled = self.models.iter().any(|model| model.entry(row, statistic).is_some());
        let id = self.builds.id(row, statistic);
        status::direction_sign(self.options.directions.of(id.class, id.metric), statistic, modelled)
    }
}

impl Options {
    fn tolerance_of(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Mean => self.tolerance,
            Statistic::Stddev => self.stddev_tolerance,
        }
    }
}

impl CheckScore {
    fn without_score(status: Status) -> Self {
        Self { status, raw: None, score: None }
    }

    fn scored(raw: f64, score: f64, sign: Option<f64>, tolerance: f64) -> Self {
        // Models with extreme slopes can cancel each other out to NaN.
        if score.is_nan() {
            return Self::without_score(Status::Invalid);
        }
        Self { status: status_of(score, sign, tolerance), raw: Some(raw), score: Some(score) }
    }
}

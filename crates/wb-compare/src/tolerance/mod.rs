//! The method of tolerances: a difference in percent, or a model's score, against a limit.
//!
//! Scores are those of run-perf's compare-perf ([`score`] has the formulas), signs included. What is put right:
//!
//! - Whether a difference is good is decided by the metric's direction ([`status`]); in run-perf higher is always better.
//! - From a source of zero to anything else is an infinite difference; in run-perf it is none.
//! - A value that is not there on a side is missing and enters nothing; in run-perf it is −100.
//! - The bands of minor gains and minor losses are alike; in run-perf every equal value is a minor loss.
//! - What decides is losses alone, unless gains are asked to ([`totals`]); in run-perf gains fail a build as well.
//! - Failed iterations are read of every build or of none; run-perf never takes them of the source.
//!
//! Start with [`compare`].

pub mod averages;
pub mod groups;
pub mod limits;
pub mod pattern;
pub mod score;
pub mod status;
pub mod totals;

use rayon::prelude::*;

use crate::build::{Build, Builds, MeasuredValue, MetricIndex, TestError};
use crate::direction::Directions;
use crate::id::{CheckId, Statistic};
use crate::model::ToleranceModel;
use groups::{Group, groups};
use score::{BoundModel, ScoreHistory, ScorePart, Weights, direct_parts};
pub use status::Status;

/// How differences are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How much a mean may differ, in percent.
    pub tolerance: f64,
    /// How much a standard deviation may differ, in percentage points.
    pub stddev_tolerance: f64,
    /// What the last build's score is averaged with.
    pub weights: Weights,
    /// Which way is better.
    pub directions: Directions,
}

impl Default for Options {
    fn default() -> Self {
        let (weights, directions) = (Weights::default(), Directions::default());
        Self { tolerance: 5.0, stddev_tolerance: 5.0, weights, directions }
    }
}

/// Builds, compared with the first of them; the last one is what is judged, those between give it a history.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The builds.
    pub builds: &'a Builds,
    /// How they were judged.
    pub options: &'a Options,
    /// What any build has, in the builds' order.
    pub checks: Vec<Check>,
    /// The groups of primary means: by case, by case over profiles, by profile.
    pub groups: Vec<Group<'a>>,
    models: Vec<BoundModel>,
    cells: Vec<Option<CheckScore>>,
}

/// A statistic of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// The metric.
    pub row: MetricIndex,
    /// The statistic.
    pub statistic: Statistic,
    /// Whether the case is judged by this metric: as the last build says, or else the first, or else any.
    pub primary: bool,
}

/// What a build's value is against the source's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckScore {
    /// The verdict.
    pub status: Status,
    /// The difference without any model, in percent (of a standard deviation, in percentage points); infinite from zero
    /// to anything else; none where a side has no number.
    pub raw: Option<f64>,
    /// The score, in percent; none where a side has no number.
    pub score: Option<f64>,
}

/// Compares every build with the first. Models and weights take part as [`score`] tells; several models average.
pub fn compare<'a>(builds: &'a Builds, models: &[ToleranceModel], options: &'a Options) -> Comparison<'a> {
    let models: Vec<_> = models.iter().map(|model| BoundModel::bind(model, builds)).collect();
    let mut comparison = Comparison { builds, options, checks: vec![], groups: vec![], models, cells: vec![] };
    let rows: Vec<_> = builds.rows().collect();
    let judged: Vec<_> = rows.par_chunks(2048).map(|rows| comparison.judge(rows)).collect();
    for (checks, cells) in judged {
        comparison.checks.extend(checks);
        comparison.cells.extend(cells);
    }
    comparison.groups = groups(&comparison);
    comparison
}

impl<'a> Comparison<'a> {
    /// What a build's value is against the source's. `build` is its place among the builds, from 1; none where neither
    /// side has the check.
    pub fn cell(&self, check: usize, build: usize) -> Option<&CheckScore> {
        self.scores_of(check).get(build.checked_sub(1)?)?.as_ref()
    }

    /// The place of the build that is judged; none where there is nothing to compare the source with.
    pub fn last(&self) -> Option<usize> {
        self.builds.list().len().checked_sub(1).filter(|last| *last > 0)
    }

    /// A check's identifier.
    pub fn id(&self, check: usize) -> CheckId<'a> {
        let Check { row, statistic, .. } = self.checks[check];
        self.builds.id(row, statistic)
    }

    /// A check's value in a build.
    pub fn value(&self, check: usize, build: usize) -> MeasuredValue {
        let Check { row, statistic, .. } = self.checks[check];
        self.builds.list().get(build).map_or(MeasuredValue::Missing, |build| build.value(row, statistic))
    }

    /// How much a check's score may differ from zero.
    pub fn tolerance(&self, check: usize) -> f64 {
        self.options.tolerance_of(self.checks[check].statistic)
    }

    /// What a build's score is made of; empty where a side has no number.
    pub fn parts(&self, check: usize, build: usize) -> Vec<ScorePart> {
        let mut wanted = Vec::new();
        self.for_each_build(self.checks[check], |at, _, parts| {
            if at == build {
                wanted = parts.to_vec();
            }
        });
        wanted
    }

    /// The errors of the source and of a build, by its place from 1, each with the build that has it.
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
            let primary = primary(self.builds, row);
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

    /// Judges a check in each build after the first, in order, and tells of each its place, the verdict and what the
    /// score was made of.
    fn for_each_build(&self, check: Check, mut each: impl FnMut(usize, Option<CheckScore>, &[ScorePart])) {
        let Check { row, statistic, .. } = check;
        let builds = self.builds.list();
        let tolerance = self.options.tolerance_of(statistic);
        let entries = || self.models.iter().map(|model| model.entry(row, statistic));
        let sense = self.sign(check);
        let (mut prior, mut parts) = (ScoreHistory::default(), Vec::new());
        let Some((first, others)) = builds.split_first() else { return };
        let src = first.value(row, statistic);
        for (at, build) in (1..).zip(others) {
            parts.clear();
            let cell = match (src, build.value(row, statistic)) {
                (MeasuredValue::Missing, MeasuredValue::Missing) => None,
                (MeasuredValue::Missing, _) | (_, MeasuredValue::Missing) => {
                    Some(CheckScore::without_score(Status::Missing))
                }
                _ if !self.builds.is_comparable([first, build], row) => {
                    Some(CheckScore::without_score(Status::Incomparable))
                }
                (MeasuredValue::Known(src), MeasuredValue::Known(dst)) => {
                    let raw = direct_parts(&mut parts, statistic, src, dst, entries());
                    let score = prior.final_score(&mut parts, &self.options.weights, tolerance, at + 1 == builds.len());
                    Some(CheckScore::scored(raw, score, sense, tolerance))
                }
                (MeasuredValue::Invalid, _) | (_, MeasuredValue::Invalid) => {
                    Some(CheckScore::without_score(Status::Invalid))
                }
            };
            each(at, cell, &parts);
        }
    }

    /// By what a score is multiplied so that positive is better; none where neither way is.
    pub fn sign(&self, check: Check) -> Option<f64> {
        let Check { row, statistic, .. } = check;
        let modelled = self.models.iter().any(|model| model.entry(row, statistic).is_some());
        let id = self.builds.id(row, statistic);
        status::sign(self.options.directions.of(id.class, id.metric), statistic, modelled)
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

    fn scored(raw: f64, score: f64, sense: Option<f64>, tolerance: f64) -> Self {
        // Models with slopes beyond all measure can cancel each other out to no number.
        if score.is_nan() {
            return Self::without_score(Status::Invalid);
        }
        Self { status: Status::of(score, sense, tolerance), raw: Some(raw), score: Some(score) }
    }
}

fn primary(builds: &Builds, row: MetricIndex) -> bool {
    let (first, last) = (builds.list().first(), builds.list().last());
    let said = [last, first].into_iter().flatten().find_map(|build| build.primary(row));
    said.unwrap_or_else(|| builds.list().iter().any(|build| build.primary(row) == Some(true)))
}

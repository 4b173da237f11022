//! Groups: the average over checks that belong together.
//!
//! Source of the formulas: run-perf, `RelativeResults.expand_grouped_results`.

use super::pattern::{CheckPattern, Wildcards};
use super::score::{ScoreHistory, ScorePart, ScoreTerm};
use super::{Comparison, Status};
use crate::id::Statistic;
use crate::interner::Map;
use crate::uncertainty::uncertainty;

/// Primary means that belong together.
#[derive(Debug, PartialEq)]
pub struct Group<'a> {
    /// What they have in common.
    pub id: CheckPattern<'a>,
    /// The checks in it, by their places among the comparison's.
    pub members: Vec<usize>,
    cells: Vec<Option<GroupScore>>,
}

/// What a build's checks of a group come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupScore {
    /// The verdict, from the average in which a positive score of every member is the better one.
    pub status: Status,
    /// The average score, in percent, each with the sign that its check has.
    pub score: f64,
    /// How much it may differ from zero: half the tolerance, times U(n) of the members that have a score.
    pub tolerance: f64,
    /// How many members have a score.
    pub scored: usize,
}

impl Group<'_> {
    /// What a build's checks come to. `build` is its place among the builds, from 1; none where no member has a finite
    /// score.
    pub fn cell(&self, build: usize) -> Option<&GroupScore> {
        self.cells.get(build.checked_sub(1)?)?.as_ref()
    }
}

/// The groups of primary means: by case, by case over profiles, by profile.
pub(super) fn groups<'a>(comparison: &Comparison<'a>) -> Vec<Group<'a>> {
    let mut members: Map<CheckPattern<'a>, Vec<usize>> = Map::default();
    for stars in [Wildcards::CASES, Wildcards::CASES_OF_ALL_PROFILES, Wildcards::PROFILE] {
        for (at, check) in comparison.checks.iter().enumerate() {
            if check.primary && check.statistic == Statistic::Mean {
                let id = CheckPattern::of(&comparison.id(at), stars).with(Statistic::Mean);
                members.entry(id).or_default().push(at);
            }
        }
    }
    let made = members.into_iter().map(|(id, members)| Group { cells: cells(comparison, &members), id, members });
    made.filter(|group| group.cells.iter().any(Option::is_some)).collect()
}

fn cells(comparison: &Comparison<'_>, members: &[usize]) -> Vec<Option<GroupScore>> {
    let senses: Vec<_> = members.iter().map(|at| comparison.sign(comparison.checks[*at])).collect();
    let last = comparison.last().unwrap_or(0);
    let (mut prior, mut better) = (ScoreHistory::default(), ScoreHistory::default());
    let cell = |build| {
        let score = |at: &usize| comparison.cell(*at, build)?.score.filter(|score| score.is_finite());
        let scores: Vec<_> = members.iter().zip(&senses).filter_map(|(at, sense)| Some((score(at)?, *sense))).collect();
        let average = average(scores.iter().map(|(score, _)| *score))?;
        let tolerance = comparison.options.tolerance * uncertainty(scores.len()) / 2.0;
        let settled = |prior: &mut ScoreHistory, difference| {
            let mut parts = vec![ScorePart { term: ScoreTerm::Raw, difference, weight: 1.0 }];
            prior.final_score(&mut parts, &comparison.options.weights, tolerance, build == last)
        };
        let score = settled(&mut prior, average);
        let directed = scores.iter().filter_map(|(score, sense)| Some(score * (*sense)?));
        let status = match self::average(directed) {
            Some(average) => Status::of(settled(&mut better, average), Some(1.0), tolerance),
            None => Status::of(score, None, tolerance),
        };
        Some(GroupScore { status, score, tolerance, scored: scores.len() })
    };
    (1..=last).map(cell).collect()
}

fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

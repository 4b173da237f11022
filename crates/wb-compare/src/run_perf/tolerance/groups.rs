//! Groups: the average over related checks.
//!
//! Source of the formulas: run-perf, `RelativeResults.expand_grouped_results`.

use wb_results::comparison::{Statistic, Status};

use super::Comparison;
use super::pattern::{CheckPattern, Wildcards};
use super::score::{ScoreHistory, ScorePart, ScoreTerm};
use super::status::status_of;
use crate::interner::Map;
use crate::run_perf::uncertainty::uncertainty;

#[derive(Debug, PartialEq)]
pub struct ToleranceGroup<'a> {
    pub id: CheckPattern<'a>,
    /// Indices of [`Comparison::checks`].
    pub members: Vec<usize>,
    cells: Vec<Option<GroupScore>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupScore {
    /// From the average of scores with the sign by which positive is better.
    pub status: Status,
    /// In percent, with the original signs.
    pub score: f64,
    /// The average that the status is of, in percent, positive if better; `None` if no member has a better direction.
    pub improvement: Option<f64>,
    /// The maximum deviation from zero: half the tolerance, times U(n) of the members with a score.
    pub tolerance: f64,
    /// Members with a score.
    pub scored: usize,
}

impl ToleranceGroup<'_> {
    /// The result in a build, given by its index from 1; `None` if no member has a finite score.
    pub fn cell(&self, build: usize) -> Option<&GroupScore> {
        self.cells.get(build.checked_sub(1)?)?.as_ref()
    }
}

pub(super) fn groups<'a>(comparison: &Comparison<'a>) -> Vec<ToleranceGroup<'a>> {
    let mut members: Map<CheckPattern<'a>, Vec<usize>> = Map::default();
    for wildcards in [Wildcards::PER_CASE, Wildcards::PER_CASE_OF_ALL_PROFILES, Wildcards::PER_PROFILE] {
        for (index, check) in comparison.checks.iter().enumerate() {
            if check.primary && check.statistic == Statistic::Mean {
                let id = CheckPattern::new(&comparison.id(index), wildcards).with(Statistic::Mean);
                members.entry(id).or_default().push(index);
            }
        }
    }
    let groups =
        members.into_iter().map(|(id, members)| ToleranceGroup { cells: cells(comparison, &members), id, members });
    groups.filter(|group| group.cells.iter().any(Option::is_some)).collect()
}

fn cells(comparison: &Comparison<'_>, members: &[usize]) -> Vec<Option<GroupScore>> {
    let average = comparison.average_of(members.iter().copied());
    let last = comparison.last().unwrap_or(0);
    let (mut history, mut directed_history) = (ScoreHistory::default(), ScoreHistory::default());
    let cell = |build| {
        let scores: Vec<f64> =
            members.iter().filter_map(|position| comparison.averaged_score(average, *position, build)).collect();
        let mean = average.of(scores.iter().copied())?;
        let tolerance = comparison.options.tolerance * uncertainty(scores.len()) / 2.0;
        let settle = |history: &mut ScoreHistory, difference| {
            let mut parts = vec![ScorePart { term: ScoreTerm::Raw, difference, weight: 1.0 }];
            history.final_score(&mut parts, &comparison.options.weights, tolerance, build == last)
        };
        let score = settle(&mut history, mean);
        let improvement = comparison.average_improvement(members.iter().copied(), build);
        let improvement = improvement.map(|mean| settle(&mut directed_history, mean));
        let status = match improvement {
            Some(improvement) => status_of(improvement, Some(1.0), tolerance),
            None => status_of(score, None, tolerance),
        };
        Some(GroupScore { status, score, improvement, tolerance, scored: scores.len() })
    };
    (1..=last).map(cell).collect()
}

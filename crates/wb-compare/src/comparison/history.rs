//! Every later build against the first, for a table that has a column for each.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::decide::{CheckDecision, decide};
use super::report::{ParamDifference, param_differences};
use super::{ComparisonMethod, FinalVerdict, Totals};
use crate::build::{Builds, MetricIndex, ParamSetId};
use crate::id::Statistic;
use crate::statistical;
use crate::tolerance::groups::Group;
use crate::tolerance::{self, Status};

/// All checks in all builds: what an [`Outcome`](super::Outcome) says of the last build, of each. Builds are meant by
/// their places, the first later one being 1; checks by theirs in [`tolerance::Comparison::checks`].
#[derive(Debug)]
pub struct BuildHistory<'a> {
    /// The builds.
    pub builds: &'a Builds,
    /// What the method of tolerances says.
    pub tolerances: &'a tolerance::Comparison<'a>,
    /// What the method of statistics says of each later build.
    statistics: &'a [Option<statistical::Comparison>],
    method: Option<ComparisonMethod>,
    columns: Vec<Vec<Option<StoredCheck>>>,
    differences: Vec<Vec<ParamDifference>>,
}

/// A check in a build, against the first.
#[derive(Debug, Clone, Copy)]
pub struct BuildCheck<'a> {
    /// What follows.
    pub final_verdict: FinalVerdict,
    /// Which method decides here.
    pub decided_by: ComparisonMethod,
    /// What the method of tolerances says.
    pub by_tolerance: &'a tolerance::CheckScore,
    /// What the method of statistics says, of means.
    pub by_statistics: Option<&'a statistical::MetricComparison>,
    /// The parameters in which the case differs from the first build's.
    pub differences: &'a [ParamDifference],
}

#[derive(Debug, Clone, Copy)]
struct StoredCheck {
    decided: FinalVerdict,
    decided_by: ComparisonMethod,
    statistical_check: Option<usize>,
    differences: Option<usize>,
}

/// Two sets of parameters, and where their difference is kept, if there is one.
type DifferenceCache = HashMap<(ParamSetId, ParamSetId), Option<usize>, FixedState>;

impl<'a> BuildHistory<'a> {
    /// Judges every later build. `statistics` has one for each of them, by [`statistical::against`]; those that are
    /// none or not there leave the build to tolerances.
    pub fn of(
        builds: &'a Builds,
        tolerances: &'a tolerance::Comparison<'a>,
        statistics: &'a [Option<statistical::Comparison>],
        method: Option<ComparisonMethod>,
    ) -> Self {
        let mut history = Self { builds, tolerances, statistics, method, columns: vec![], differences: vec![] };
        let mut compared = DifferenceCache::default();
        for build in 1..builds.list().len() {
            let column = history.column(build, &mut compared);
            history.columns.push(column);
        }
        history
    }

    /// A check in a build; none where neither that build nor the first has it.
    pub fn build_check(&self, check: usize, build: usize) -> Option<BuildCheck<'_>> {
        let kept = (*self.columns.get(build.checked_sub(1)?)?.get(check)?)?;
        let by_tolerance = self.tolerances.cell(check, build)?;
        let found = kept.statistical_check.and_then(|found| self.statistical_checks(build)?.get(found));
        let by_statistics = found.filter(|_| self.tolerances.checks[check].statistic == Statistic::Mean);
        let StoredCheck { decided, decided_by, differences, .. } = kept;
        let differences = differences.map_or(&[][..], |place| &self.differences[place]);
        Some(BuildCheck { final_verdict: decided, decided_by, by_tolerance, by_statistics, differences })
    }

    /// How many of some checks of a build came to what; errors and groups are not counted.
    pub fn totals_of(&self, checks: impl IntoIterator<Item = usize>, build: usize) -> Totals {
        let mut totals = Totals::default();
        for at in checks {
            if let Some(judged) = self.build_check(at, build) {
                totals.add(self.tolerances.checks[at].primary, judged.final_verdict);
            }
        }
        totals
    }

    /// How many primary checks of a build came to what, and the others.
    pub fn totals(&self, build: usize) -> Totals {
        let mut totals = self.totals_of(0..self.tolerances.checks.len(), build);
        totals.errors = self.tolerances.errors(build).count();
        for group in self.tolerances.groups.iter().filter(|group| self.decides(group, build)) {
            match group.cell(build).map(|cell| cell.status) {
                Some(Status::Regression) => totals.groups_lost += 1,
                Some(Status::Improvement) => totals.groups_gained += 1,
                _ => {}
            }
        }
        totals
    }

    /// Whether a group takes part in what the exit says of a build: where tolerances decide on all of its members.
    pub fn decides(&self, group: &Group<'_>, build: usize) -> bool {
        // A member that neither side has says nothing of either.
        let by_tolerance =
            |at: &usize| self.build_check(*at, build).is_none_or(|it| it.decided_by == ComparisonMethod::Tolerance);
        self.method != Some(ComparisonMethod::Statistical) && group.members.iter().all(by_tolerance)
    }

    /// By how many percent a build is better than the first, on average over primary means; worse is below zero. None
    /// where no mean that has a better direction has a finite score.
    pub fn score(&self, build: usize) -> Option<f64> {
        let scores: Vec<f64> = self.primary_scores(build).map(|(_, score)| score).collect();
        (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
    }

    /// The finite scores of a build's primary means, each with its check, in percent and with the sign that positive is
    /// better.
    pub fn primary_scores(&self, build: usize) -> impl Iterator<Item = (usize, f64)> {
        let primary = self.tolerances.checks.iter().enumerate();
        let primary = primary.filter(|(_, check)| check.primary && check.statistic == Statistic::Mean);
        primary.filter_map(move |(at, _)| Some((at, self.gain(at, build)?)))
    }

    /// By how many percent a build is better in a check, by its score; worse is below zero. None where the score is not
    /// finite or neither way is better.
    pub fn gain(&self, check: usize, build: usize) -> Option<f64> {
        let score = self.tolerances.cell(check, build)?.score.filter(|score| score.is_finite())?;
        Some(score * self.tolerances.sign(self.tolerances.checks[check])?)
    }

    fn column(&mut self, build: usize, compared: &mut DifferenceCache) -> Vec<Option<StoredCheck>> {
        let mut found = self.statistical_checks(build).unwrap_or(&[]).iter().enumerate().peekable();
        let tolerances = self.tolerances;
        let kept = tolerances.checks.iter().enumerate().map(|(at, check)| {
            while found.next_if(|(_, found)| found.row < check.row).is_some() {}
            let found = found.peek().filter(|(_, found)| found.row == check.row);
            let status = tolerances.cell(at, build)?.status;
            let differences = self.difference_index(check.row, build, compared);
            let differing = differences.map_or(&[][..], |place| &self.differences[place]);
            let by_statistics = found.map(|(_, found)| *found);
            let naming = tolerances.id(at).naming;
            let CheckDecision { by: decided_by, final_verdict: decided, .. } =
                decide(check.statistic, naming, status, by_statistics, self.method, differing);
            Some(StoredCheck { decided, decided_by, statistical_check: found.map(|(place, _)| *place), differences })
        });
        kept.collect()
    }

    /// Where the parameters in which a build differs from the first are kept. Many cases have the same two sets, of
    /// which each pair is compared once.
    fn difference_index(&mut self, row: MetricIndex, build: usize, compared: &mut DifferenceCache) -> Option<usize> {
        let builds = self.builds;
        let sides = [builds.list().first()?, builds.list().get(build)?];
        let [src, dst] = sides.map(|side| side.readings(row).next().map(|reading| reading.params));
        *compared.entry((src?, dst?)).or_insert_with(|| {
            let differences = param_differences(builds, sides, row);
            (!differences.is_empty()).then(|| {
                self.differences.push(differences);
                self.differences.len() - 1
            })
        })
    }

    fn statistical_checks(&self, build: usize) -> Option<&'a [statistical::MetricComparison]> {
        Some(&self.statistics.get(build.checked_sub(1)?)?.as_ref()?.checks)
    }
}

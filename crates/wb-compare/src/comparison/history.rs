//! Comparison of every later build with the first, for a table with one column per build.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use wb_results::comparison::{ComparisonMethod, FinalVerdict, ParamDifference, Statistic, Status, Totals};

use super::check::zero_mean_side;
use super::decide::{CheckDecision, decide};
use super::group::{GroupVerdict, judge_groups};
use super::missing_reason::MissingReasons;
use super::params::param_differences;
use super::totals::count_check;
use crate::build::{Builds, METRIC_DIRECTION, MetricIndex, ParamSetId};
use crate::run_perf::tolerance;
use crate::run_perf::tolerance::average::Average;
use crate::run_perf::tolerance::groups::ToleranceGroup;
use crate::statistical;

/// The result of every check in every later build; a [`ComparisonResult`](wb_results::comparison::ComparisonResult) has
/// that of the last one only. The index of the first later build is 1; checks are indexed as in
/// [`tolerance::Comparison::checks`].
#[derive(Debug)]
pub struct BuildHistory<'a> {
    pub builds: &'a Builds,
    pub tolerances: &'a tolerance::Comparison<'a>,
    /// One per later build.
    statistics: &'a [Option<statistical::Comparison>],
    method: Option<ComparisonMethod>,
    average: Average,
    columns: Vec<Vec<Option<StoredCheck>>>,
    /// By later build and group.
    groups: Vec<Vec<Option<GroupVerdict>>>,
    differences: Vec<Vec<ParamDifference>>,
}

/// A check in a build, compared with the first.
#[derive(Debug, Clone, Copy)]
pub struct BuildCheck<'a> {
    pub final_verdict: FinalVerdict,
    pub decided_by: ComparisonMethod,
    /// Inconclusive since a side has too few samples, whatever their values.
    pub too_few_samples: bool,
    pub by_tolerance: &'a tolerance::CheckScore,
    /// Of means only.
    pub by_statistics: Option<&'a statistical::MetricComparison>,
    /// From the first build's case.
    pub differences: &'a [ParamDifference],
}

#[derive(Debug, Clone, Copy)]
struct StoredCheck {
    decision: CheckDecision,
    statistical_check: Option<usize>,
    differences: Option<usize>,
}

/// Index of the difference, if there is one, by sets of parameters and whether directions matter.
type DifferenceCache = HashMap<(ParamSetId, ParamSetId, bool), Option<usize>, FixedState>;

impl<'a> BuildHistory<'a> {
    /// `statistics` has one comparison per later build, by [`statistical::against`]; without one tolerances decide.
    pub fn new(
        builds: &'a Builds,
        tolerances: &'a tolerance::Comparison<'a>,
        statistics: &'a [Option<statistical::Comparison>],
        method: Option<ComparisonMethod>,
    ) -> Self {
        let (average, columns, groups, differences) = (Average::Arithmetic, vec![], vec![], vec![]);
        let mut history = Self { builds, tolerances, statistics, method, average, columns, groups, differences };
        history.average = tolerances.average_of(history.primary_means());
        let mut cache = DifferenceCache::default();
        for build in 1..builds.list().len() {
            let column = history.column(build, &mut cache);
            history.columns.push(column);
            let statistics = statistics.get(build - 1).and_then(Option::as_ref);
            history.groups.push(judge_groups(builds, tolerances, build, statistics));
        }
        history
    }

    /// A check in a build; `None` if neither that build nor the first has it.
    pub fn build_check(&self, check: usize, build: usize) -> Option<BuildCheck<'_>> {
        let stored = (*self.columns.get(build.checked_sub(1)?)?.get(check)?)?;
        let by_tolerance = self.tolerances.cell(check, build)?;
        let statistical_check = stored.statistical_check.and_then(|index| self.statistical_checks(build)?.get(index));
        let by_statistics = statistical_check.filter(|_| self.tolerances.checks[check].statistic == Statistic::Mean);
        let StoredCheck { decision: CheckDecision { by, final_verdict, too_few_samples }, differences, .. } = stored;
        let differences = differences.map_or(&[][..], |index| &self.differences[index]);
        Some(BuildCheck { final_verdict, decided_by: by, too_few_samples, by_tolerance, by_statistics, differences })
    }

    /// The totals of some checks of a build, without errors and groups.
    pub fn totals_of(&self, checks: impl IntoIterator<Item = usize>, build: usize) -> Totals {
        let mut totals = Totals::default();
        for index in checks {
            if let Some(judged) = self.build_check(index, build) {
                let check = self.tolerances.checks[index];
                count_check(&mut totals, check.statistic, check.primary, judged.final_verdict, judged.decided_by);
            }
        }
        totals
    }

    pub fn totals(&self, build: usize) -> Totals {
        let mut totals = self.totals_of(0..self.tolerances.checks.len(), build);
        totals.errors = self.tolerances.errors(build).count();
        for group in self.tolerances.groups.iter().filter(|group| self.affects_exit_code(group, build)) {
            // One check alone is no group.
            match group.cell(build).filter(|cell| cell.scored > 1).map(|cell| cell.status) {
                Some(Status::Regressed) => totals.groups_regressed += 1,
                Some(Status::Improved) => totals.groups_improved += 1,
                _ => {}
            }
        }
        totals
    }

    /// The verdict on a group in a build, and its interval, if tolerances do not decide it; `None` if it has no result
    /// there.
    pub fn group_verdict(&self, group: usize, build: usize) -> Option<GroupVerdict> {
        let of_group = self.tolerances.groups.get(group)?;
        let status = of_group.cell(build)?.status;
        if self.affects_exit_code(of_group, build) {
            return Some(GroupVerdict { final_verdict: status.into(), compared: None });
        }
        *self.groups.get(build.checked_sub(1)?)?.get(group)?
    }

    /// Whether a group is part of a build's exit code: tolerances decide all of its members.
    pub fn affects_exit_code(&self, group: &ToleranceGroup<'_>, build: usize) -> bool {
        // A member that neither side has does not matter.
        let by_tolerance = |position: &usize| {
            self.build_check(*position, build).is_none_or(|it| it.decided_by == ComparisonMethod::Tolerance)
        };
        self.method != Some(ComparisonMethod::Statistical) && group.members.iter().all(by_tolerance)
    }

    /// The average improvement of a build over the first in percent, over primary means; negative if worse. `None` if
    /// no mean with a better direction has a finite score.
    pub fn score(&self, build: usize) -> Option<f64> {
        self.tolerances.average_improvement(self.primary_means(), build)
    }

    /// Whether the score is run-perf's, which has a tolerance.
    pub fn has_run_perf_score(&self) -> bool {
        self.average == Average::Arithmetic
    }

    fn primary_means(&self) -> impl Iterator<Item = usize> + Clone {
        let checks = self.tolerances.checks.iter().enumerate();
        checks.filter(|(_, check)| check.primary && check.statistic == Statistic::Mean).map(|(index, _)| index)
    }

    /// The finite improvements of primary means, each with the index of its check, in percent; positive is better.
    pub fn primary_improvements(&self, build: usize) -> impl Iterator<Item = (usize, f64)> {
        self.primary_means().filter_map(move |position| Some((position, self.gain(position, build)?)))
    }

    /// The improvement of a check in a build in percent, as a term of [`Self::score`]: where that is of speed, a time
    /// that is three times as long is −66.7 %. Negative if worse; `None` if not finite or neither direction is better.
    pub fn gain(&self, check: usize, build: usize) -> Option<f64> {
        self.tolerances.improvement(check, build, self.average)
    }

    fn column(&mut self, build: usize, cache: &mut DifferenceCache) -> Vec<Option<StoredCheck>> {
        let mut remaining = self.statistical_checks(build).unwrap_or(&[]).iter().enumerate().peekable();
        let tolerances = self.tolerances;
        let reasons = MissingReasons::new(self.builds);
        let alternatives = self.builds.within_run().is_some();
        let column = tolerances.checks.iter().enumerate().map(|(position, check)| {
            while remaining.next_if(|(_, next)| next.row < check.row).is_some() {}
            let statistical_check = remaining.peek().filter(|(_, next)| next.row == check.row);
            let status = tolerances.cell(position, build)?.status;
            let differences = self.difference_index(check.row, build, cache);
            let differing = differences.map_or(&[][..], |index| &self.differences[index]);
            let by_statistics = statistical_check.map(|(_, check)| *check);
            let has_zero_mean = zero_mean_side(self.builds, tolerances.checks[position], build).is_some();
            let decision = decide(
                tolerances.id(position),
                alternatives,
                status,
                has_zero_mean,
                by_statistics,
                self.method,
                differing,
            );
            let judged_alone = match status {
                Status::Missing => reasons.judged_alone(check.row, check.statistic, build),
                _ => None,
            };
            Some(StoredCheck {
                decision: decision.or_judged_alone(judged_alone),
                statistical_check: statistical_check.map(|(index, _)| *index),
                differences,
            })
        });
        column.collect()
    }

    /// Many cases have the same two sets of parameters, so that each pair is compared once.
    fn difference_index(&mut self, row: MetricIndex, build: usize, cache: &mut DifferenceCache) -> Option<usize> {
        let builds = self.builds;
        let sides = [builds.list().first()?, builds.list().get(build)?];
        let [reference, judged] = sides.map(|side| side.readings(row).next().map(|reading| reading.params));
        let has_given_direction = builds.is_ignored(row, METRIC_DIRECTION);
        *cache.entry((reference?, judged?, has_given_direction)).or_insert_with(|| {
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

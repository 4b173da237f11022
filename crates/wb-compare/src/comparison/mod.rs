//! Compares builds by both methods: the final verdicts, and the method that decides each.
//!
//! Start with [`summarize`], which combines the results of both methods; [`BuildHistory`] has those of every build.

mod builds;
mod check;
mod context;
mod decide;
mod fail_on;
mod group;
mod history;
mod missing_reason;
mod params;
mod statistics;
mod totals;

use std::collections::BTreeSet;

use rayon::prelude::*;
use wb_results::comparison::{
    CheckGroupResult, CheckResult, ComparisonMethod, ComparisonResult, FinalVerdict, Status, Totals,
};

pub use fail_on::{FailOn, Strictness};
pub use group::GroupVerdict;
pub use history::{BuildCheck, BuildHistory};

use crate::build::Builds;
use crate::run_perf::tolerance::{self, CheckScore, totals::ComparisonExit};
use crate::statistical;
use builds::summarize_build;
use check::check_result;
use context::context_differences;
use group::group_results;
use missing_reason::MissingReasons;
use totals::{count_check, exit};

/// Combines the results of both methods. `statistics` is `None` with fewer than two builds.
pub fn summarize(
    builds: &Builds,
    tolerances: &tolerance::Comparison<'_>,
    statistics: Option<&statistical::Comparison>,
    method: Option<ComparisonMethod>,
    fail_on: FailOn,
) -> ComparisonResult {
    let last = tolerances.last();
    // Checks that neither side has are not reported.
    let cells =
        |last| (0..tolerances.checks.len()).filter_map(move |index| Some((index, tolerances.cell(index, last)?)));
    let reported: Vec<(usize, &CheckScore)> = last.into_iter().flat_map(cells).collect();
    let reasons = MissingReasons::new(builds);
    let result = |&(index, cell): &(usize, &CheckScore)| {
        let statistical_check = statistics.and_then(|statistics| statistics.metric(tolerances.checks[index].row));
        check_result(builds, tolerances, index, cell, statistical_check, method, &reasons)
    };
    let mut checks: Vec<CheckResult> = reported.par_iter().map(result).collect();
    for check in &mut checks {
        check.fails = check.primary && check.final_verdict.is_compared() && fail_on.fails_check(check);
    }
    // Checks that are not reported do not matter.
    let mut by_tolerance = vec![true; tolerances.checks.len()];
    let mut notable = vec![false; tolerances.checks.len()];
    for ((index, _), check) in reported.into_iter().zip(&checks) {
        by_tolerance[index] = check.decided_by == ComparisonMethod::Tolerance;
        // What is inconclusive shows nothing.
        notable[index] = check.final_verdict.is_notable() && check.final_verdict != FinalVerdict::Inconclusive;
    }
    let groups = last.map_or_else(Vec::new, |last| {
        group_results(builds, tolerances, last, statistics, method, &by_tolerance, &notable)
    });
    let mut totals = Totals::default();
    for check in &checks {
        count_check(&mut totals, check.statistic, check.primary, check.final_verdict, check.decided_by);
    }
    totals.partly_missing = checks.iter().filter(|check| check.is_partly_missing()).count();
    totals.errors = last.map_or(0, |last| tolerances.errors(last).count());
    // One check alone is no group.
    let deciding = groups.iter().filter(|group| group.decides && group.members > 1);
    totals.groups_regressed = deciding.clone().filter(|group| group.status == Status::Regressed).count();
    totals.groups_improved = deciding.filter(|group| group.status == Status::Improved).count();
    let comparable = checks.iter().any(|check| check.primary && check.final_verdict.is_compared());
    let is_uncertain = |decided| matches!(decided, FinalVerdict::Unconfirmed | FinalVerdict::Inconclusive);
    let uncertain = checks.iter().filter(|check| check.fails && is_uncertain(check.final_verdict)).count();
    let exit = exit(&totals, comparable, fail_on, uncertain);
    let regressed_by = match exit {
        ComparisonExit::Regression => regressed_by(&checks, &groups, fail_on),
        ComparisonExit::Success | ComparisonExit::Incomplete | ComparisonExit::NothingComparable => Vec::new(),
    };
    let context = context_differences(builds);
    let within_run = builds.within_run().map(|within| within.summary.clone());
    let builds = builds.list().iter().map(summarize_build).collect();
    ComparisonResult {
        builds,
        within_run,
        method,
        checks,
        groups,
        context,
        totals,
        exit_code: exit.code(),
        regressed_by,
    }
}

/// The methods by which checks or groups regressed, or fail because the caller asked for it.
fn regressed_by(checks: &[CheckResult], groups: &[CheckGroupResult], fail_on: FailOn) -> Vec<ComparisonMethod> {
    let group_failed = |group: &CheckGroupResult| match group.status {
        Status::Regressed => group.decides,
        Status::Improved => group.decides && fail_on.gain,
        _ => false,
    };
    let by_groups = groups.iter().any(group_failed).then_some(ComparisonMethod::Tolerance);
    let methods = checks.iter().filter(|check| check.fails).map(|check| check.decided_by).chain(by_groups);
    let methods: BTreeSet<ComparisonMethod> = methods.collect();
    methods.into_iter().collect()
}

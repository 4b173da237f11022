//! A finished comparison: the results of both methods and the final verdicts. This is what is displayed and exported.
//!
//! Start with [`ComparisonResult::new`].

mod context;
mod decide;
mod group;
mod history;
mod missing_reason;
mod report;

use std::collections::BTreeSet;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Direction, Unit};

pub use context::ContextDifferences;
pub use decide::{ComparisonMethod, FinalVerdict};
pub use group::{CheckGroupResult, DominantMember, GroupVerdict};
pub use history::{BuildCheck, BuildHistory};
pub use report::{
    AspectSummary, ConfidenceInterval, FailureSummary, ParamDifference, RunSummary, StatisticalSummary, ValueDifference,
};

use crate::build::{Builds, MeasuredValue, SampleCounts};
use crate::direction::is_speed;
use crate::distinct::distinct;
use crate::id::Statistic;
use crate::run_perf::tolerance::{self, CheckScore, Status, totals::ComparisonExit};
use crate::statistical;
use crate::within_run::WithinRunSummary;
use decide::decide;
use group::group_results;
use missing_reason::MissingReasons;

/// Verdicts that fail a comparison in addition to regressions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailOn {
    pub gain: bool,
    /// Checks missing, invalid or incomparable, and tests with an error; if they do not fail, the comparison is
    /// incomplete.
    pub missing: bool,
    pub strictness: Strictness,
}

/// The checks without a certain verdict that fail a comparison. Each level includes those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strictness {
    #[default]
    Regressions,
    Unconfirmed,
    Inconclusive,
}

impl FailOn {
    /// Whether a primary check fails the comparison; an unconfirmed check fails it only if it may be worse.
    pub fn fails_check(self, check: &CheckResult) -> bool {
        let is_directed = check.direction != Direction::Neither;
        let may_be_worse = check.statistics.as_ref().is_none_or(|statistics| statistics.may_be_worse);
        // A standard deviation decides nothing where statistics decide.
        let is_decisive = check.statistic == Statistic::Mean || check.decided_by == ComparisonMethod::Tolerance;
        is_decisive
            && self.fails(check.final_verdict)
            && (check.final_verdict != FinalVerdict::Unconfirmed || may_be_worse || self.gain && is_directed)
    }

    /// Whether a verdict fails the comparison: worse, not compared, or requested to fail.
    pub fn fails(self, decided: FinalVerdict) -> bool {
        match decided {
            better if better.is_better() => self.gain,
            FinalVerdict::Unconfirmed => self.strictness >= Strictness::Unconfirmed,
            FinalVerdict::Inconclusive => self.strictness >= Strictness::Inconclusive,
            other => other.is_failure(),
        }
    }
}

/// The result of a comparison of the last build with the first; the builds in between are history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonResult {
    /// The builds: first the reference, last the one to judge.
    pub builds: Vec<BuildSummary>,
    /// What the builds are, if they are parts of one run: the reference, and all that is compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_run: Option<WithinRunSummary>,
    /// The requested method. `None`: statistics for recorded and imported runs, and wherever a noise model applies; tolerances
    /// for run-perf's folders.
    pub method: Option<ComparisonMethod>,
    /// All checks, in the builds' order.
    pub checks: Vec<CheckResult>,
    /// Groups of primary means, compared by the tolerance method.
    pub groups: Vec<CheckGroupResult>,
    /// Other differences between the first build and the last: metadata, environments, programs.
    pub context: ContextDifferences,
    /// The number of checks by verdict.
    pub totals: Totals,
    /// The exit code of the program: 0 no regression, 2 regression, 3 something missing, invalid or ended in an error, 4 (and
    /// not 3) if no primary check has a value on both sides and no test ended in an error.
    pub exit_code: u8,
    /// The methods that found a regression; empty unless the exit code is 2.
    pub regressed_by: Vec<ComparisonMethod>,
}

/// The summary of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildSummary {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunSummary>,
    /// Tests and cells that ended in an error: `PROFILE/TEST/SERIAL`, with `:CASE` in a Weighbridge run, and the
    /// message.
    pub errors: Vec<(String, String)>,
    /// The number of counted samples of its runs; `None` if their results do not record disturbances.
    pub samples: Option<SampleCounts>,
}

/// The result of a check: a statistic of a metric of a case, in all builds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// `PROFILE/TEST/SERIAL:./CASE/CLASS/METRIC.STATISTIC`, in run-perf's syntax.
    pub id: String,
    /// The names of both sides, if they are parts of one run: `threads=1` and `threads=2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<[String; 2]>,
    /// The cell of the reference, `PROFILE/TEST/SERIAL:CASE`, if it is another one of the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_cell: Option<String>,
    /// The statistic, which is the last part of the identifier.
    pub statistic: Statistic,
    /// Whether it is a primary metric of its case.
    pub primary: bool,
    /// The better direction.
    pub direction: Direction,
    /// The unit of the values: `%` for standard deviations; `None` if declared by no build.
    #[serde(default)]
    pub value_unit: Option<Unit>,
    /// The value in the first build; `None` if it has no valid value.
    pub before: Option<f64>,
    /// The value in the last build; `None` if it has no valid value.
    pub after: Option<f64>,
    /// The values in all builds, including the first and the last.
    pub values: Vec<Option<f64>>,
    /// The difference in percent without any model (of a standard deviation in percentage points, positive if it
    /// decreased); `None` if a side has no valid value or it is infinite.
    pub difference: Option<f64>,
    /// The score in percent, with run-perf's sign.
    pub score: Option<f64>,
    /// The scores of every build after the first.
    pub scores: Vec<Option<f64>>,
    /// The maximum deviation of the score from zero, in percent.
    pub tolerance: f64,
    /// The verdict by the tolerance method.
    pub status: FinalVerdict,
    /// The same of every build after the first; `None` if neither side has the check.
    pub statuses: Vec<Option<FinalVerdict>>,
    /// The components of the score: each part's name, difference in percent (`None` if infinite), and weight.
    pub score_parts: Vec<(String, Option<f64>, f64)>,
    /// The result of the statistical method, for means.
    #[serde(flatten)]
    pub statistics: Option<StatisticalSummary>,
    /// The method that decided.
    pub decided_by: ComparisonMethod,
    /// The final verdict.
    pub final_verdict: FinalVerdict,
    /// Why there is no verdict, if known: the error that explains a missing value, or too few samples; of a metric that both
    /// sides declare with different directions or classes, the way out.
    pub reason: Option<String>,
    /// Parameters that differ between the sides.
    pub differences: Vec<ParamDifference>,
    /// The folders of the runs of the first build and of the last that do not have it, although others of the build do.
    #[serde(default, skip_serializing_if = "are_complete")]
    pub lacking: [Vec<String>; 2],
    /// Whether it fails the comparison (exit code 2): worse, or what was asked to fail.
    #[serde(default)]
    pub fails: bool,
    /// What was found about the samples of the first build and of the last: trends, modes, dependence and the like.
    #[serde(default)]
    pub findings: [Vec<String>; 2],
}

fn are_complete(lacking: &[Vec<String>; 2]) -> bool {
    lacking.iter().all(Vec::is_empty)
}

/// The number of checks by verdict; of standard deviations only of those that tolerances decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// Primary checks that improved, or are better than the reference.
    pub better: usize,
    /// Better by more than half the tolerance.
    pub minor_gain: usize,
    /// Without a relevant difference.
    pub equivalent: usize,
    /// Worse by more than half the tolerance.
    pub minor_loss: usize,
    /// Primary checks that regressed, or are worse than the reference.
    pub worse: usize,
    /// Different, where neither direction is better.
    pub differs: usize,
    /// Different by their samples, but no more than runs of one build may be.
    #[serde(default)]
    pub unconfirmed: usize,
    /// Without a verdict yet.
    pub inconclusive: usize,
    /// Only in the last build; does not fail.
    #[serde(default)]
    pub new: usize,
    /// Only in the first build, or in one of two parts of one run.
    pub missing: usize,
    /// Primary means that the last build has, but not in all of its runs.
    #[serde(default)]
    pub partly_missing: usize,
    /// Without a valid value.
    pub invalid: usize,
    /// Tests and cells that ended in an error, in the first build and in the last.
    pub errors: usize,
    /// With different definitions, so that nothing was compared.
    pub incomparable: usize,
    /// Checks that are not primary and decide nothing.
    pub not_primary: usize,
    /// Checks that are not primary and got worse or were not compared.
    #[serde(default)]
    pub not_primary_failed: usize,
    /// How many of the primary checks above are standard deviations.
    #[serde(default)]
    pub standard_deviations: DeviationTotals,
    /// Deciding groups of several checks that got worse.
    pub groups_regressed: usize,
    /// Deciding groups of several checks that got better.
    pub groups_improved: usize,
}

/// The number of primary standard deviations that tolerances decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DeviationTotals {
    /// With a value on both sides.
    pub compared: usize,
    /// Better than the reference by more than the tolerance.
    pub better: usize,
    /// Worse than the reference by more than the tolerance.
    pub worse: usize,
    /// Missing, invalid or incomparable.
    pub not_compared: usize,
}

impl DeviationTotals {
    fn add(&mut self, decided: FinalVerdict) {
        self.compared += usize::from(decided.is_compared());
        self.better += usize::from(decided.is_better());
        self.worse += usize::from(decided.is_worse());
        self.not_compared += usize::from(decided.is_failure() && !decided.is_compared());
    }
}

impl Totals {
    /// Counts a check, unless it is a standard deviation beside a mean that statistics decide: it decides nothing.
    fn add(&mut self, statistic: Statistic, is_primary: bool, decided: FinalVerdict, by: ComparisonMethod) {
        if statistic == Statistic::Stddev && by == ComparisonMethod::Statistical {
            return;
        }
        if !is_primary {
            self.not_primary += 1;
            self.not_primary_failed += usize::from(decided.is_failure());
            return;
        }
        if statistic == Statistic::Stddev {
            self.standard_deviations.add(decided);
        }
        let count = match decided {
            FinalVerdict::Improved | FinalVerdict::Faster | FinalVerdict::Better => &mut self.better,
            FinalVerdict::MinorGain => &mut self.minor_gain,
            FinalVerdict::Equivalent => &mut self.equivalent,
            FinalVerdict::MinorLoss => &mut self.minor_loss,
            FinalVerdict::Regressed | FinalVerdict::Slower | FinalVerdict::Worse => &mut self.worse,
            FinalVerdict::Differs => &mut self.differs,
            FinalVerdict::Unconfirmed => &mut self.unconfirmed,
            FinalVerdict::Inconclusive => &mut self.inconclusive,
            FinalVerdict::New => &mut self.new,
            FinalVerdict::Missing => &mut self.missing,
            FinalVerdict::Invalid => &mut self.invalid,
            FinalVerdict::Incomparable => &mut self.incomparable,
        };
        *count += 1;
    }

    /// `comparable`: a primary check has both values; `uncertain`: how many unconfirmed and inconclusive checks fail.
    fn exit(&self, comparable: bool, fail_on: FailOn, uncertain: usize) -> ComparisonExit {
        let gains = if fail_on.gain { self.better + self.groups_improved } else { 0 };
        let missing = self.missing + self.partly_missing + self.invalid + self.incomparable + self.errors;
        if !comparable && self.errors == 0 && !(fail_on.missing && missing > 0) {
            ComparisonExit::NothingComparable
        } else if self.worse + self.groups_regressed + gains + uncertain > 0 {
            ComparisonExit::Regression
        } else if missing > 0 {
            if fail_on.missing { ComparisonExit::Regression } else { ComparisonExit::Incomplete }
        } else {
            ComparisonExit::Success
        }
    }
}

impl CheckResult {
    /// Whether it decides, and the last build does not have it in all of its runs.
    pub fn is_partly_missing(&self) -> bool {
        self.primary && !self.lacking[1].is_empty()
    }
}

impl ComparisonResult {
    /// Combines the results of both methods. `statistics` is `None` with fewer than two builds.
    pub fn new(
        builds: &Builds,
        tolerances: &tolerance::Comparison<'_>,
        statistics: Option<&statistical::Comparison>,
        method: Option<ComparisonMethod>,
        fail_on: FailOn,
    ) -> Self {
        let last = tolerances.last();
        // Checks that neither side has are not reported.
        let cells =
            |last| (0..tolerances.checks.len()).filter_map(move |index| Some((index, tolerances.cell(index, last)?)));
        let reported: Vec<(usize, &CheckScore)> = last.into_iter().flat_map(cells).collect();
        let reasons = MissingReasons::new(builds);
        let check_result = |&(index, cell): &(usize, &CheckScore)| {
            let statistical_check = statistics.and_then(|statistics| statistics.metric(tolerances.checks[index].row));
            Self::check_result(builds, tolerances, index, cell, statistical_check, method, &reasons)
        };
        let mut checks: Vec<CheckResult> = reported.par_iter().map(check_result).collect();
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
            totals.add(check.statistic, check.primary, check.final_verdict, check.decided_by);
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
        let exit = totals.exit(comparable, fail_on, uncertain);
        let regressed_by = match exit {
            ComparisonExit::Regression => regressed_by(&checks, &groups, fail_on),
            ComparisonExit::Success | ComparisonExit::Incomplete | ComparisonExit::NothingComparable => Vec::new(),
        };
        let context = ContextDifferences::new(builds);
        let within_run = builds.within_run().map(|within| within.summary.clone());
        let builds = builds.list().iter().map(BuildSummary::new).collect();
        Self { builds, within_run, method, checks, groups, context, totals, exit_code: exit.code(), regressed_by }
    }

    /// The errors of the first build and the last, each with the name of the build (or of the parts of a run that have
    /// it), place and message.
    pub fn errors(&self) -> impl Iterator<Item = (String, &str, &str)> {
        let ends = match &self.builds[..] {
            [first, .., last] => vec![(0, first), (1, last)],
            one => one.iter().map(|build| (1, build)).collect(),
        };
        ends.into_iter().flat_map(move |(side, build)| {
            build.errors.iter().map(move |(location, message)| {
                let parts = self.parts_with(location, side);
                let name = if parts.is_empty() { build.name.clone() } else { parts.join(", ") };
                (name, location.as_str(), message.as_str())
            })
        })
    }

    /// The parts of a run that a place belongs to, of one side of its checks; none between builds.
    fn parts_with(&self, location: &str, side: usize) -> Vec<&str> {
        let Some(within_run) = &self.within_run else { return Vec::new() };
        let is_there =
            |check: &&CheckResult| check.id.strip_prefix(location).is_some_and(|rest| rest.starts_with(['/', ':']));
        let sides = self.checks.iter().filter(is_there).filter_map(|check| check.sides.as_ref());
        let mut parts = distinct(sides.map(|sides| sides[side].as_str()));
        // A cell without a counterpart is part of no side.
        if parts.is_empty() {
            parts.push(if side == 0 { &within_run.reference } else { &within_run.run });
        }
        parts
    }

    fn check_result(
        builds: &Builds,
        tolerances: &tolerance::Comparison<'_>,
        index: usize,
        cell: &CheckScore,
        statistical_check: Option<&statistical::MetricComparison>,
        method: Option<ComparisonMethod>,
        reasons: &MissingReasons<'_>,
    ) -> CheckResult {
        let check = tolerances.checks[index];
        let id = tolerances.id(index);
        // A zero has no sign.
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite()).map(|value| value + 0.0);
        let all = 0..builds.list().len();
        let values: Vec<_> = all.clone().map(|build| tolerances.value(index, build).number()).collect();
        let ends = [values.first(), values.last()].map(|value| value.copied().flatten());
        let cells = || all.clone().skip(1).map(|build| tolerances.cell(index, build));
        let differences = report::last_param_differences(builds, check.row);
        let alternatives = builds.within_run().is_some();
        let judged_alone = |build| reasons.judged_alone(check.row, check.statistic, build);
        let zero_mean = zero_mean_side(builds, check, all.end - 1);
        let decision =
            decide(id, alternatives, cell.status, zero_mean.is_some(), statistical_check, method, &differences)
                .or_judged_alone(judged_alone(all.end - 1));
        // The verdicts of each method have the words of final ones. What fails more often is not slower.
        let fails_more = statistical_check.is_some_and(statistical::MetricComparison::failures_rose);
        let is_speed = check.statistic == Statistic::Mean && is_speed(id.class) && !fails_more;
        let word = |verdict: FinalVerdict, build: usize| {
            if alternatives {
                verdict.or_judged_alone(judged_alone(build)).between_alternatives(is_speed)
            } else {
                verdict.or_judged_alone(judged_alone(build))
            }
        };
        CheckResult {
            id: id.text(),
            sides: builds.within_run().map(|within| within.sides(check.row).map(str::to_owned)),
            reference_cell: report::reference_cell(builds, check.row),
            statistic: check.statistic,
            primary: check.primary,
            direction: tolerances.options.directions.of(id.class, id.metric),
            value_unit: match check.statistic {
                Statistic::Mean => builds.unit(check.row),
                Statistic::Stddev => Some(Unit::new("%")),
            },
            before: ends[0],
            after: ends[1],
            values,
            difference: finite(cell.raw),
            score: finite(cell.score),
            scores: cells().map(|cell| finite(cell.and_then(|cell| cell.score))).collect(),
            tolerance: tolerances.tolerance(index),
            status: word(cell.status.into(), all.end - 1),
            statuses: (1..).zip(cells()).map(|(build, cell)| Some(word(cell?.status.into(), build))).collect(),
            score_parts: tolerances.parts(index, all.end - 1).iter().map(report::summarize_part).collect(),
            statistics: statistical_check
                .filter(|_| check.statistic == Statistic::Mean)
                .map(|check| StatisticalSummary::new(check, builds, |verdict| word(verdict.into(), all.end - 1))),
            decided_by: decision.by,
            final_verdict: decision.final_verdict,
            reason: reasons.of(check.row, decision, statistical_check, ends, &differences).or_else(|| {
                let side = zero_mean.filter(|_| decision.final_verdict == FinalVerdict::Inconclusive)?;
                Some(format!("the mean of `{side}` is zero: no standard deviation is a percentage of it"))
            }),
            differences,
            lacking: match check.statistic {
                Statistic::Mean => report::last_lacking(builds, check.row),
                Statistic::Stddev => Default::default(),
            },
            fails: false,
            findings: match check.statistic {
                Statistic::Mean => report::last_findings(builds, check.row),
                Statistic::Stddev => Default::default(),
            },
        }
    }
}

/// The name of the side (a build, or a part of a run) without a standard deviation because its mean is zero; `None` if
/// a side has no mean.
fn zero_mean_side(builds: &Builds, check: tolerance::Check, build: usize) -> Option<String> {
    let sides = [builds.list().first()?, builds.list().get(build)?];
    let means = sides.map(|side| side.value(check.row, Statistic::Mean));
    let is_compared = check.statistic == Statistic::Stddev && means.iter().all(|mean| mean.number().is_some());
    let is_undefined = |index: &usize| {
        means[*index] == MeasuredValue::Known(0.0)
            && sides[*index].value(check.row, Statistic::Stddev) == MeasuredValue::Missing
    };
    let index = [1, 0].into_iter().find(is_undefined).filter(|_| is_compared)?;
    Some(
        builds
            .within_run()
            .map_or_else(|| sides[index].name.clone(), |within| within.sides(check.row)[index].to_owned()),
    )
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

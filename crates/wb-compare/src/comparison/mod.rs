//! A finished comparison: both methods side by side, and what follows. This is what is drawn, written and exported.
//!
//! Start with [`Outcome::of`].

mod context;
mod decide;
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
pub use history::{BuildCheck, BuildHistory};
pub use report::{ConfidenceInterval, ParamDifference, RunSummary, StatisticalSummary};

use crate::build::{Builds, SampleCounts};
use crate::id::Statistic;
use crate::tolerance::{CheckScore, Status, totals::ComparisonExit};
use crate::{statistical, tolerance};
use decide::decide;
use missing_reason::MissingReasons;

/// A comparison of builds: the last one against the first, those between being history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonResult {
    /// The builds, the source first and the destination last.
    pub builds: Vec<BuildSummary>,
    /// The requested method; none: statistics where both sides have enough samples, tolerances on run-perf's folders that
    /// have fewer, and nothing on other runs that do.
    pub method: Option<ComparisonMethod>,
    /// Every check, in the builds' order.
    pub checks: Vec<CheckResult>,
    /// Groups of primary means, by the method of tolerances.
    pub groups: Vec<CheckGroupResult>,
    /// What else differs between the first build and the last: metadata, environments, programs.
    pub context: ContextDifferences,
    /// How many primary checks came to what, and the others.
    pub totals: Totals,
    /// What the program's exit says: 0 no regression, 2 regression, 3 something missing, invalid or ended in an error, 4
    /// nothing comparable.
    pub exit_code: u8,
    /// The methods by which something regressed; empty unless the exit is 2.
    pub regressed_by: Vec<ComparisonMethod>,
}

/// One build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildSummary {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunSummary>,
    /// Tests and cells that ended in an error: `PROFILE/TEST/SERIAL`, of an own run with `:CASE`, and what happened.
    pub errors: Vec<(String, String)>,
    /// Counted samples of its runs; none where their results do not record what disturbed them.
    pub samples: Option<SampleCounts>,
}

/// A statistic of a metric of a case, in all builds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// `PROFILE/TEST/SERIAL:./CASE/CLASS/METRIC.STATISTIC`, as run-perf writes it.
    pub id: String,
    /// The last part of the identifier.
    pub statistic: Statistic,
    /// Whether its case is judged by it.
    pub primary: bool,
    /// Which way is better.
    pub direction: Direction,
    /// In what the values are: `%` for standard deviations; none where no build says.
    #[serde(default)]
    pub value_unit: Option<Unit>,
    /// The value in the first build; none where it has no number.
    pub before: Option<f64>,
    /// The value in the last build; none where it has no number.
    pub after: Option<f64>,
    /// In every build, the first and the last included.
    pub values: Vec<Option<f64>>,
    /// The difference in percent without any model (of a standard deviation in percentage points, positive where there
    /// is less); none where a side has no number or it is infinite.
    pub difference: Option<f64>,
    /// The score in percent, with run-perf's sign.
    pub score: Option<f64>,
    /// The scores of every build after the first.
    pub scores: Vec<Option<f64>>,
    /// How much the score may differ from zero, in percent.
    pub tolerance: f64,
    /// What the method of tolerances says.
    pub status: Status,
    /// The same of every build after the first; none where neither side has it.
    pub statuses: Vec<Option<Status>>,
    /// What the score is made of: each part's name, difference in percent (none where it is infinite), and weight.
    pub score_parts: Vec<(String, Option<f64>, f64)>,
    /// What the method of statistics says of means.
    #[serde(flatten)]
    pub statistics: Option<StatisticalSummary>,
    /// Which method decides here.
    pub decided_by: ComparisonMethod,
    /// What follows.
    pub final_verdict: FinalVerdict,
    /// Why nothing could be decided, where that is known: the error that stands for a side's value, or too few samples.
    pub reason: Option<String>,
    /// Parameters in which both sides differ.
    pub differences: Vec<ParamDifference>,
}

/// Primary means that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckGroupResult {
    /// What they have in common, with stars for what they have not.
    pub id: String,
    /// How many there are.
    pub members: usize,
    /// The average score in percent.
    pub score: f64,
    /// How much it may differ from zero.
    pub tolerance: f64,
    /// What the method of tolerances says.
    pub status: Status,
    /// Whether it takes part in what the exit says: where its members are decided by tolerances.
    pub decides: bool,
}

/// How many came to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// Primary checks that got better.
    pub gains: usize,
    /// Better, within the tolerance.
    pub minor_gains: usize,
    /// As they were.
    pub equals: usize,
    /// Worse, within the tolerance.
    pub minor_losses: usize,
    /// Worse.
    pub losses: usize,
    /// Different, where nobody knows whether that is normal or good.
    pub differing: usize,
    /// Of which nothing can be said yet.
    pub inconclusive: usize,
    /// On one side alone.
    pub missing: usize,
    /// Without a number that counts.
    pub invalid: usize,
    /// Tests and cells that ended in an error, in the first build and in the last.
    pub errors: usize,
    /// Defined otherwise on both sides, so that nothing was compared.
    pub incomparable: usize,
    /// Checks that decide nothing.
    pub not_primary: usize,
    /// Those of them that got worse, or that were not compared.
    #[serde(default)]
    pub not_primary_failed: usize,
    /// Groups that got worse, among those that decide.
    pub groups_lost: usize,
    /// Groups that got better, among those that decide.
    pub groups_gained: usize,
}

impl Totals {
    /// Counts a check.
    fn add(&mut self, is_primary: bool, decided: FinalVerdict) {
        if !is_primary {
            self.not_primary += 1;
            self.not_primary_failed += usize::from(decided.is_failure());
            return;
        }
        let place = match decided {
            FinalVerdict::Gain => &mut self.gains,
            FinalVerdict::MinorGain => &mut self.minor_gains,
            FinalVerdict::Equal => &mut self.equals,
            FinalVerdict::MinorLoss => &mut self.minor_losses,
            FinalVerdict::Loss => &mut self.losses,
            FinalVerdict::Differs => &mut self.differing,
            FinalVerdict::Inconclusive => &mut self.inconclusive,
            FinalVerdict::Missing => &mut self.missing,
            FinalVerdict::Invalid => &mut self.invalid,
            FinalVerdict::Incomparable => &mut self.incomparable,
        };
        *place += 1;
    }

    /// Primary checks that were compared.
    pub fn compared(&self) -> usize {
        self.gains
            + self.minor_gains
            + self.equals
            + self.minor_losses
            + self.losses
            + self.differing
            + self.inconclusive
    }

    fn exit(&self, comparable: bool, fail_on_gain: bool) -> ComparisonExit {
        let gains = if fail_on_gain { self.gains + self.groups_gained } else { 0 };
        if !comparable && self.errors == 0 {
            ComparisonExit::NothingComparable
        } else if self.losses + self.groups_lost + gains > 0 {
            ComparisonExit::Regression
        } else if self.missing + self.invalid + self.incomparable + self.errors > 0 {
            ComparisonExit::Incomplete
        } else {
            ComparisonExit::Success
        }
    }
}

impl ComparisonResult {
    /// Puts both methods together. `statistics` is none where there are fewer than two builds.
    pub fn of(
        builds: &Builds,
        tolerances: &tolerance::Comparison<'_>,
        statistics: Option<&statistical::Comparison>,
        method: Option<ComparisonMethod>,
        fail_on_gain: bool,
    ) -> Self {
        let last = tolerances.last();
        // What neither side has is told nowhere.
        let cells = |last| (0..tolerances.checks.len()).filter_map(move |at| Some((at, tolerances.cell(at, last)?)));
        let told: Vec<(usize, &CheckScore)> = last.into_iter().flat_map(cells).collect();
        let reasons = MissingReasons::new(builds);
        let checked = |&(at, cell): &(usize, &CheckScore)| {
            let found = statistics.and_then(|statistics| statistics.metric(tolerances.checks[at].row));
            Self::check_result(builds, tolerances, at, cell, found, method, &reasons)
        };
        let checks: Vec<CheckResult> = told.par_iter().map(checked).collect();
        // What is not told says nothing against it.
        let mut by_tolerance = vec![true; tolerances.checks.len()];
        for ((at, _), check) in told.into_iter().zip(&checks) {
            by_tolerance[at] = check.decided_by == ComparisonMethod::Tolerance;
        }
        let groups = last.map_or_else(Vec::new, |last| groups(tolerances, last, method, &by_tolerance));
        let mut totals = Totals::default();
        for check in &checks {
            totals.add(check.primary, check.final_verdict);
        }
        totals.errors = last.map_or(0, |last| tolerances.errors(last).count());
        let deciding = groups.iter().filter(|group| group.decides);
        totals.groups_lost = deciding.clone().filter(|group| group.status == Status::Regression).count();
        totals.groups_gained = deciding.filter(|group| group.status == Status::Improvement).count();
        let comparable = checks.iter().any(|check| check.final_verdict.is_compared());
        let exit = totals.exit(comparable, fail_on_gain);
        let regressed_by = match exit {
            ComparisonExit::Regression => regressed_by(&checks, &groups, fail_on_gain),
            ComparisonExit::Success | ComparisonExit::Incomplete | ComparisonExit::NothingComparable => Vec::new(),
        };
        let context = ContextDifferences::of(builds);
        let builds = builds.list().iter().map(BuildSummary::of).collect();
        Self { builds, method, checks, groups, context, totals, exit_code: exit.code(), regressed_by }
    }

    /// The errors of the first build and of the last: the build's name, the place, and what happened.
    pub fn errors(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let ends = match &self.builds[..] {
            [first, .., last] => vec![first, last],
            one => one.iter().collect(),
        };
        ends.into_iter().flat_map(|build| {
            build.errors.iter().map(move |(place, text)| (build.name.as_str(), place.as_str(), text.as_str()))
        })
    }

    fn check_result(
        builds: &Builds,
        tolerances: &tolerance::Comparison<'_>,
        at: usize,
        cell: &CheckScore,
        found: Option<&statistical::MetricComparison>,
        method: Option<ComparisonMethod>,
        reasons: &MissingReasons<'_>,
    ) -> CheckResult {
        let check = tolerances.checks[at];
        let id = tolerances.id(at);
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let all = 0..builds.list().len();
        let values: Vec<_> = all.clone().map(|build| tolerances.value(at, build).known()).collect();
        let ends = [values.first(), values.last()].map(|value| value.copied().flatten());
        let cells = || all.clone().skip(1).map(|build| tolerances.cell(at, build));
        let differences = report::last_param_differences(builds, check.row);
        let decision = decide(check.statistic, id.naming, cell.status, found, method, &differences);
        CheckResult {
            id: id.text(),
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
            tolerance: tolerances.tolerance(at),
            status: cell.status,
            statuses: cells().map(|cell| cell.map(|cell| cell.status)).collect(),
            score_parts: tolerances.parts(at, all.end - 1).iter().map(report::summarize_part).collect(),
            statistics: found
                .filter(|_| check.statistic == Statistic::Mean)
                .map(|found| StatisticalSummary::of(found, builds)),
            decided_by: decision.by,
            final_verdict: decision.final_verdict,
            reason: reasons.of(&id, decision, found, ends),
            differences,
        }
    }
}

/// The methods by which checks or groups are worse, or better where that fails as well.
fn regressed_by(checks: &[CheckResult], groups: &[CheckGroupResult], fail_on_gain: bool) -> Vec<ComparisonMethod> {
    let failed = |check: &&CheckResult| match check.final_verdict {
        FinalVerdict::Loss => check.primary,
        FinalVerdict::Gain => check.primary && fail_on_gain,
        _ => false,
    };
    let group_failed = |group: &CheckGroupResult| match group.status {
        Status::Regression => group.decides,
        Status::Improvement => group.decides && fail_on_gain,
        _ => false,
    };
    let by_groups = groups.iter().any(group_failed).then_some(ComparisonMethod::Tolerance);
    let methods = checks.iter().filter(failed).map(|check| check.decided_by).chain(by_groups);
    let methods: BTreeSet<ComparisonMethod> = methods.collect();
    methods.into_iter().collect()
}

/// The groups of a build; they decide where the method of tolerances does for all of their members.
fn groups(
    tolerances: &tolerance::Comparison<'_>,
    last: usize,
    method: Option<ComparisonMethod>,
    by_tolerance: &[bool],
) -> Vec<CheckGroupResult> {
    let group = |group: &tolerance::groups::Group<'_>| {
        let cell = group.cell(last)?;
        Some(CheckGroupResult {
            id: group.id.to_string(),
            members: cell.scored,
            score: cell.score,
            tolerance: cell.tolerance,
            status: cell.status,
            decides: method != Some(ComparisonMethod::Statistical) && group.members.iter().all(|at| by_tolerance[*at]),
        })
    };
    tolerances.groups.iter().filter_map(group).collect()
}

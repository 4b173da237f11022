//! The result of a check, from those of both methods.

use wb_model::Unit;
use wb_results::comparison::{CheckResult, ComparisonMethod, FinalVerdict, Statistic};

use super::decide::{between_alternatives, decide, or_judged_alone};
use super::missing_reason::MissingReasons;
use super::params::last_param_differences;
use super::statistics::summarize_statistics;
use crate::build::{Builds, MeasuredValue, MetricIndex};
use crate::direction::is_speed;
use crate::run_perf::tolerance::score::ScorePart;
use crate::run_perf::tolerance::{self, CheckScore};
use crate::statistical;

pub(super) fn check_result(
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
    let differences = last_param_differences(builds, check.row);
    let alternatives = builds.within_run().is_some();
    let judged_alone = |build| reasons.judged_alone(check.row, check.statistic, build);
    let zero_mean = zero_mean_side(builds, check, all.end - 1);
    let decision = decide(id, alternatives, cell.status, zero_mean.is_some(), statistical_check, method, &differences)
        .or_judged_alone(judged_alone(all.end - 1));
    // The verdicts of each method have the words of final ones. What fails more often is not slower.
    let fails_more = statistical_check.is_some_and(statistical::MetricComparison::failures_rose);
    let is_speed = check.statistic == Statistic::Mean && is_speed(id.class) && !fails_more;
    let word = |verdict: FinalVerdict, build: usize| {
        let verdict = or_judged_alone(verdict, judged_alone(build));
        if alternatives { between_alternatives(verdict, is_speed) } else { verdict }
    };
    CheckResult {
        id: id.text(),
        sides: builds.within_run().map(|within| within.sides(check.row).map(str::to_owned)),
        reference_cell: reference_cell(builds, check.row),
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
        score_parts: tolerances.parts(index, all.end - 1).iter().map(summarize_part).collect(),
        statistics: statistical_check
            .filter(|_| check.statistic == Statistic::Mean)
            .map(|check| summarize_statistics(check, builds, |verdict| word(verdict.into(), all.end - 1))),
        decided_by: decision.by,
        final_verdict: decision.final_verdict,
        reason: reasons.of(check.row, decision, statistical_check, ends, &differences).or_else(|| {
            let side = zero_mean.filter(|_| decision.final_verdict == FinalVerdict::Inconclusive)?;
            Some(format!("the mean of `{side}` is zero: no standard deviation is a percentage of it"))
        }),
        differences,
        lacking: match check.statistic {
            Statistic::Mean => last_lacking(builds, check.row),
            Statistic::Stddev => Default::default(),
        },
        fails: false,
        findings: match check.statistic {
            Statistic::Mean => last_findings(builds, check.row),
            Statistic::Stddev => Default::default(),
        },
    }
}

/// The name of the side (a build, or a part of a run) without a standard deviation because its mean is zero; `None` if
/// a side has no mean.
pub(super) fn zero_mean_side(builds: &Builds, check: tolerance::Check, build: usize) -> Option<String> {
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

fn summarize_part(part: &ScorePart) -> (String, Option<f64>, f64) {
    (part.term.to_string(), Some(part.difference).filter(|difference| difference.is_finite()), part.weight)
}

/// The runs of the first and of the last build without a metric that others of the build have.
fn last_lacking(builds: &Builds, row: MetricIndex) -> [Vec<String>; 2] {
    let [reference, .., judged] = builds.list() else { return Default::default() };
    [reference, judged].map(|build| build.lacking(row).into_iter().map(|run| run.display().to_string()).collect())
}

/// Of the first build and of the last.
fn last_findings(builds: &Builds, row: MetricIndex) -> [Vec<String>; 2] {
    let [reference, .., judged] = builds.list() else { return Default::default() };
    [reference, judged].map(|build| builds.findings(build, row).into_iter().map(str::to_owned).collect())
}

/// Within one run, the cell that a metric's cell is compared with, if that is another one.
fn reference_cell(builds: &Builds, row: MetricIndex) -> Option<String> {
    let judged = builds.cell(row);
    let reference = builds.within_run()?.counterpart(judged).filter(|reference| *reference != judged)?;
    Some(builds.cell_name(reference))
}

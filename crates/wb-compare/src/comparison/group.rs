//! The results of groups: averages of related primary means.

use wb_results::comparison::{CheckGroupResult, ComparisonMethod, DominantMember, FinalVerdict};
use wb_stats::{RunPrior, benjamini_hochberg};

use crate::build::{Build, Builds, MetricIndex, Run};
use crate::run_perf::tolerance;
use crate::run_perf::tolerance::average::Average;
use crate::run_perf::tolerance::groups::ToleranceGroup;
use crate::statistical::group::{GroupComparison, GroupRun, compare_group};
use crate::statistical::{self, observations};

/// The share of groups with a verdict that are false, on average.
const ERROR_RATE: f64 = 0.05;

/// The verdict of statistics on the average of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupVerdict {
    pub final_verdict: FinalVerdict,
    /// `None` if the average cannot be compared.
    pub compared: Option<GroupComparison>,
}

/// The verdicts on the groups of a build by statistics, all as one family; `None` of groups without a result in it.
pub(super) fn judge_groups(
    builds: &Builds,
    tolerances: &tolerance::Comparison<'_>,
    build: usize,
    statistics: Option<&statistical::Comparison>,
) -> Vec<Option<GroupVerdict>> {
    let compared: Vec<Option<GroupComparison>> =
        tolerances.groups.iter().map(|group| compare(builds, tolerances, group, build, statistics?)).collect();
    let p_values: Vec<f64> = compared.iter().flatten().map(|it| it.p_value).collect();
    let mut adjusted = benjamini_hochberg(&p_values, ERROR_RATE).adjusted.into_iter();
    let judge = |(group, compared): (&ToleranceGroup<'_>, Option<GroupComparison>)| {
        // What is not compared shows no difference.
        let p = compared.and_then(|_| adjusted.next()).unwrap_or(1.0);
        let tolerance = group.cell(build)?.tolerance;
        let verdict = compared.map(|compared| compared.verdict(tolerance, p, ERROR_RATE));
        Some(GroupVerdict { final_verdict: verdict.map_or(FinalVerdict::Inconclusive, FinalVerdict::from), compared })
    };
    tolerances.groups.iter().zip(compared).map(judge).collect()
}

/// Compares the average of the members of a group that have one, and a better direction.
fn compare(
    builds: &Builds,
    tolerances: &tolerance::Comparison<'_>,
    group: &ToleranceGroup<'_>,
    build: usize,
    statistics: &statistical::Comparison,
) -> Option<GroupComparison> {
    let is_averaged = |position: &usize| tolerances.improvement(*position, build, Average::Geometric).is_some();
    let members: Vec<usize> = group.members.iter().copied().filter(is_averaged).collect();
    let rows: Vec<MetricIndex> = members.iter().map(|position| tolerances.checks[*position].row).collect();
    let signs: Option<Vec<f64>> =
        members.iter().map(|position| tolerances.direction_sign(tolerances.checks[*position])).collect();
    let priors: Option<Vec<RunPrior>> = rows.iter().map(|row| Some(statistics.metric(*row)?.run_prior)).collect();
    let samples = |run: &Run| -> GroupRun { rows.iter().map(|row| observations::samples(run, *row)).collect() };
    let side = |build: &Build| build.runs.iter().map(samples).collect::<Vec<_>>();
    let [reference, judged] = [side(builds.list().first()?), side(builds.list().get(build)?)];
    compare_group([&reference, &judged], &signs?, shared_prior(&priors?)?)
}

/// What is known of the noise between runs of checks that share it: the average of their standard deviations.
fn shared_prior(priors: &[RunPrior]) -> Option<RunPrior> {
    let stddev = priors.iter().map(|prior| prior.stddev()).sum::<f64>() / priors.len() as f64;
    let degrees = priors.iter().map(|prior| prior.degrees()).fold(f64::INFINITY, f64::min);
    RunPrior::with_degrees(stddev, degrees)
}

/// The results of a build's groups; a group decides if the tolerance method decides all of its members.
pub(super) fn group_results(
    builds: &Builds,
    tolerances: &tolerance::Comparison<'_>,
    last: usize,
    statistics: Option<&statistical::Comparison>,
    method: Option<ComparisonMethod>,
    by_tolerance: &[bool],
    notable: &[bool],
) -> Vec<CheckGroupResult> {
    let sides = [builds.list().first(), builds.list().get(last)];
    let has_single_runs = sides.iter().all(|side| side.is_some_and(|build| build.runs.len() == 1));
    let result = |(group, judged): (&ToleranceGroup<'_>, Option<GroupVerdict>)| {
        let cell = group.cell(last)?;
        let average = tolerances.average_of(group.members.iter().copied());
        let improvements: Vec<(usize, f64)> = group
            .members
            .iter()
            .filter_map(|position| Some((*position, tolerances.improvement(*position, last, average)?)))
            .collect();
        let decides = method != Some(ComparisonMethod::Statistical)
            && group.members.iter().all(|position| by_tolerance[*position]);
        let judged = judged.filter(|_| !decides);
        let notable = group.members.iter().copied().filter(|position| notable[*position]);
        let (with_score, without_score): (Vec<usize>, Vec<usize>) =
            notable.partition(|position| tolerances.averaged_score(average, *position, last).is_some());
        Some(CheckGroupResult {
            id: group.id.to_string(),
            members: cell.scored,
            score: cell.score + 0.0,
            improvement: cell.improvement,
            is_geometric: average == Average::Geometric,
            median: median(&improvements),
            dominant: dominant_member(tolerances, average, &improvements),
            tolerance: cell.tolerance,
            status: cell.status,
            decides,
            final_verdict: judged.map_or(cell.status.into(), |judged| judged.final_verdict),
            interval: judged.and_then(|judged| judged.compared).map(|compared| compared.interval.into()),
            without_run_noise: has_single_runs && statistics.is_some_and(|it| has_no_run_noise(it, tolerances, group)),
            notable_members: with_score.len(),
            notable_without_score: without_score.len(),
        })
    };
    let judged = judge_groups(builds, tolerances, last, statistics);
    tolerances.groups.iter().zip(judged).filter_map(result).collect()
}

fn has_no_run_noise(
    statistics: &statistical::Comparison,
    tolerances: &tolerance::Comparison<'_>,
    group: &ToleranceGroup<'_>,
) -> bool {
    let of_members = group.members.iter().filter_map(|position| statistics.metric(tolerances.checks[*position].row));
    of_members.map(|metric| metric.run_prior.stddev()).all(|stddev| stddev == 0.0)
}

fn median(improvements: &[(usize, f64)]) -> Option<f64> {
    let all: Vec<f64> = improvements.iter().map(|(_, improvement)| *improvement).collect();
    Some(wb_stats::Samples::new(&all).ok()?.median())
}

/// The member that contributes more to an average than all others together.
fn dominant_member(
    tolerances: &tolerance::Comparison<'_>,
    average: Average,
    improvements: &[(usize, f64)],
) -> Option<DominantMember> {
    // What became zero has no logarithm, and is counted apart.
    let part = |improvement: f64| average.term(improvement).unwrap_or_default().abs();
    let all: f64 = improvements.iter().map(|(_, improvement)| part(*improvement)).sum();
    let (position, improvement) = *improvements.iter().find(|(_, improvement)| part(*improvement) > all / 2.0)?;
    let others = improvements.iter().filter(|(other, _)| *other != position).map(|(_, improvement)| *improvement);
    (improvements.len() > 2).then_some(())?;
    Some(DominantMember { id: tolerances.id(position).to_string(), improvement, average_without: average.of(others)? })
}

//! `iocost-tune`: lines are fitted to the results of `iocost-qos` over the vrate, and QoS settings follow from them.
//!
//! The series, the shapes of their lines, the targets and the margins are those of resctl-bench 2.2.6
//! (`resctl-bench/doc/iocost-tune.md`, `src/bench/iocost_tune.rs`). The lines are fitted differently: each is a sum of
//! ramps, whose heights follow from least squares for given knots ([`fit()`]).

mod fit;
mod remarks;
mod series;
mod target;

use std::collections::BTreeMap;

use wb_results::contention::{
    Answer, BenchResult, FittedSeries, LatencyKind, OverTime, Percentile, Point, QosAnswer, Series, SolutionAnswer,
    Target, TuneAnswer,
};

use self::series::fitted;
use crate::spec::IocostTuneProperties;

pub use fit::{Shape, fit};
pub(crate) use series::pooled;
pub use series::unfitted;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SolveError {
    #[error(
        "no setting of iocost-qos has a fixed vrate: iocost-tune needs several, such as `iocost-qos:vrate-intvs=25`"
    )]
    NoFixedVrate,
    #[error("expected a result of iocost-qos")]
    NotQos,
}

/// Collects the series of a result of `iocost-qos`, and solves them. Fails if nothing was measured at a fixed vrate.
pub fn tune(result: &BenchResult, properties: &IocostTuneProperties) -> Result<TuneAnswer, SolveError> {
    let Answer::IocostQos(qos) = &result.answer else { return Err(SolveError::NotQos) };
    let required = Series::always().chain(required_series(properties));
    let series: BTreeMap<Series, FittedSeries> = required.map(|series| (series, values(qos, series))).collect();
    if series.get(&Series::Mof).is_none_or(|mof| mof.points.is_empty()) {
        return Err(SolveError::NoFixedVrate);
    }
    let answer = TuneAnswer {
        base: qos.base,
        mem_profile: qos.mem_profile,
        isol_pct: qos.isol_pct,
        isol_thr: qos.isol_thr,
        qos_spec: result.spec.clone(),
        series,
        solutions: Vec::new(),
        remarks: Vec::new(),
    };
    Ok(solve(answer, properties))
}

/// The series that properties require in addition to the ones that are always analysed.
pub(crate) fn required_series(properties: &IocostTuneProperties) -> Vec<Series> {
    let mut required: Vec<Series> = properties.series.iter().copied().collect();
    required.extend(properties.all_solutions().iter().flat_map(|solution| series_of(solution.target)));
    required
}

/// The values of a series at fixed vrates, without a line.
pub(crate) fn values(qos: &QosAnswer, series: Series) -> FittedSeries {
    let points = qos.stages.iter().filter_map(|stage| {
        let vrate = stage.change?.as_fixed_vrate()?;
        Some(Point { x: vrate, y: stage.found.as_ref().filter(|found| found.is_valid())?.value(series, qos.isol_pct)? })
    });
    unfitted(points.collect())
}

/// Fits the series of an answer again, and computes solutions, from nothing but the answer.
pub fn solve(mut answer: TuneAnswer, properties: &IocostTuneProperties) -> TuneAnswer {
    let isolation = answer.series.get(&Series::Isol).map(|values| fitted(values, Series::Isol, None));
    let limit = isolation.as_ref().and_then(|series| {
        let line = series.line.as_ref()?;
        // Where isolation is insufficient everywhere, nothing counts.
        let is_below = line.extremes().1 < answer.isol_thr;
        if is_below { Some(f64::NEG_INFINITY) } else { line.falls_below(answer.isol_thr) }
    });
    for (series, values) in &mut answer.series {
        *values = fitted(values, *series, limit);
    }
    let scale = (properties.scale_min * 100.0, properties.scale_max * 100.0);
    let solutions = properties.all_solutions().into_iter().map(|solution| {
        let solved = target::solve(solution.target, &answer, scale);
        SolutionAnswer { solution, solved }
    });
    answer.solutions = solutions.collect();
    answer.remarks = remarks::remarks(&answer, scale);
    answer
}

/// The series that a target needs in addition to the ones that are always analysed.
fn series_of(target: Target) -> Vec<Series> {
    let latency = |kind, percentile: Option<Percentile>| Some(Series::Latency(kind, percentile?, OverTime::Mean));
    match target {
        Target::Vrate { rpct, wpct, .. } => {
            [latency(LatencyKind::Read, rpct), latency(LatencyKind::Write, wpct)].into_iter().flatten().collect()
        }
        Target::Latency { kind, percentile, .. } => vec![Series::Latency(kind, percentile, OverTime::Mean)],
        Target::MofMax | Target::AmofMax | Target::AmofMaxVrate | Target::Isolation | Target::IsolatedBandwidth => {
            Vec::new()
        }
    }
}

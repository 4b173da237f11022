//! Remarks about a device, from its series.

use wb_results::contention::{LatencyKind, OverTime, Percentile, Polyline, Series, SolutionAnswer, Target, TuneAnswer};

use crate::figures;

/// From this p99 in every hundredth second on, at any vrate, a device stalls; in nanoseconds.
const STALL: f64 = 500e6;
/// From this maximum on, the tail is long; in nanoseconds.
const LONG_TAIL: f64 = 1e9;
/// From this part of the footprint on, the protected one is much smaller.
const WIDE_DELTA: f64 = 0.05;

pub(super) fn remarks(answer: &TuneAnswer, scale: (f64, f64)) -> Vec<String> {
    let mut remarks: Vec<String> =
        LatencyKind::ALL.into_iter().flat_map(|kind| latency_remarks(answer, kind, scale)).collect();
    remarks.extend(answer.solutions.iter().filter_map(|solution| extrapolation(answer, solution)));
    remarks.extend(answer.solutions.iter().filter_map(|solution| {
        let is_fixed = matches!(
            solution.solution.target,
            Target::AmofMaxVrate | Target::Isolation | Target::IsolatedBandwidth
        );
        let solved = solution.solved.as_ref().filter(|_| is_fixed)?;
        let delta = solved.amof_delta? / solved.mof?;
        (delta >= WIDE_DELTA).then(|| {
            format!(
                "{}: the footprint that can be protected is {} % below the one that is supported: a workload that fills \
                 the machine is hard to protect",
                solution.solution.name,
                figures::percent(delta)
            )
        })
    }));
    remarks
}

/// Remarks that a solution is outside of the measured vrates, where its effect is unknown.
fn extrapolation(answer: &TuneAnswer, solution: &SolutionAnswer) -> Option<String> {
    let vrate = solution.solved.as_ref()?.scale * 100.0;
    let mof = answer.series.get(&Series::Mof)?;
    let vrates = || mof.points.iter().chain(&mof.rejected).map(|point| point.x);
    let (lowest, highest) = (vrates().min_by(f64::total_cmp)?, vrates().max_by(f64::total_cmp)?);
    (vrate > highest || vrate < lowest).then(|| {
        format!(
            "{}: its highest vrate of {vrate:.1} is outside of those that were measured, {lowest:.1} to {highest:.1}: \
             its figures are those of the nearest one",
            solution.solution.name
        )
    })
}

fn latency_remarks(answer: &TuneAnswer, kind: LatencyKind, scale: (f64, f64)) -> Vec<String> {
    let name = match kind {
        LatencyKind::Read => "read",
        LatencyKind::Write => "write",
    };
    let line =
        |percentile, time| answer.series.get(&Series::Latency(kind, percentile, time))?.line.as_ref()?.clamped(scale);
    let over = OverTime::Percentile;
    let lines = [
        line(Percentile::P50, OverTime::Mean),
        line(Percentile::P99, OverTime::Mean),
        line(Percentile::P99, over(Percentile::P99)),
        line(Percentile::MAX, over(Percentile::MAX)),
    ];
    let [Some(median), Some(p99), Some(stalls), Some(tail)] = lines else {
        return vec![format!("there are not enough {name} latencies")];
    };
    let least = |line: &Polyline| line.extremes().0;
    let remarks = [
        (median.is_flat() && p99.is_flat()).then(|| format!("throttling does not change the mean {name} latencies")),
        (least(&stalls) >= STALL).then(|| {
            format!(
                "even at its best, one second of a hundred has a p99 of {name} latencies of {}",
                figures::duration(least(&stalls))
            )
        }),
        (least(&tail) >= LONG_TAIL)
            .then(|| format!("even at its best, {name} latencies reach {}", figures::duration(least(&tail)))),
    ];
    remarks.into_iter().flatten().collect()
}

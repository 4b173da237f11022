//! Solutions: the vrate that meets a target, and the settings of io.cost for it.

use wb_model::IocostQos;
use wb_results::contention::{LatencyKind, OverTime, Percentile, Polyline, Series, SolvedQos, Target, TuneAnswer};

/// In nanoseconds.
const MICROSECOND: f64 = 1e3;
/// Largest shift of a solution away from a slope, relative to its vrate.
const MAX_MARGIN: f64 = 0.1;
/// Shift per slope and relative error, found by trial (resctl-bench, `iocost_tune.rs`).
const MARGIN_FACTOR: f64 = 800.0;

struct VratePoint {
    qos: IocostQos,
    /// The vrate to which the model is scaled, in percent.
    vrate: f64,
}

/// Solves a target within a range of vrates; `None` if there is no solution.
pub(super) fn solve(target: Target, answer: &TuneAnswer, range: (f64, f64)) -> Option<SolvedQos> {
    let solver = Solver { answer, range, margin: margin(answer) };
    let VratePoint { qos, vrate } = solver.solve(target)?;
    let scale = vrate / 100.0;
    let at = |series: Series| answer.series.get(&series)?.at(vrate);
    let latencies = LatencyKind::ALL.into_iter().flat_map(|kind| {
        Series::SOLUTION_LATENCIES.into_iter().map(move |(percentile, time)| Series::Latency(kind, percentile, time))
    });
    Some(SolvedQos {
        model: answer.base.model.scaled(scale),
        qos: IocostQos { min: qos.min / scale, max: qos.max / scale, ..qos }.rounded(),
        scale,
        mof: at(Series::Mof),
        amof: at(Series::Amof),
        amof_delta: at(Series::AmofDelta),
        isolation: at(Series::Isol),
        latencies: latencies.filter_map(|series| Some((series, at(series)?))).collect(),
    })
}

/// Distance by which a solution at the end of a slope is shifted onto the flat part. It grows with the slope of the
/// footprint and the error of its line, as a small error would then lead further from the target.
fn margin(answer: &TuneAnswer) -> f64 {
    let margin = || {
        let mof = answer.series.get(&Series::Mof)?;
        let line = mof.line.as_ref()?;
        let (foot, top) = (last_at(line, line.extremes().0)?.0, first_at(line, line.extremes().1)?.0);
        let (low, high) = (line.eval(foot), line.eval(top));
        let slope = (high - low) / (top - foot);
        slope.is_finite().then(|| (slope * (mof.error / high) * MARGIN_FACTOR).clamp(0.0, MAX_MARGIN))
    };
    margin().unwrap_or(0.0)
}

/// The first point of a line with a value: its vrate and its index.
fn first_at(line: &Polyline, value: f64) -> Option<(f64, usize)> {
    let index = line.points().iter().position(|point| point.y == value)?;
    Some((line.points()[index].x, index))
}

/// The last point of a line with a value: its vrate and its index.
fn last_at(line: &Polyline, value: f64) -> Option<(f64, usize)> {
    let index = line.points().iter().rposition(|point| point.y == value)?;
    Some((line.points()[index].x, index))
}

struct Solver<'a> {
    answer: &'a TuneAnswer,
    range: (f64, f64),
    margin: f64,
}

impl Solver<'_> {
    fn solve(&self, target: Target) -> Option<VratePoint> {
        match target {
            Target::Vrate { min, max, rpct, wpct } => Some(self.vrate_range(min, max, rpct, wpct)),
            Target::MofMax => self.fixed(self.lowest_vrate_at_max(Series::Mof)?),
            Target::AmofMax => self.fixed(self.lowest_vrate_at_max(Series::Amof)?),
            Target::AmofMaxVrate => self.fixed(self.highest(Series::Amof)?),
            Target::Isolation => self.fixed(self.highest_vrate_at_min(Series::AmofDelta)?),
            Target::IsolatedBandwidth => {
                let (low, high) = (self.highest_vrate_at_min(Series::AmofDelta)?, self.highest(Series::Amof)?);
                self.fixed(self.highest_vrate_at_max(Series::Amof)?.clamp(low.min(high), high))
            }
            Target::Latency { kind, percentile, low, high } => self.latency_slope_range(kind, percentile, (low, high)),
        }
    }

    fn line(&self, series: Series) -> Option<Polyline> {
        self.answer.series.get(&series)?.line.as_ref()?.clamped(self.range)
    }

    /// The mean of a latency at a vrate, in microseconds.
    fn latency(&self, kind: LatencyKind, percentile: Percentile, vrate: f64) -> Option<u64> {
        let series = self.answer.series.get(&Series::Latency(kind, percentile, OverTime::Mean))?;
        Some((series.at(vrate)? / MICROSECOND).round() as u64)
    }

    /// A fixed vrate, which io.cost does not lower when latencies exceed their limits; it derives its period from them.
    fn fixed(&self, vrate: f64) -> Option<VratePoint> {
        let limit = |kind| self.latency(kind, Percentile::P99, vrate).unwrap_or_default();
        let (rlat, wlat) = (limit(LatencyKind::Read), limit(LatencyKind::Write));
        Some(VratePoint { qos: IocostQos { rpct: 0.0, rlat, wpct: 0.0, wlat, min: vrate, max: vrate }, vrate })
    }

    /// A range within which io.cost lowers the vrate when latencies exceed their limits, which are those at its upper
    /// end.
    fn vrate_range(&self, min: f64, max: f64, rpct: Option<Percentile>, wpct: Option<Percentile>) -> VratePoint {
        let limit = |kind, percentile: Option<Percentile>| {
            let limit = percentile.and_then(|one| Some((one.percent(), self.latency(kind, one, max)?)));
            limit.unwrap_or_default()
        };
        let ((rpct, rlat), (wpct, wlat)) = (limit(LatencyKind::Read, rpct), limit(LatencyKind::Write, wpct));
        VratePoint { qos: IocostQos { rpct, rlat, wpct, wlat, min, max }, vrate: max }
    }

    /// If the value does not depend on the vrate, the highest vrate that does not add to the latency impact.
    fn lowest_vrate_at_max(&self, series: Series) -> Option<f64> {
        let line = self.line(series)?;
        if line.is_flat() {
            let (first, last) = line.range();
            return Some(self.highest_vrate_at_min(Series::LatImp).unwrap_or(first).clamp(first, last));
        }
        let (_, index) = first_at(&line, line.extremes().1)?;
        Some(self.shifted(&line, index))
    }

    fn highest_vrate_at_max(&self, series: Series) -> Option<f64> {
        let line = self.line(series)?;
        let (_, index) = last_at(&line, line.extremes().1)?;
        Some(if line.is_flat() { line.range().1 } else { self.shifted(&line, index) })
    }

    fn highest_vrate_at_min(&self, series: Series) -> Option<f64> {
        let line = self.line(series)?;
        let (_, index) = last_at(&line, line.extremes().0)?;
        Some(if line.is_flat() { line.range().1 } else { self.shifted(&line, index) })
    }

    fn highest(&self, series: Series) -> Option<f64> {
        Some(self.line(series)?.range().1)
    }

    /// The vrate of a point between a slope and a flat part, shifted onto the flat part by the margin.
    fn shifted(&self, line: &Polyline, index: usize) -> f64 {
        let points = line.points();
        let (x, y) = (points[index].x, points[index].y);
        let neighbours =
            index.checked_sub(1).and_then(|before| Some((points.get(before)?.y, points.get(index + 1)?.y)));
        let (first, last) = line.range();
        match neighbours {
            Some((before, after)) if before != y && after == y => (x * (1.0 + self.margin)).min(last),
            Some((before, after)) if before == y && after != y => (x * (1.0 - self.margin)).max(first),
            _ => x,
        }
    }

    /// A part of the vrates over which a latency rises, as a range for io.cost. Within the range, io.cost lowers the
    /// vrate when the latency exceeds its value at the upper end.
    fn latency_slope_range(
        &self,
        kind: LatencyKind,
        percentile: Percentile,
        (low, high): (f64, f64),
    ) -> Option<VratePoint> {
        let series = self.answer.series.get(&Series::Latency(kind, percentile, OverTime::Mean))?;
        let line = series.line.as_ref()?.clamped(self.range)?;
        let (foot, top) = (last_at(&line, line.extremes().0)?.0, first_at(&line, line.extremes().1)?.0);
        if foot >= top {
            return None;
        }
        let at = |part: f64| foot + (top - foot) * part;
        // Above the slope, the latency stays the same: the uppermost part reaches to the end of the range.
        let (min, max) = (at(low), if high < 1.0 { at(high) } else { self.range.1 });
        let limit = (percentile.percent(), (series.at(max)? / MICROSECOND).round() as u64);
        let ((rpct, rlat), (wpct, wlat)) = match kind {
            LatencyKind::Read => (limit, (0.0, 0)),
            LatencyKind::Write => ((0.0, 0), limit),
        };
        Some(VratePoint { qos: IocostQos { rpct, rlat, wpct, wlat, min, max }, vrate: max })
    }
}

#[cfg(test)]
mod tests;

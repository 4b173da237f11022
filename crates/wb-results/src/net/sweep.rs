//! Latency over offered load: from a tenth of the capacity up to saturation, and the knee of the curve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LatencySummary, RunResult, RunStatus};

/// At the knee the p99 is at most this multiple of that at the lowest load.
const KNEE_FACTOR: f64 = 2.0;

/// Fewer rounds than this are too few for a p99.
const MIN_ROUNDS: u64 = 1000;

/// A load of which less than this share is achieved saturates the system.
const SATURATED_BELOW: f64 = 0.97;

/// Latencies of a workload over the load that is offered to it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Sweep {
    /// What was measured: the preset with its host, protocol, sizes and connections.
    pub title: String,
    /// Rounds per second without a rate: 100 % load.
    pub capacity: f64,
    /// The loads, in ascending order.
    pub points: Vec<SweepPoint>,
    /// Load of the knee in percent: the last whose p99 is at most twice that of the lowest load. Null if runs of that and the
    /// next load overlap, the lowest load has more than twice the p99 of a higher one, or no load has a response time.
    pub knee_percent: Option<f64>,
    /// Remarks that matter for interpreting the figures.
    pub notes: Vec<String>,
}

/// One load of a sweep: the run with the median p99, of several.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SweepPoint {
    /// The load in percent of the capacity.
    pub load_percent: f64,
    /// Rounds per second that were to begin.
    pub offered: f64,
    /// Rounds per second that were completed.
    pub achieved: f64,
    /// Whether less was achieved than offered.
    pub is_saturated: bool,
    /// Durations of rounds from the start that the rate intended.
    pub response: Option<LatencySummary>,
    /// Durations of rounds from their actual start.
    pub service: Option<LatencySummary>,
    /// Rounds that failed, were still open at the end, or were due and never began.
    pub unsuccessful_rounds: u64,
    /// How the run of this load ended; that of the first that did not complete, if there is one.
    pub outcome: RunStatus,
    /// Number of runs of this load.
    pub runs: u32,
    /// The smallest and the largest p99 of the runs, in nanoseconds.
    pub p99_range_ns: Option<(u64, u64)>,
}

impl SweepPoint {
    /// A load with the results of its runs; `None` without any.
    pub fn new(load_percent: f64, offered: f64, results: &[RunResult]) -> Option<Self> {
        let p99 = |result: &RunResult| result.totals.response.as_ref().map(|response| response.percentiles.p99_ns);
        let mut by_p99: Vec<&RunResult> = results.iter().collect();
        by_p99.sort_by_key(|result| p99(result).unwrap_or(u64::MAX));
        let result = *by_p99.get(by_p99.len().checked_sub(1)? / 2)?;
        let p99s: Vec<u64> = by_p99.iter().filter_map(|result| p99(result)).collect();
        let failed = results.iter().map(|result| &result.outcome).find(|outcome| **outcome != RunStatus::Completed);
        let totals = &result.totals;
        let achieved = totals.rounds_per_second.unwrap_or(0.0);
        Some(Self {
            load_percent,
            offered,
            achieved,
            is_saturated: achieved < offered * SATURATED_BELOW,
            response: totals.response.clone(),
            service: totals.latency.clone(),
            unsuccessful_rounds: totals.failed_rounds
                + totals.pending_rounds.map_or(0, |pending| pending.count)
                + totals.scheduled_rounds.map_or(0, |scheduled| scheduled.not_started),
            outcome: failed.unwrap_or(&result.outcome).clone(),
            runs: results.len() as u32,
            p99_range_ns: p99s.first().copied().zip(p99s.last().copied()),
        })
    }

    /// Rounds that have a response time.
    fn rounds(&self) -> u64 {
        self.response.as_ref().map_or(0, |response| response.count)
    }

    /// The p99 of the response times, in nanoseconds.
    pub fn p99(&self) -> Option<f64> {
        self.response.as_ref().map(|response| response.percentiles.p99_ns as f64)
    }
}

impl Sweep {
    /// Finds the knee of loads in ascending order.
    pub fn new(title: String, capacity: f64, points: Vec<SweepPoint>) -> Self {
        let mut notes = Vec::new();
        let knee = find_knee(&points);
        let undecided = knee.and_then(|knee| overlapping_load(&points, knee));
        if let Some(next) = undecided {
            notes.push(format!(
                "the runs' p99 at {} % load are within those of lower loads: longer runs (-t) or more (--runs) may decide",
                next.load_percent
            ));
        }
        let knee = knee.filter(|_| undecided.is_none() && less_disturbed(&points).is_none());
        if let (Some(first), Some(_)) = (points.first(), knee)
            && first.load_percent > 10.0
        {
            notes
                .push(format!("the knee is relative to the p99 at {} % load, the lowest measured", first.load_percent));
        }
        if let Some(last) = points.last().filter(|last| !last.is_saturated && last.load_percent >= 100.0) {
            notes.push(format!("not saturated at {} % load: the capacity was estimated too low", last.load_percent));
        }
        if let Some(early) = points.iter().find(|point| point.is_saturated && point.load_percent < 90.0) {
            notes.push(format!(
                "saturated at {} % load: the capacity was estimated too high, or something disturbed the run",
                early.load_percent
            ));
        }
        if let Some(small) = points.iter().find(|point| point.rounds() < MIN_ROUNDS) {
            notes.push(format!(
                "{} rounds at {} % load: fewer than {MIN_ROUNDS} have no p99; measure longer (-t)",
                small.rounds(),
                small.load_percent
            ));
        }
        if let Some(better) = less_disturbed(&points) {
            notes.insert(
                0,
                format!(
                    "the p99 at {} % load is more than twice that at {} %: something disturbed the lowest load, so that \
                     nothing can be said of a knee; measure again, longer (-t) or with more runs (--runs)",
                    points[0].load_percent, better.load_percent
                ),
            );
        }
        let above = |index: usize| points.iter().take(index).find(|point| !keeps_up(point, &points));
        if let Some(other) = knee.and_then(above) {
            notes.push(format!(
                "the p99 at {} % load, below the knee, is more than twice that of the lowest load: something disturbed \
                 it, or more runs are needed (--runs)",
                other.load_percent
            ));
        }
        let knee_percent = knee.and_then(|index| points.get(index)).map(|point| point.load_percent);
        Self { title, capacity, points, knee_percent, notes }
    }

    /// The last load that keeps up and the next one, if their runs differ too much to say that the knee is between them.
    pub fn undecided_knee(&self) -> Option<[&SweepPoint; 2]> {
        let last = find_knee(&self.points)?;
        Some([self.points.get(last)?, overlapping_load(&self.points, last)?])
    }

    /// The lowest load and a higher one with less than half of its p99, if there is one.
    pub fn disturbed_lowest(&self) -> Option<[&SweepPoint; 2]> {
        Some([self.points.first()?, less_disturbed(&self.points)?])
    }

    pub fn knee(&self) -> Option<&SweepPoint> {
        self.points.iter().find(|point| Some(point.load_percent) == self.knee_percent)
    }
}

/// A higher load with less than half of the p99 of the lowest, which then is no measure of the others.
fn less_disturbed(points: &[SweepPoint]) -> Option<&SweepPoint> {
    let (first, others) = points.split_first()?;
    others.iter().find(|other| first.p99().zip(other.p99()).is_some_and(|(first, other)| first > other * KNEE_FACTOR))
}

/// The last point that keeps up; `None` without a first.
fn find_knee(points: &[SweepPoint]) -> Option<usize> {
    points.iter().rposition(|point| keeps_up(point, points))
}

/// The load after the knee, if it is above the knee by its median run alone: some run of it has a p99 like those of runs
/// at the knee or at the lowest load. Saturation decides without the p99.
fn overlapping_load(points: &[SweepPoint], knee: usize) -> Option<&SweepPoint> {
    let largest = |point: &SweepPoint| point.p99_range_ns.map_or(0, |(_, high)| high);
    let below = largest(points.first()?).max(largest(points.get(knee)?));
    let next = points.get(knee + 1).filter(|next| !next.is_saturated)?;
    next.p99_range_ns.is_some_and(|(low, _)| low <= below).then_some(next)
}

/// Whether a point completes everything that it offers, with a p99 of at most twice the first point's.
fn keeps_up(point: &SweepPoint, points: &[SweepPoint]) -> bool {
    let base = points.first().and_then(SweepPoint::p99);
    let within = point.p99().zip(base).is_some_and(|(p99, base)| p99 <= base * KNEE_FACTOR);
    within && !point.is_saturated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Percentiles;

    fn point(load_percent: f64, achieved: f64, p99: u64) -> SweepPoint {
        let percentiles = Percentiles {
            min_ns: p99,
            p50_ns: p99,
            p90_ns: p99,
            p99_ns: p99,
            p99_9_ns: p99,
            p99_99_ns: p99,
            max_ns: p99,
        };
        let mean_ns = p99 as f64;
        SweepPoint {
            load_percent,
            offered: load_percent * 100.0,
            achieved,
            is_saturated: achieved < load_percent * 100.0 * SATURATED_BELOW,
            response: Some(LatencySummary { count: 1, pending: 0, mean_ns, percentiles, histogram: String::new() }),
            service: None,
            unsuccessful_rounds: 0,
            outcome: RunStatus::Completed,
            runs: 1,
            p99_range_ns: Some((p99, p99)),
        }
    }

    #[test]
    fn the_knee_is_the_last_load_with_twice_the_first_p99() {
        let points = vec![
            point(10.0, 1000.0, 100),
            point(50.0, 5000.0, 150),
            point(80.0, 8000.0, 199),
            point(90.0, 9000.0, 300),
        ];
        let sweep = Sweep::new(String::new(), 10_000.0, points);
        assert_eq!(sweep.knee_percent, Some(80.0));
        assert!(sweep.notes[0].contains("1 rounds at 10 % load"), "{:?}", sweep.notes);
    }

    // The median runs alone decided.
    #[test]
    fn overlapping_runs_decide_no_knee() {
        let ranged = |load: f64, p99: u64, range: (u64, u64)| SweepPoint {
            p99_range_ns: Some(range),
            runs: 3,
            ..point(load, load * 100.0, p99)
        };
        let noisy = [ranged(10.0, 5250, (4810, 20_400)), ranged(30.0, 2750, (1710, 59_700))];
        let sweep = |next: SweepPoint| Sweep::new(String::new(), 10_000.0, [&noisy[..], &[next]].concat());
        let undecided = sweep(ranged(60.0, 19_300, (2460, 401_000)));
        assert_eq!(undecided.knee_percent, None);
        assert_eq!(undecided.undecided_knee().map(|loads| loads.map(|load| load.load_percent)), Some([30.0, 60.0]));
        assert!(undecided.notes[0].contains("at 60 % load are within"), "{:?}", undecided.notes);
        let decided = sweep(ranged(60.0, 90_000, (60_000, 401_000)));
        assert_eq!((decided.knee_percent, decided.undecided_knee().is_some()), (Some(30.0), false));
    }

    #[test]
    fn a_lowest_load_that_was_disturbed_decides_no_knee() {
        let points = vec![point(10.0, 1000.0, 56_000), point(50.0, 5000.0, 1700), point(90.0, 9000.0, 90_000)];
        let sweep = Sweep::new(String::new(), 10_000.0, points);
        assert_eq!((sweep.knee_percent, sweep.disturbed_lowest().is_some()), (None, true));
        assert!(sweep.notes[0].contains("the p99 at 10 % load is more than twice that at 50 %"), "{:?}", sweep.notes);
    }

    #[test]
    fn a_saturated_load_is_no_knee() {
        let points = vec![point(20.0, 2000.0, 100), point(110.0, 9000.0, 150)];
        let sweep = Sweep::new(String::new(), 10_000.0, points);
        assert_eq!(sweep.knee_percent, Some(20.0));
        assert!(sweep.notes[0].contains("at 20 % load, the lowest"), "{:?}", sweep.notes);
        assert_eq!(Sweep::new(String::new(), 1.0, Vec::new()).knee_percent, None);
    }
}

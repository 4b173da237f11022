//! Times of a dialer's iterations by two clocks: its own, and that of the harness.

use wb_agent::Arrival;

use super::output::Iteration;
use super::study::ScenarioOutput;

/// Seconds by which times may be out of order: some programs print rounded ones.
pub(super) const ORDER_TOLERANCE: f64 = 1e-3;

/// Lines of a process are printed together if they arrive within this share of what their iterations took.
const MIN_SPAN: f64 = 0.9;

/// Seconds at which each line that ends at one of these positions had arrived; empty if not known of all lines.
pub(super) fn line_arrivals(ends: &[u64], arrivals: &[Arrival]) -> Vec<f64> {
    let arrival = |end: &u64| {
        let position = arrivals.partition_point(|arrival| arrival.bytes < *end);
        Some(arrivals.get(position)?.at_ns as f64 / 1e9)
    };
    ends.iter().map(arrival).collect::<Option<_>>().unwrap_or_default()
}

/// Times of a scenario's iterations that no iteration accounts for, in seconds.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// By the dialer's clock, from the end of an iteration to the opening of the next, without its connecting.
    pub(super) reported: Vec<f64>,
    /// By the harness's clock, from the line of an iteration to the line of the next, without the time that the next
    /// reports.
    pub(super) observed: Vec<f64>,
    /// What connecting took, of the iterations that did: it does not depend on their bytes.
    pub(super) connecting: Vec<f64>,
}

impl Gaps {
    pub(super) fn new(all: &[&ScenarioOutput]) -> Self {
        let mut gaps = Self::default();
        for scenario in all {
            let iterations = &scenario.output.iterations;
            let connects = connects(iterations);
            for (pair, connect) in iterations.windows(2).zip(connects.iter().skip(1)) {
                let gap = || Some(pair[1].t_open? - pair[0].t_last? - connect);
                gaps.reported.extend(gap());
            }
            gaps.connecting.extend(connects.iter().filter(|seconds| **seconds > 0.0));
            // A process that prints its lines together shows nothing by their arrival.
            let span =
                scenario.arrivals.first().zip(scenario.arrivals.last()).map_or(0.0, |(first, last)| last - first);
            let later = scenario.durations().iter().skip(1).sum::<f64>();
            if span < MIN_SPAN * later {
                continue;
            }
            let seen = scenario.arrivals.windows(2).zip(iterations.iter().zip(&connects).skip(1));
            gaps.observed.extend(seen.filter_map(|(arrivals, (iteration, connect))| {
                Some(arrivals[1] - arrivals[0] - iteration.duration()? - connect)
            }));
        }
        gaps
    }
}

/// Seconds that connecting took in each iteration after the one before it.
fn connects(iterations: &[Iteration]) -> Vec<f64> {
    let mut end: Option<f64> = None;
    let connect = |iteration: &Iteration| {
        let begin = end;
        end = iteration.t_last.or(end);
        let (dial, connected) = iteration.t_dial.zip(iteration.t_connect)?;
        begin.is_none_or(|begin| dial + ORDER_TOLERANCE >= begin).then_some(connected - dial)
    };
    iterations.iter().map(connect).map(Option::unwrap_or_default).collect()
}

impl ScenarioOutput {
    /// What its iterations account for, in seconds.
    pub(super) fn accounted(&self) -> f64 {
        self.durations().iter().sum::<f64>() + connects(&self.output.iterations).iter().sum::<f64>()
    }

    /// The part of its run time that no iteration accounts for, in seconds.
    pub(super) fn unaccounted(&self) -> f64 {
        self.elapsed - self.accounted()
    }
}

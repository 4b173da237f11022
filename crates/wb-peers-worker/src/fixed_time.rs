//! Transfers of a fixed time: what is left of one without its slow start, and its gates.

use wb_model::outcome::Gate;
use wb_model::{Quantity, pluralize};
use wb_peers::plausibility::format_time;
use wb_results::Scenario;
use wb_stats::{InitialTransient, MIN_SAMPLES_FOR_TRANSIENT, Samples, initial_transient};
use wb_test::Measurement;

use super::output::{Iteration, Progress};
use super::params::FixedTime;
use super::study::ScenarioOutput;
use super::timing::ORDER_TOLERANCE;

/// Share of the time by which a transfer may end early.
const EARLY_SHARE: f64 = 0.05;
/// Share by which an iteration may end late, or two clocks may differ, in addition to [`DELAY`].
const LATE_SHARE: f64 = 0.1;
/// Seconds that a busy machine may delay the end of a transfer, or the arrival of a line.
const DELAY: f64 = 0.25;
/// Lines that arrive within this share of the time between them were printed together.
const TOGETHER_SHARE: f64 = 0.1;
/// Seconds beside its iterations that a process may run which prints all lines at its end: it starts, connects and ends.
const PROCESS_OVERHEAD: f64 = 1.0;
/// Seconds by which the time of a report is rounded.
const CLOCK_RESOLUTION: f64 = 1e-6;
/// Share of the measured time that what is in flight at its end may take to arrive before this is notable.
const NOTABLE_FLIGHT: f64 = 0.1;

/// The part of a transfer that its figure is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SteadyPart {
    /// In bytes per second.
    pub(super) rate: f64,
    /// Seconds before it.
    pub(super) omitted: f64,
    pub(super) seconds: f64,
}

/// Why a transfer has no steady part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unsteady {
    /// The dialer reported too few intervals.
    FewIntervals(usize),
    /// Nothing is left behind what is to be cut off.
    NothingLeft,
    /// The rate still changes in what is left: bytes per second of its two halves.
    Unsettled { early: f64, late: f64 },
}

/// Bytes at a time of a transfer, in seconds since its start.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: f64,
    bytes: u64,
}

/// What was moved when, from the start of an iteration on; of reports of one time the first counts.
fn points(iteration: &Iteration, progress: &[Progress]) -> Vec<Point> {
    let mut points = vec![Point { at: 0.0, bytes: 0 }];
    let Some(open) = iteration.t_open else { return points };
    for report in progress.iter().filter(|report| report.i == iteration.i) {
        let point = Point { at: report.at - open, bytes: report.sent.saturating_add(report.received) };
        if points.last().is_none_or(|last| point.at > last.at) {
            points.push(point);
        }
    }
    points
}

fn rate(from: Point, to: Point) -> f64 {
    (to.bytes as f64 - from.bytes as f64) / (to.at - from.at)
}

impl SteadyPart {
    pub(super) fn new(time: &FixedTime, iteration: &Iteration, progress: &[Progress]) -> Result<Self, Unsteady> {
        let points = points(iteration, progress);
        let from = match time.omit {
            Some(omit) => omit.seconds(),
            None => transient_seconds(&points)?,
        };
        let from = points.iter().position(|point| point.at + CLOCK_RESOLUTION >= from);
        let bounds = from.and_then(|from| Some((*points.get(from)?, *points.last()?)));
        let (from, to) = bounds.filter(|(from, to)| from.at < to.at).ok_or(Unsteady::NothingLeft)?;
        Ok(Self { rate: rate(from, to), omitted: from.at, seconds: to.at - from.at })
    }
}

fn transient_seconds(points: &[Point]) -> Result<f64, Unsteady> {
    let intervals = points.len() - 1;
    let step = points[intervals].at / intervals as f64;
    let rates = even_rates(points, step);
    let transient = Samples::new(&rates).ok().and_then(|rates| initial_transient(&rates));
    match transient.ok_or(Unsteady::FewIntervals(intervals))? {
        InitialTransient::Over { samples } => Ok(samples as f64 * step),
        InitialTransient::Unsettled { early, late } => Err(Unsteady::Unsettled { early, late }),
    }
}

/// The rates of as many intervals as were reported, all of the same length: on a busy machine reports are late.
fn even_rates(points: &[Point], step: f64) -> Vec<f64> {
    let bytes = |number: usize| {
        let position = number as f64 * step;
        let next = points.partition_point(|point| point.at < position).clamp(1, points.len() - 1);
        let from = points[next - 1];
        from.bytes as f64 + rate(from, points[next]) * (position - from.at)
    };
    (1..points.len()).map(|number| (bytes(number) - bytes(number - 1)) / step).collect()
}

/// Seconds cut off a transfer; none if it has no fixed time or no steady part.
pub(super) fn omitted(scenario: &ScenarioOutput) -> Option<f64> {
    let part =
        SteadyPart::new(&scenario.run.fixed_time()?, scenario.output.iterations.first()?, &scenario.output.progress);
    Some(part.ok()?.omitted)
}

/// Checks a transfer of a fixed time: its direction, its reports, its end by two clocks, and that it became steady.
pub(super) fn check_fixed_time(measurement: &mut Measurement, scenario: &ScenarioOutput) {
    let Some(time) = scenario.run.fixed_time() else { return };
    for iteration in &scenario.output.iterations {
        let reports: Vec<Progress> =
            scenario.output.progress.iter().filter(|report| report.i == iteration.i).copied().collect();
        check_direction(measurement, scenario, iteration);
        check_reports(measurement, scenario, iteration, &reports);
        check_end(measurement, scenario, &time, iteration, &reports);
        check_clocks(measurement, scenario, &reports);
        check_steadiness(measurement, scenario, &time, iteration);
    }
}

fn check_direction(measurement: &mut Measurement, scenario: &ScenarioOutput, iteration: &Iteration) {
    let Iteration { i, sent, received, .. } = *iteration;
    let (moved, other) = match scenario.run.scenario {
        Scenario::Upload => (sent, received),
        _ => (received, sent),
    };
    measurement.require(moved > 0 && other == 0, Gate::Work, || {
        let [sent, received] = [sent, received].map(|bytes| Quantity { value: bytes as f64, unit: "B" });
        format!("{}, iteration {i}: {sent} sent and {received} received, expected one direction alone", scenario.name)
    });
}

/// Checks that what was moved is reported in order, within the iteration.
fn check_reports(
    measurement: &mut Measurement,
    scenario: &ScenarioOutput,
    iteration: &Iteration,
    reports: &[Progress],
) {
    let Iteration { i, sent, received, t_open, t_last, .. } = *iteration;
    let name = &scenario.name;
    measurement.require(!reports.is_empty(), Gate::Output, || {
        let reason =
            scenario.output.invalid_line.as_ref().map(|(line, reason)| format!("; invalid line {line}: {reason}"));
        format!("{name}, iteration {i}: no lines with `at` while it ran{}", reason.unwrap_or_default())
    });
    let first = Progress { i, at: t_open.unwrap_or_default(), sent: 0, received: 0 };
    let last = Progress { i, at: t_last.unwrap_or(f64::INFINITY), sent, received };
    let all: Vec<Progress> = [first].into_iter().chain(reports.iter().copied()).chain([last]).collect();
    let wrong = all.windows(2).find(|pair| {
        let [earlier, later] = [pair[0], pair[1]];
        let is_later = earlier.at <= later.at + ORDER_TOLERANCE && later.at.is_finite();
        !is_later || earlier.sent > later.sent || earlier.received > later.received
    });
    measurement.require(wrong.is_none(), Gate::Output, || {
        let describe = |report: &Progress| {
            format!("{} B sent and {} B received at {:.6} s", report.sent, report.received, report.at)
        };
        let [early, late] = [0, 1].map(|index| wrong.map(|pair| describe(&pair[index])).unwrap_or_default());
        format!("{name}, iteration {i}: {early}, then {late}")
    });
}

fn check_end(
    measurement: &mut Measurement,
    scenario: &ScenarioOutput,
    time: &FixedTime,
    iteration: &Iteration,
    reports: &[Progress],
) {
    let (Some(open), Some(last)) = (iteration.t_open, reports.last()) else { return };
    let (seconds, requested) = (last.at - open, time.duration.seconds());
    let possible = requested * (1.0 - EARLY_SHARE)..=requested * (1.0 + LATE_SHARE) + DELAY;
    measurement.require(possible.contains(&seconds), Gate::Work, || {
        let when = if seconds < requested { "early" } else { "late" };
        format!(
            "{}, iteration {}: ended too {when}, after {}, expected {}",
            scenario.name,
            iteration.i,
            format_time(seconds),
            time.duration
        )
    });
}

/// Compares the reported times with the arrival of their lines, or where these are printed together, with the run time
/// of the process.
fn check_clocks(measurement: &mut Measurement, scenario: &ScenarioOutput, reports: &[Progress]) {
    let (Some(first), Some(last)) = (reports.first(), reports.last()) else { return };
    let reported = last.at - first.at;
    let arrived = scenario
        .progress_arrivals
        .first()
        .zip(scenario.progress_arrivals.last())
        .map_or(0.0, |(first, last)| last - first);
    if arrived > TOGETHER_SHARE * reported {
        let allowed = LATE_SHARE * reported + DELAY;
        measurement.require((arrived - reported).abs() <= allowed, Gate::Plausibility, || {
            format!(
                "{}: reports of {} arrived within {}: times in another unit, divided, or made up",
                scenario.name,
                format_time(reported),
                format_time(arrived)
            )
        });
        return;
    }
    let accounted = scenario.accounted();
    let allowed = LATE_SHARE * accounted + PROCESS_OVERHEAD;
    measurement.require(scenario.unaccounted() <= allowed, Gate::Plausibility, || {
        format!(
            "{}: a transfer of {} in a process that ran {}: times in another unit, divided, or made up",
            scenario.name,
            format_time(accounted),
            format_time(scenario.elapsed)
        )
    });
}

/// Checks that the transfer became steady, and notes how much of an upload was only in flight at its end.
fn check_steadiness(measurement: &mut Measurement, scenario: &ScenarioOutput, time: &FixedTime, iteration: &Iteration) {
    let name = &scenario.name;
    let per_second = |value: f64| Quantity { value, unit: "B/s" };
    match SteadyPart::new(time, iteration, &scenario.output.progress) {
        Ok(part) => {
            let end = part.omitted + part.seconds;
            let flight = iteration.duration().map_or(0.0, |duration| duration - end);
            if flight > NOTABLE_FLIGHT * part.seconds {
                measurement.findings.push(format!(
                    "{name}: what was in flight when the time was over took {} to arrive: the rate is that at which buffers \
                     took it, for {}",
                    format_time(flight),
                    format_time(part.seconds)
                ));
            }
        }
        Err(Unsteady::FewIntervals(count)) => measurement.reject(
            Gate::Output,
            format!(
                "{name}: {} reported, and its start shows from {MIN_SAMPLES_FOR_TRANSIENT} on: a longer `duration`, or \
                 `omit` for a fixed part",
                pluralize(count, "interval")
            ),
        ),
        Err(Unsteady::NothingLeft) => {
            measurement.reject(Gate::Work, format!("{name}: nothing reported after the part that is cut off"));
        }
        Err(Unsteady::Unsettled { early, late }) => measurement.reject(
            Gate::Plausibility,
            format!(
                "{name}: not steady within half of {}: without its start still {} in the first half of the rest, and {} in \
                 the second; a longer `duration`, or `omit` for a fixed part",
                time.duration,
                per_second(early),
                per_second(late),
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wb_model::{Nanos, Validity};

    use super::*;
    use crate::output::EndpointOutput;
    use crate::params::PeersParams;
    use crate::traffic::{InterfaceBytes, Traffic};

    const SECONDS: f64 = 2.0;
    const REPORTS: u64 = 200;
    /// When the iteration begins by the clock of the dialer.
    const OPEN: f64 = 0.25;

    fn time(omit: Option<f64>) -> FixedTime {
        FixedTime { duration: Nanos::from_seconds(SECONDS), omit: omit.map(Nanos::from_seconds) }
    }

    /// An upload of which so many bytes had been sent after a share of the time.
    fn upload(sent: impl Fn(f64) -> f64) -> ScenarioOutput {
        let params = PeersParams { duration: Some(Nanos::from_seconds(SECONDS)), ..PeersParams::default() };
        let report = |number: u64| {
            let share = number as f64 / REPORTS as f64;
            Progress { i: 0, at: OPEN + share * SECONDS, sent: sent(share) as u64, received: 0 }
        };
        let progress: Vec<Progress> = (1..=REPORTS).map(report).collect();
        let last = progress[progress.len() - 1];
        let iteration = Iteration {
            i: 0,
            sent: last.sent,
            received: 0,
            t_dial: Some(0.1),
            t_connect: Some(0.2),
            t_open: Some(OPEN),
            t_first: None,
            t_last: Some(last.at + 0.01),
            error: None,
        };
        let zero = InterfaceBytes::default();
        ScenarioOutput {
            name: "upload".to_owned(),
            run: params.scenarios().remove(0),
            arrivals: vec![last.at + 0.02],
            progress_arrivals: progress.iter().map(|report| report.at + 0.005).collect(),
            output: EndpointOutput { iterations: vec![iteration], progress, ..EndpointOutput::default() },
            traffic: Traffic { before: zero, after: zero, is_loopback: false },
            elapsed: last.at + 0.1,
        }
    }

    fn steady() -> ScenarioOutput {
        upload(|share| share * 1e9)
    }

    fn failed(change: impl FnOnce(&mut ScenarioOutput)) -> (Gate, String) {
        let mut scenario = steady();
        change(&mut scenario);
        let mut measurement = Measurement::default();
        check_fixed_time(&mut measurement, &scenario);
        match measurement.validity {
            Validity::Invalid { gate, figures } => (gate, figures),
            Validity::Valid => panic!("valid"),
        }
    }

    fn part(scenario: &ScenarioOutput, omit: Option<f64>) -> Result<SteadyPart, Unsteady> {
        SteadyPart::new(&time(omit), &scenario.output.iterations[0], &scenario.output.progress)
    }

    #[test]
    fn a_steady_transfer_is_valid_and_has_the_rate_of_all_of_it() {
        let mut measurement = Measurement::default();
        check_fixed_time(&mut measurement, &steady());
        assert_eq!((measurement.validity, measurement.findings), (Validity::Valid, Vec::new()));
        let found = part(&steady(), None).unwrap();
        assert!((found.rate / 0.5e9 - 1.0).abs() < 1e-6 && found.omitted < 0.1, "{found:?}");
    }

    #[test]
    fn a_burst_into_buffers_is_cut_off() {
        let burst = upload(|share| share * 1e9 + 1e9 * f64::min(share / 0.02, 1.0));
        let found = part(&burst, None).unwrap();
        assert!((found.rate / 0.5e9 - 1.0).abs() < 1e-6, "{found:?}");
        assert!((0.02 * SECONDS..0.1 * SECONDS).contains(&found.omitted), "{found:?}");
        // Whatever is asked for is done.
        let whole = part(&burst, Some(0.0)).unwrap();
        assert!((whole.rate / 1e9 - 1.0).abs() < 1e-6 && whole.omitted == 0.0, "{whole:?}");
        let given = part(&burst, Some(1.005)).unwrap();
        assert!((1.0..1.02).contains(&given.omitted), "{given:?}");
        let almost = part(&burst, Some(1.0005)).unwrap();
        assert!((1.0005..1.02).contains(&almost.omitted), "{almost:?}");
        assert_eq!(part(&burst, Some(SECONDS)), Err(Unsteady::NothingLeft));
    }

    #[test]
    fn a_transfer_that_is_never_steady_has_no_figure() {
        let ramp = upload(|share| share * share * 1e9);
        assert!(matches!(part(&ramp, None), Err(Unsteady::Unsettled { .. })));
        assert!(part(&ramp, Some(1.0)).is_ok());
    }

    #[test]
    fn few_reports_do_not_show_the_start() {
        let (gate, figures) = failed(|scenario| {
            scenario.output.progress = scenario.output.progress.iter().skip(3).step_by(4).copied().collect();
            scenario.progress_arrivals = scenario.progress_arrivals.iter().skip(3).step_by(4).copied().collect();
        });
        assert_eq!(gate, Gate::Output);
        assert!(figures.starts_with("upload: 50 intervals reported"), "{figures}");
    }

    #[test]
    fn an_end_that_was_not_requested_is_found() {
        let (gate, figures) = failed(|scenario| scenario.output.progress.truncate(100));
        assert_eq!(
            (gate, figures.as_str()),
            (Gate::Work, "upload, iteration 0: ended too early, after 1 s, expected 2s")
        );
        let (gate, figures) = failed(|scenario| {
            let last = Progress { at: OPEN + 3.0, ..scenario.output.progress[199] };
            scenario.output.progress.push(last);
            scenario.output.iterations[0].t_last = Some(OPEN + 3.0);
        });
        assert_eq!(
            (gate, figures.as_str()),
            (Gate::Work, "upload, iteration 0: ended too late, after 3 s, expected 2s")
        );
    }

    #[test]
    fn reports_out_of_order_are_found() {
        let (gate, figures) = failed(|scenario| scenario.output.progress[50].sent = 0);
        assert_eq!(gate, Gate::Output);
        assert!(figures.contains("then 0 B sent"), "{figures}");
        let (gate, _) = failed(|scenario| scenario.output.progress[50].at = 0.0);
        assert_eq!(gate, Gate::Output);
        let (gate, figures) = failed(|scenario| scenario.output.iterations[0].sent = 1);
        assert_eq!(gate, Gate::Output);
        assert!(figures.contains("then 1 B sent"), "{figures}");
        let (gate, figures) = failed(|scenario| scenario.output.progress.clear());
        assert_eq!((gate, figures.as_str()), (Gate::Output, "upload, iteration 0: no lines with `at` while it ran"));
    }

    #[test]
    fn times_of_another_clock_are_found_however_they_are_printed() {
        let (gate, figures) =
            failed(|scenario| scenario.progress_arrivals.iter_mut().for_each(|position| *position *= 2.0));
        assert_eq!(gate, Gate::Plausibility);
        assert!(figures.starts_with("upload: reports of 1.99 s arrived within 3.98 s"), "{figures}");
        let (gate, _) = failed(|scenario| scenario.progress_arrivals.iter_mut().for_each(|position| *position /= 2.0));
        assert_eq!(gate, Gate::Plausibility);
        let together = |scenario: &mut ScenarioOutput| scenario.progress_arrivals.fill(5.0);
        let (gate, figures) = failed(|scenario| {
            together(scenario);
            scenario.elapsed = 4.5;
        });
        assert_eq!(gate, Gate::Plausibility);
        assert!(figures.contains("in a process that ran 4.50 s"), "{figures}");
        let mut scenario = steady();
        together(&mut scenario);
        let mut measurement = Measurement::default();
        check_fixed_time(&mut measurement, &scenario);
        assert_eq!(measurement.validity, Validity::Valid);
    }

    #[test]
    fn the_other_direction_is_found() {
        let (gate, figures) = failed(|scenario| scenario.output.iterations[0].received = 7);
        assert_eq!(gate, Gate::Work);
        assert!(figures.ends_with("7 B received, expected one direction alone"), "{figures}");
    }

    #[test]
    fn what_buffers_took_is_noted() {
        let mut scenario = steady();
        scenario.output.iterations[0].t_last = Some(OPEN + SECONDS + 0.5);
        let mut measurement = Measurement::default();
        check_fixed_time(&mut measurement, &scenario);
        assert!(measurement.findings[0].contains("in flight"), "{:?}", measurement.findings);
    }

    proptest! {
        #[test]
        fn no_reports_panic(
            reports in prop::collection::vec((any::<f64>(), any::<u64>(), any::<u64>()), 0..300), open in any::<f64>(),
        ) {
            let mut scenario = steady();
            scenario.output.iterations[0].t_open = Some(open);
            scenario.output.progress =
                reports.into_iter().map(|(at, sent, received)| Progress { i: 0, at, sent, received }).collect();
            check_fixed_time(&mut Measurement::default(), &scenario);
            let _ = part(&scenario, Some(0.5));
        }
    }
}

//! Gates of a sample: reports of the endpoints against each other, the kernel, and the raw ceiling.

use std::collections::BTreeMap;

use wb_model::outcome::Gate;
use wb_model::{Quantity, pluralize};
use wb_net::ceiling::Ceiling;
use wb_peers::{FigureCheck, Payload};
use wb_results::Scenario;
use wb_test::Measurement;

use super::cell::PeersCell;
use super::output::{EndpointOutput, Iteration};
use super::params::{Amount, ScenarioRun};
use super::study::ScenarioOutput;
use super::timing::ORDER_TOLERANCE;
use super::traffic::Traffic;

/// A rate may be this many times the best raw rate beside it, as both vary. The factor is divided by
/// [`Ceiling::steadiness`], up to [`MAX_CEILING_MARGIN`]: on a busy machine, the best raw rate is too low as well.
const CEILING_MARGIN: f64 = 1.5;
const MAX_CEILING_MARGIN: f64 = 5.0;
/// A round trip takes at least this share of the shortest raw one, as both vary.
const ROUND_TRIP_MARGIN: f64 = 0.8;
/// Durations in total may exceed the run time of their process by this factor.
const CLOCK_MARGIN: f64 = 1.01;
/// Bytes per second that no transfer reaches, even in memory: only figures in a wrong unit, or made up, exceed it.
const MAX_RATE: f64 = 500e9;

/// The share of inexact counts that the kernel has to confirm: data in flight is dropped at the end of a transfer.
const INEXACT_SHARE: f64 = 0.5;

fn bytes(bytes: u64) -> Quantity<'static> {
    Quantity { value: bytes as f64, unit: "B" }
}

/// Checks that both sides negotiated what the cell requires, and that listener and dialers counted the same.
pub(super) fn check_endpoints(
    measurement: &mut Measurement,
    cell: &PeersCell,
    all: &[ScenarioOutput],
    listener: &EndpointOutput,
) {
    for scenario in all {
        check_negotiated(
            measurement,
            cell,
            &format!("dialer `{}` ({})", cell.dialer, scenario.name),
            &scenario.output.negotiated,
        );
    }
    check_negotiated(measurement, cell, &format!("listener `{}`", cell.listener), &listener.negotiated);
    let error = listener.served.iter().find_map(|served| served.error.as_deref());
    measurement
        .require(error.is_none(), Gate::Work, || format!("the listener reported: {}", error.unwrap_or_default()));
    if cell.has_listener_counts {
        check_counts(measurement, all, listener);
    } else {
        measurement
            .findings
            .push(format!("the counts of the listener `{}` are not exact, and not compared", cell.listener));
    }
}

/// Checks that the listener counted as many bytes in total as the dialers. The listener may count one iteration as
/// several streams.
fn check_counts(measurement: &mut Measurement, all: &[ScenarioOutput], listener: &EndpointOutput) {
    let dialed = || all.iter().flat_map(|scenario| &scenario.output.iterations);
    let sent = sum(dialed().map(|iteration| iteration.sent));
    let received = sum(dialed().map(|iteration| iteration.received));
    let arrived = sum(listener.served.iter().map(|served| served.received));
    let answered = sum(listener.served.iter().map(|served| served.sent));
    // A download of a fixed time ends when the dialer closes it, and what is in flight then is lost.
    let may_lose =
        all.iter().any(|scenario| scenario.run.fixed_time().is_some() && scenario.run.scenario == Scenario::Download);
    let is_answer_complete = if may_lose { answered >= received } else { answered == received };
    measurement.require(arrived == sent && is_answer_complete, Gate::Work, || {
        let streams = pluralize(listener.served.len(), "stream");
        format!(
            "the listener reported {} received and {} sent in {streams}, the dialers {} sent and {} received",
            bytes(arrived),
            bytes(answered),
            bytes(sent),
            bytes(received)
        )
    });
}

/// Adds counts of an endpoint, which may be any numbers.
pub(super) fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

fn check_negotiated(
    measurement: &mut Measurement,
    cell: &PeersCell,
    side: &str,
    connections: &[BTreeMap<String, String>],
) {
    measurement.require(!connections.is_empty(), Gate::Work, || format!("{side}: nothing reported as negotiated"));
    for negotiated in connections {
        let foreign = negotiated.iter().find(|(axis, _)| !cell.values.contains_key(*axis));
        measurement.require(foreign.is_none(), Gate::Work, || {
            let (axis, value) = foreign.map(|(axis, value)| (axis.as_str(), value.as_str())).unwrap_or_default();
            format!("{side}: {axis} `{value}` was negotiated, which the cell does not have")
        });
        for (axis, value) in &cell.values {
            let actual = negotiated.get(axis);
            measurement.require(actual == Some(value), Gate::Work, || match actual {
                Some(actual) => format!("{side}: {axis} `{actual}` was negotiated instead of `{value}`"),
                None => format!("{side}: no {axis} was reported as negotiated, expected `{value}`"),
            });
        }
    }
}

/// Checks that each iteration transferred the requested bytes, and that its times are possible.
pub(super) fn check_iterations(measurement: &mut Measurement, scenario: &ScenarioOutput) {
    let ScenarioOutput { name, run, output, elapsed, .. } = scenario;
    let count = output.iterations.len();
    let is_complete = output.iterations.iter().map(|iteration| iteration.i).eq(0..u64::from(run.iterations));
    measurement.require(is_complete, Gate::Work, || {
        let misplaced = (0..).zip(&output.iterations).find(|(index, iteration)| iteration.i != *index);
        let detail = match (&output.invalid_line, misplaced) {
            (Some((line, reason)), _) => format!("; invalid line {line}: {reason}"),
            (None, Some((index, iteration))) => format!("; iteration {index} was reported as {}", iteration.i),
            (None, None) => String::new(),
        };
        format!("{name}: {count} of {} iterations were reported{detail}", run.iterations)
    });
    for iteration in &output.iterations {
        let i = iteration.i;
        if let Amount::Bytes { send, receive } = run.amount {
            measurement.require((iteration.sent, iteration.received) == (send, receive), Gate::Work, || {
                format!(
                    "{name}, iteration {i}: {} sent and {} received, expected {} and {}",
                    bytes(iteration.sent),
                    bytes(iteration.received),
                    bytes(send),
                    bytes(receive)
                )
            });
        }
        let is_positive = iteration.duration().is_some_and(|seconds| seconds > 0.0 && seconds.is_finite());
        measurement.require(is_positive, Gate::Output, || format!("{name}, iteration {i}: no time from open to end"));
    }
    // Before the order: the first failure is what is reported, and times in another unit are often out of order, too.
    check_durations(measurement, name, scenario.durations().iter().sum(), *elapsed);
    check_order(measurement, name, &output.iterations);
}

/// Checks that the times of each iteration are in order, and that iterations follow each other.
fn check_order(measurement: &mut Measurement, name: &str, iterations: &[Iteration]) {
    let mut end: Option<f64> = None;
    for iteration in iterations {
        let Iteration { i, t_dial, t_connect, t_open, t_first, t_last, .. } = iteration;
        let named = [
            ("t_dial", t_dial),
            ("t_connect", t_connect),
            ("t_open", t_open),
            ("t_first", t_first),
            ("t_last", t_last),
        ];
        let known: Vec<(&str, f64)> = named.into_iter().filter_map(|(name, time)| Some((name, (*time)?))).collect();
        let wrong = known.windows(2).find(|pair| pair[0].1 > pair[1].1 + ORDER_TOLERANCE);
        measurement.require(wrong.is_none(), Gate::Output, || {
            let [(early, early_time), (late, late_time)] =
                wrong.and_then(|pair| pair.try_into().ok()).unwrap_or_default();
            format!("{name}, iteration {i}: {early} is {early_time:.6} s, after {late} at {late_time:.6} s")
        });
        let overlap = end.zip(*t_open).filter(|(end, open)| *open + ORDER_TOLERANCE < *end);
        measurement.require(overlap.is_none(), Gate::Output, || {
            let (end, open) = overlap.unwrap_or_default();
            format!("{name}, iteration {i}: opened at {open:.6} s, before the one before it ended at {end:.6} s")
        });
        end = t_last.or(end);
    }
}

/// Checks that iterations did not take longer in total than their process, both in seconds.
pub(super) fn check_durations(measurement: &mut Measurement, name: &str, total: f64, elapsed: f64) {
    measurement.require(total <= elapsed * CLOCK_MARGIN, Gate::Plausibility, || {
        format!(
            "{name}: iterations of {total:.3} s in total in a process that ran {elapsed:.3} s: times in another unit, or \
             made up"
        )
    });
}

/// Checks that the kernel counted at least the bytes that the dialer reports, as both sides may lie alike. Where counts
/// are not exact, a part of them is enough.
pub(super) fn check_traffic(measurement: &mut Measurement, cell: &PeersCell, scenario: &ScenarioOutput) {
    let ScenarioOutput { name, output, traffic, .. } = scenario;
    let share = if cell.has_listener_counts { 1.0 } else { INEXACT_SHARE };
    let required = |bytes: u64| (bytes as f64 * share) as u64;
    let sent = required(sum(output.iterations.iter().map(|iteration| iteration.sent)));
    let received = required(sum(output.iterations.iter().map(|iteration| iteration.received)));
    check_total_traffic(measurement, cell, name, sent, received, traffic);
}

/// Checks that the kernel counted at least these bytes.
pub(super) fn check_total_traffic(
    measurement: &mut Measurement,
    cell: &PeersCell,
    name: &str,
    sent: u64,
    received: u64,
    traffic: &Traffic,
) {
    if cell.payload != Payload::Wire {
        return;
    }
    let both = sent.saturating_add(received);
    let directions = if traffic.is_loopback {
        vec![("sent and received", both, traffic.sent().min(traffic.received()))]
    } else {
        vec![("sent", sent, traffic.sent()), ("received", received, traffic.received())]
    };
    for (direction, reported, counted) in directions {
        measurement.require(reported <= counted, Gate::Work, || {
            let (reported, counted) = (bytes(reported), bytes(counted));
            format!(
                "{name}: {reported} reported as {direction}, but the interfaces of the dialer's host counted {counted}"
            )
        });
    }
}

/// Checks rates against [`max_rate`], and round trips against raw ones. One that stays within the host need not be slower
/// than TCP.
pub(super) fn check_ceiling(
    measurement: &mut Measurement,
    cell: &PeersCell,
    scenario: &ScenarioOutput,
    ceiling: &Ceiling,
) {
    if scenario.run.scenario.is_rate() {
        check_rate(measurement, cell, &scenario.name, raw_rate(&scenario.run, ceiling), &scenario.rates(), ceiling)
    } else if cell.payload != Payload::Local {
        check_round_trip(measurement, &scenario.name, &scenario.durations(), ceiling)
    }
}

/// Bytes per second that a raw connection reached with the bytes of a scenario. Both directions may be used at the same
/// time.
pub(super) fn raw_rate(run: &ScenarioRun, ceiling: &Ceiling) -> f64 {
    match (run.amount, &run.scenario) {
        (Amount::Bytes { send, receive }, _) => {
            let seconds = f64::max(send as f64 / ceiling.upload, receive as f64 / ceiling.download);
            run.bytes() as f64 / seconds
        }
        (Amount::Time(_), Scenario::Upload) => ceiling.upload,
        (Amount::Time(_), _) => ceiling.download,
    }
}

/// Bytes per second that a transfer of a cell cannot exceed: the rate of a raw connection with a margin or, for a
/// payload that does not cross it, the rate of memory.
pub(super) fn max_rate(cell: &PeersCell, raw_rate: f64, ceiling: &Ceiling) -> f64 {
    match cell.payload {
        Payload::Wire => raw_rate * (CEILING_MARGIN / ceiling.steadiness).clamp(CEILING_MARGIN, MAX_CEILING_MARGIN),
        Payload::Transformed | Payload::Local => MAX_RATE,
    }
}

/// Checks that no rate exceeds what is possible; all in bytes per second.
pub(super) fn check_rate(
    measurement: &mut Measurement,
    cell: &PeersCell,
    name: &str,
    raw_rate: f64,
    rates: &[f64],
    ceiling: &Ceiling,
) {
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    let max_rate = max_rate(cell, raw_rate, ceiling);
    measurement.require(fastest <= max_rate, Gate::Plausibility, || {
        let [fastest, raw, max] = [fastest, raw_rate, max_rate].map(|value| Quantity { value, unit: "B/s" });
        match cell.payload {
            Payload::Wire => format!("{name}: {fastest}, but a raw TCP connection between the same CPUs reached {raw}"),
            Payload::Transformed | Payload::Local => format!("{name}: {fastest}, but no program exceeds {max}"),
        }
    });
}

/// Checks that no round trip, in seconds, is shorter than the shortest of a raw connection.
pub(super) fn check_round_trip(measurement: &mut Measurement, name: &str, durations: &[f64], ceiling: &Ceiling) {
    let shortest = durations.iter().copied().fold(f64::INFINITY, f64::min);
    measurement.require(shortest >= ceiling.min_round_trip * ROUND_TRIP_MARGIN, Gate::Plausibility, || {
        let [shortest, raw] = [shortest, ceiling.min_round_trip].map(|seconds| seconds * 1e6);
        format!("{name}: a round trip of {shortest:.1} µs, but the shortest of a raw TCP connection took {raw:.1} µs")
    });
}

pub(super) fn check_bounds(measurement: &mut Measurement, checks: &[FigureCheck]) {
    for check in checks {
        let value = measurement.values.get(&check.metric).copied();
        let is_allowed = value.is_some_and(|value| check.allows(value));
        measurement.require(is_allowed, check.gate, || {
            let bound = |bound: Option<f64>, word: &str| bound.map(|bound| format!("at {word} {bound}"));
            let bounds = [bound(check.min, "least"), bound(check.max, "most")];
            let bounds = bounds.into_iter().flatten().collect::<Vec<_>>().join(" and ");
            match value {
                Some(value) => format!("{}: {value}, expected {bounds}", check.metric),
                None => format!("{}: no such figure, expected {bounds}", check.metric),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wb_model::Validity;

    use super::*;
    use crate::findings::add_findings;
    use crate::output::Served;
    use crate::params::PeersParams;
    use crate::traffic::InterfaceBytes;

    const CEILING: Ceiling =
        Ceiling { upload: 4e9, download: 4e9, min_round_trip: 10e-6, median_round_trip: 15e-6, steadiness: 1.0 };

    /// Four uploads of 16 MiB at 1 GB/s.
    fn upload() -> ScenarioOutput {
        let params = PeersParams { iterations: 4, upload_bytes: wb_model::Bytes(16 << 20), ..PeersParams::default() };
        let run = params.scenarios().remove(0);
        let seconds = run.bytes() as f64 / 1e9;
        let iteration = |i: u64| Iteration {
            i,
            sent: run.bytes(),
            received: 0,
            t_dial: Some(0.0),
            t_connect: Some(0.001),
            t_open: Some(i as f64),
            t_first: None,
            t_last: Some(i as f64 + seconds),
            error: None,
        };
        let all = run.bytes() * u64::from(run.iterations);
        let after = InterfaceBytes { received: all + 1000, sent: all + 1000 };
        ScenarioOutput {
            name: "upload".to_owned(),
            output: EndpointOutput {
                iterations: (0..u64::from(run.iterations)).map(iteration).collect(),
                ..EndpointOutput::default()
            },
            traffic: Traffic { before: InterfaceBytes::default(), after, is_loopback: false },
            arrivals: Vec::new(),
            progress_arrivals: Vec::new(),
            elapsed: 5.1,
            run,
        }
    }

    fn check(scenario: &ScenarioOutput) -> Validity {
        let mut measurement = Measurement::default();
        let cell = PeersCell::new(Arc::default(), &wb_model::Params::new()).unwrap();
        check_iterations(&mut measurement, scenario);
        check_traffic(&mut measurement, &cell, scenario);
        check_ceiling(&mut measurement, &cell, scenario, &CEILING);
        measurement.validity
    }

    fn failed(change: impl FnOnce(&mut ScenarioOutput)) -> (Gate, String) {
        let mut scenario = upload();
        change(&mut scenario);
        match check(&scenario) {
            Validity::Invalid { gate, figures } => (gate, figures),
            Validity::Valid => panic!("valid"),
        }
    }

    #[test]
    fn a_correct_scenario_is_valid() {
        assert_eq!(check(&upload()), Validity::Valid);
    }

    #[test]
    fn bytes_that_were_not_transferred_are_found() {
        let (gate, figures) = failed(|scenario| scenario.output.iterations[2].sent = 1_600_000);
        assert_eq!(gate, Gate::Work);
        assert!(
            figures.starts_with("upload, iteration 2: 1.53 MiB sent and 0 B received, expected 16 MiB"),
            "{figures}"
        );
        let (gate, figures) = failed(|scenario| scenario.output.iterations.truncate(3));
        assert_eq!((gate, figures.as_str()), (Gate::Work, "upload: 3 of 4 iterations were reported"));
    }

    fn check_listener(scenario: ScenarioOutput, served: Vec<Served>, are_counts_exact: bool) -> Validity {
        let mut cell = PeersCell::new(Arc::default(), &wb_model::Params::new()).unwrap();
        cell.has_listener_counts = are_counts_exact;
        let negotiated = vec![BTreeMap::new()];
        let listener = EndpointOutput { negotiated: negotiated.clone(), served, ..EndpointOutput::default() };
        let scenario = ScenarioOutput { output: EndpointOutput { negotiated, ..scenario.output }, ..scenario };
        let mut measurement = Measurement::default();
        check_endpoints(&mut measurement, &cell, &[scenario], &listener);
        measurement.validity
    }

    #[test]
    fn errors_of_a_listener_count_whether_its_counts_are_exact_or_not() {
        let received = 4 * upload().run.bytes();
        for are_counts_exact in [true, false] {
            let served = |error: Option<&str>| vec![Served { received, sent: 0, error: error.map(str::to_owned) }];
            assert_eq!(check_listener(upload(), served(None), are_counts_exact), Validity::Valid);
            let checked = check_listener(upload(), served(Some("the stream was reset")), are_counts_exact);
            let Validity::Invalid { gate: Gate::Work, figures } = checked else { panic!("{are_counts_exact}") };
            assert_eq!(figures, "the listener reported: the stream was reset");
        }
    }

    // Two iterations with `(size_t) -1` bytes overflowed their sum.
    #[test]
    fn counts_of_any_size_are_compared() {
        let mut scenario = upload();
        for iteration in &mut scenario.output.iterations {
            (iteration.sent, iteration.received) = (u64::MAX, u64::MAX);
        }
        assert!(matches!(check(&scenario), Validity::Invalid { gate: Gate::Work, .. }));
        let cell = PeersCell::new(Arc::default(), &wb_model::Params::new()).unwrap();
        add_findings(&mut Measurement::default(), &cell, &[&scenario], &CEILING);
        let served = vec![Served { received: 1, sent: u64::MAX, error: None }; 2];
        assert!(matches!(check_listener(scenario, served, true), Validity::Invalid { gate: Gate::Work, .. }));
    }

    #[test]
    fn times_out_of_order_are_found() {
        let (gate, figures) = failed(|scenario| scenario.output.iterations[1].t_connect = Some(7.0));
        assert_eq!(
            (gate, figures.as_str()),
            (Gate::Output, "upload, iteration 1: t_connect is 7.000000 s, after t_open at 1.000000 s")
        );
        let (gate, figures) = failed(|scenario| scenario.output.iterations[2].t_open = Some(0.5));
        assert_eq!(gate, Gate::Output);
        assert!(figures.contains("before the one before it ended at"), "{figures}");
        let (gate, figures) = failed(|scenario| scenario.output.iterations[2].i = 7);
        assert_eq!(
            (gate, figures.as_str()),
            (Gate::Work, "upload: 4 of 4 iterations were reported; iteration 2 was reported as 7")
        );
    }

    #[test]
    fn both_sides_lying_alike_are_found_by_the_counters_of_the_interfaces() {
        let (gate, figures) = failed(|scenario| scenario.traffic.after.sent = 5000);
        assert_eq!(gate, Gate::Work);
        assert!(figures.contains("reported as sent, but the interfaces of the dialer's host counted"), "{figures}");
    }

    #[test]
    fn on_one_host_the_bytes_of_both_directions_cross_the_same_interface() {
        let cell = PeersCell::new(Arc::default(), &wb_model::Params::new()).unwrap();
        let traffic = |bytes: u64| Traffic {
            before: InterfaceBytes::default(),
            after: InterfaceBytes { received: bytes, sent: bytes },
            is_loopback: true,
        };
        let check = |bytes: u64| {
            let mut measurement = Measurement::default();
            check_total_traffic(&mut measurement, &cell, "both", 100, 100, &traffic(bytes));
            measurement.validity
        };
        // What was uploaded must not be taken for what was to be downloaded.
        assert!(matches!(check(150), Validity::Invalid { gate: Gate::Work, .. }));
        assert_eq!(check(200), Validity::Valid);
    }

    #[test]
    fn times_in_another_unit_are_found_in_either_direction() {
        let scale = |factor: f64| {
            move |scenario: &mut ScenarioOutput| {
                for iteration in &mut scenario.output.iterations {
                    iteration.t_last =
                        iteration.t_last.zip(iteration.t_open).map(|(last, open)| open + (last - open) * factor);
                }
            }
        };
        let (gate, figures) = failed(scale(1000.0));
        assert_eq!(gate, Gate::Plausibility);
        assert!(figures.contains("times in another unit"), "{figures}");
        let (gate, figures) = failed(scale(0.001));
        assert_eq!(gate, Gate::Plausibility);
        assert!(figures.contains("raw TCP connection between the same CPUs reached 3.73 GiB/s"), "{figures}");
    }
}

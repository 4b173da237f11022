//! Gates of network tests: completeness of a run, agreement of both sides, and plausibility of the figures.

use wb_model::outcome::Gate;
use wb_results::net::{GroupResult, RunResult, RunStatus};
use wb_test::Measurement;

use super::expectation::{PrimaryMetric, RunExpectation};

/// Share of a window by which the sides' counts may differ: messages over the control connection begin and end the
/// windows, and a busy machine delays them by a small part of a window.
const EDGE_SHARE: f64 = 0.05;
/// Minimum of that time in seconds: two time slices.
const EDGE_SECONDS: f64 = 0.02;
/// Bytes in flight of a connection at the end of its window, sent but received too late to be counted: at most the
/// kernel's two buffers, 4 and 6 MiB by Linux's defaults (tcp_wmem, tcp_rmem), or as requested with `wndsz`.
const MAX_BUFFERED_BYTES: u64 = 10 << 20;

/// Checks that the run completed and lasted long enough.
pub(super) fn check_completed(measurement: &mut Measurement, expectation: RunExpectation, result: &RunResult) {
    let reason = match &result.outcome {
        RunStatus::Completed => None,
        RunStatus::Truncated if expectation.may_be_truncated => None,
        RunStatus::Truncated => Some("it was cut short"),
        RunStatus::Interrupted => Some("it was interrupted"),
        RunStatus::Unsupported { reason } | RunStatus::Failed { reason } | RunStatus::Lost { reason } => {
            Some(reason.as_str())
        }
    };
    if let Some(reason) = reason {
        measurement.reject(Gate::Work, format!("the run did not complete: {reason}"));
    }
    let (seconds, window) = (result.totals.seconds, expectation.window.map_or(0.0, |window| window.seconds()));
    measurement.require(seconds >= 0.95 * window, Gate::Work, || {
        format!("messages were transferred for {seconds:.3} s, {window:.3} s requested")
    });
}

/// Checks that the other side received what was sent. Datagrams may be lost; they are counted.
pub(super) fn check_received(measurement: &mut Measurement, expectation: RunExpectation, result: &RunResult) {
    let received = result.totals.received_bytes;
    measurement.require(expectation.primary == PrimaryMetric::EmptyRounds || received > 0, Gate::Work, || {
        format!("{} bytes sent, none received", result.totals.sent_bytes)
    });
    for group in result.groups.iter().filter(|group| group.datagrams.is_none()) {
        let (sent, received) = (group.totals.sent_bytes, group.totals.received_bytes);
        let allowed = max_difference(expectation, group);
        // What was received counts as sent, and would hide a receiver that counts too much.
        let counted = sent.saturating_sub(group.uncounted_bytes);
        measurement.require(counted.abs_diff(received) <= allowed, Gate::Work, || {
            format!(
                "{}: {counted} bytes sent, {received} received; expected a difference of at most {allowed} bytes",
                group.name
            )
        });
    }
}

/// Bytes by which the sides' counts may differ.
fn max_difference(expectation: RunExpectation, group: &GroupResult) -> u64 {
    let totals = &group.totals;
    let sent = totals.sent_bytes as f64;
    if expectation.primary == PrimaryMetric::Rounds {
        // Both sides wait for each other: each strand has one round in flight.
        return (f64::from(group.strand_count) * sent / totals.rounds.max(1) as f64).ceil() as u64;
    }
    let at_edges = (sent * EDGE_SHARE).max(sent * EDGE_SECONDS / totals.seconds.max(EDGE_SECONDS));
    let flowops = group.transactions.iter().flat_map(|transaction| &transaction.flowops);
    let opened = flowops.filter(|flowop| ["connect", "accept"].contains(&flowop.name.as_str())).count().max(1) as u64;
    let sides = [group.client_connections, group.server_connections];
    let buffers = sides.iter().map(|side| side.send_buffer + side.receive_buffer).max().unwrap_or_default();
    let in_flight =
        buffers.max(MAX_BUFFERED_BYTES).saturating_mul(u64::from(group.strand_count)).saturating_mul(opened);
    (at_edges as u64).saturating_add(in_flight)
}

pub(super) fn check_possible(measurement: &mut Measurement, result: &RunResult, elapsed: f64) {
    let seconds = result.totals.seconds;
    measurement.require(seconds <= elapsed * 1.01, Gate::Plausibility, || {
        format!("{seconds:.3} s measured, longer than the {elapsed:.3} s that the program ran")
    });
    for group in &result.groups {
        let Some(latency) = &group.totals.latency else { continue };
        let quantiles = &latency.percentiles;
        let ordered = [quantiles.min_ns, quantiles.p50_ns, quantiles.p90_ns, quantiles.p99_ns, quantiles.max_ns];
        measurement.require(ordered.is_sorted(), Gate::Output, || {
            format!("{}: percentiles of round times are out of order: {ordered:?} ns", group.name)
        });
        // A strand does one round at a time (Little's law); the last may end after its window.
        let busy = latency.mean_ns * latency.count as f64 / 1e9;
        let strands = f64::from(group.strand_count);
        let available = strands * (group.totals.seconds * 1.05 + quantiles.max_ns as f64 / 1e9);
        measurement.require(busy <= available, Gate::Plausibility, || {
            format!("{}: rounds took {busy:.3} s in total, {strands} strands have {available:.3} s", group.name)
        });
    }
}

#[cfg(test)]
mod tests {
    use wb_model::Nanos;
    use wb_results::net::DatagramCounts;

    use super::super::testing::{expectation, rejection_of, stream, study_result};
    use super::*;
    use wb_test_artefacts::{failed_gate, value};

    #[test]
    fn an_incomplete_run_is_invalid() {
        let lost = RunStatus::Lost { reason: "host `h` is gone".to_owned() };
        let (gate, figures) = rejection_of(expectation(PrimaryMetric::Throughput), |run| run.outcome = lost);
        assert_eq!((gate, figures.as_str()), (Gate::Work, "the run did not complete: host `h` is gone"));
        let cut = |may_be_cut| {
            let expected = RunExpectation { may_be_truncated: may_be_cut, ..expectation(PrimaryMetric::Throughput) };
            failed_gate(&study_result(expected, &RunResult { outcome: RunStatus::Truncated, ..stream() }))
        };
        assert_eq!([cut(false), cut(true)], [Some(Gate::Work), None]);
        let long = RunExpectation { window: Some(Nanos(3_000_000_000)), ..expectation(PrimaryMetric::Throughput) };
        assert!(rejection_of(long, |_| ()).1.starts_with("messages were transferred for 1.000 s, 3.000 s"));
    }

    #[test]
    fn bytes_have_to_be_received_except_those_in_flight() {
        let received = |primary, bytes: u64| {
            let mut run = stream();
            run.groups[0].totals.received_bytes = bytes;
            run.totals.received_bytes = bytes;
            failed_gate(&study_result(expectation(primary), &run))
        };
        // Of 1000 MB, 50 MB at the edges and 2 × 10 MiB in buffers.
        assert_eq!(received(PrimaryMetric::Throughput, 930_000_000), None);
        assert_eq!(received(PrimaryMetric::Throughput, 928_000_000), Some(Gate::Work));
        assert_eq!(received(PrimaryMetric::Throughput, 1_080_000_000), Some(Gate::Work));
        assert_eq!(received(PrimaryMetric::Throughput, 0), Some(Gate::Work));
        // Results count as sent whatever was received.
        let uncounted = |bytes: u64| {
            let mut run = stream();
            run.groups[0].totals.sent_bytes += bytes;
            run.groups[0].totals.received_bytes += bytes;
            run.groups[0].uncounted_bytes = bytes;
            failed_gate(&study_result(expectation(PrimaryMetric::Throughput), &run))
        };
        assert_eq!((uncounted(70_000_000), uncounted(80_000_000)), (None, Some(Gate::Work)));
        // Two rounds of 100 kB.
        assert_eq!(received(PrimaryMetric::Rounds, 999_800_000), None);
        assert_eq!(received(PrimaryMetric::Rounds, 999_700_000), Some(Gate::Work));
    }

    #[test]
    fn lost_datagrams_are_reported_and_valid() {
        let mut run = stream();
        run.groups[0].datagrams = Some(DatagramCounts { client_sent: 10_000, client_lost: 9000, ..Default::default() });
        run.groups[0].totals.received_bytes = 100_000_000;
        run.totals.lost_datagrams = 9000;
        let measurement = study_result(expectation(PrimaryMetric::Throughput), &run);
        assert_eq!(failed_gate(&measurement), None);
        assert_eq!(value(&measurement, "check/lost-datagrams"), 9000.0);
    }

    #[test]
    fn implausible_figures_are_invalid() {
        let primary = PrimaryMetric::Throughput;
        let rejection = |change: fn(&mut RunResult)| rejection_of(expectation(primary), change);
        assert!(rejection(|run| run.totals.seconds = 2.0).1.contains("the 1.300 s that the program ran"));
        let (rejected_by, figures) =
            rejection(|run| run.groups[0].totals.latency.iter_mut().for_each(|latency| latency.mean_ns *= 1000.0));
        assert_eq!(rejected_by, Gate::Plausibility, "{figures}");
        assert!(figures.starts_with("stream: rounds took"), "{figures}");
        let (rejected_by, figures) = rejection(|run| {
            run.groups[0].totals.latency.iter_mut().for_each(|latency| latency.percentiles.p90_ns = 1);
        });
        assert_eq!(rejected_by, Gate::Output, "{figures}");
    }
}

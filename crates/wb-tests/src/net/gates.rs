//! Whether a run did what it was to do, and whether its figures can be.

use wb_model::outcome::Gate;
use wb_net::result::{GroupResult, RunResult, RunStatus};

use super::values::{PrimaryMetric, RunExpectation};
use crate::Measurement;

/// The two sides begin and end their windows by messages over the control connection: what a busy machine delays one
/// of them by is a small part of a window.
const EDGE_SHARE: f64 = 0.05;
/// And at least so long, in seconds: two time slices.
const EDGE_SECONDS: f64 = 0.02;
/// What a connection has under way when its window ends was sent and is received too late to count: the kernel's two
/// buffers at most, by Linux's defaults 4 and 6 MiB (tcp_wmem, tcp_rmem), or what was asked for with `wndsz`.
const MAX_BUFFERED_BYTES: u64 = 10 << 20;

/// Did it go to its end?
pub(super) fn check_completed(measured: &mut Measurement, asked: RunExpectation, result: &RunResult) {
    let why = match &result.outcome {
        RunStatus::Completed => None,
        RunStatus::Truncated if asked.may_be_cut => None,
        RunStatus::Truncated => Some("it was cut"),
        RunStatus::Interrupted => Some("somebody interrupted it"),
        RunStatus::Unsupported { reason: why }
        | RunStatus::Failed { reason: why }
        | RunStatus::Lost { reason: why } => Some(why.as_str()),
    };
    if let Some(why) = why {
        measured.reject(Gate::Work, format!("the run did not go to its end: {why}"));
    }
    let (seconds, window) = (result.totals.seconds, asked.window.map_or(0.0, |window| window.seconds()));
    measured.require(seconds >= 0.95 * window, Gate::Work, || {
        format!("messages were moved for {seconds:.3} s, {window:.3} s were asked for")
    });
}

/// Did the other side get what was sent? Datagrams may be lost, and are counted.
pub(super) fn check_received(measured: &mut Measurement, asked: RunExpectation, result: &RunResult) {
    let received = result.totals.received_bytes;
    measured.require(asked.primary == PrimaryMetric::EmptyRounds || received > 0, Gate::Work, || {
        format!("{} bytes were sent, none was received", result.totals.sent_bytes)
    });
    for group in result.groups.iter().filter(|group| group.datagrams.is_none()) {
        let (sent, received) = (group.totals.sent_bytes, group.totals.received_bytes);
        let explained = max_difference(asked, group);
        measured.require(sent.abs_diff(received) <= explained, Gate::Work, || {
            format!(
                "{}: {sent} bytes were sent and {received} received; windows explain a difference of {explained}",
                group.name
            )
        });
    }
}

/// The most bytes by which the sides' counts may differ.
fn max_difference(asked: RunExpectation, group: &GroupResult) -> u64 {
    let totals = &group.totals;
    let sent = totals.sent_bytes as f64;
    if asked.primary == PrimaryMetric::Rounds {
        // Both sides wait for each other: each strand has one round under way.
        return (f64::from(group.strand_count) * sent / totals.rounds.max(1) as f64).ceil() as u64;
    }
    let at_edges = (sent * EDGE_SHARE).max(sent * EDGE_SECONDS / totals.seconds.max(EDGE_SECONDS));
    let flowops = group.transactions.iter().flat_map(|part| &part.flowops);
    let opened = flowops.filter(|flowop| ["connect", "accept"].contains(&flowop.name.as_str())).count().max(1) as u64;
    let sides = [group.client_connections, group.server_connections];
    let buffers = sides.iter().map(|side| side.send_buffer + side.receive_buffer).max().unwrap_or_default();
    let under_way =
        buffers.max(MAX_BUFFERED_BYTES).saturating_mul(u64::from(group.strand_count)).saturating_mul(opened);
    (at_edges as u64).saturating_add(under_way)
}

/// Can the figures be?
pub(super) fn check_possible(measured: &mut Measurement, result: &RunResult, elapsed: f64) {
    let seconds = result.totals.seconds;
    measured.require(seconds <= elapsed * 1.01, Gate::Possible, || {
        format!("{seconds:.3} s were measured; the program ran {elapsed:.3} s")
    });
    for group in &result.groups {
        let Some(latency) = &group.totals.latency else { continue };
        let quantiles = &latency.percentiles;
        let ordered = [quantiles.min_ns, quantiles.p50_ns, quantiles.p90_ns, quantiles.p99_ns, quantiles.max_ns];
        measured.require(ordered.is_sorted(), Gate::Output, || {
            format!("{}: times of rounds are out of order: {ordered:?} ns", group.name)
        });
        // A strand does one round at a time (Little); the last may end after its window.
        let busy = latency.mean_ns * latency.count as f64 / 1e9;
        let strands = f64::from(group.strand_count);
        let most = strands * (group.totals.seconds * 1.05 + quantiles.max_ns as f64 / 1e9);
        measured.require(busy <= most, Gate::Possible, || {
            format!("{}: rounds took {busy:.3} s together, {strands} strands have {most:.3} s", group.name)
        });
    }
}

#[cfg(test)]
mod tests {
    use wb_model::Nanos;
    use wb_net::result::DatagramCounts;

    use super::super::testing::{expectation, rejection_of, stream, study_result};
    use super::*;
    use crate::testing::failed_gate;

    #[test]
    fn a_run_that_did_not_go_to_its_end_does_not_count() {
        let lost = RunStatus::Lost { reason: "host `h` is gone".to_owned() };
        let (gate, said) = rejection_of(expectation(PrimaryMetric::Throughput), |run| run.outcome = lost);
        assert_eq!((gate, said.as_str()), (Gate::Work, "the run did not go to its end: host `h` is gone"));
        let cut = |may_be_cut| {
            let asked = RunExpectation { may_be_cut, ..expectation(PrimaryMetric::Throughput) };
            failed_gate(&study_result(asked, &RunResult { outcome: RunStatus::Truncated, ..stream() }))
        };
        assert_eq!([cut(false), cut(true)], [Some(Gate::Work), None]);
        let long = RunExpectation { window: Some(Nanos(3_000_000_000)), ..expectation(PrimaryMetric::Throughput) };
        assert!(rejection_of(long, |_| ()).1.starts_with("messages were moved for 1.000 s, 3.000 s"));
    }

    #[test]
    fn bytes_have_to_arrive_but_for_what_is_under_way() {
        let received = |primary, bytes: u64| {
            let mut run = stream();
            run.groups[0].totals.received_bytes = bytes;
            run.totals.received_bytes = bytes;
            failed_gate(&study_result(expectation(primary), &run))
        };
        // Of 1000 MB 50 at the edges and 2 × 10 MiB in buffers.
        assert_eq!(received(PrimaryMetric::Throughput, 930_000_000), None);
        assert_eq!(received(PrimaryMetric::Throughput, 928_000_000), Some(Gate::Work));
        assert_eq!(received(PrimaryMetric::Throughput, 1_080_000_000), Some(Gate::Work));
        assert_eq!(received(PrimaryMetric::Throughput, 0), Some(Gate::Work));
        // Two rounds of 100 kB.
        assert_eq!(received(PrimaryMetric::Rounds, 999_800_000), None);
        assert_eq!(received(PrimaryMetric::Rounds, 999_700_000), Some(Gate::Work));
    }

    #[test]
    fn lost_datagrams_are_told_and_count() {
        let mut run = stream();
        run.groups[0].datagrams = Some(DatagramCounts { client_sent: 10_000, client_lost: 9000, ..Default::default() });
        run.groups[0].totals.received_bytes = 100_000_000;
        run.totals.lost_datagrams = 9000;
        let measured = study_result(expectation(PrimaryMetric::Throughput), &run);
        assert_eq!(failed_gate(&measured), None);
        assert_eq!(measured.values["check/lost-datagrams"], 9000.0);
    }

    #[test]
    fn figures_that_cannot_be_do_not_count() {
        let primary = PrimaryMetric::Throughput;
        let gate = |change: fn(&mut RunResult)| rejection_of(expectation(primary), change);
        assert!(gate(|run| run.totals.seconds = 2.0).1.contains("the program ran 1.300 s"));
        let (of, said) =
            gate(|run| run.groups[0].totals.latency.iter_mut().for_each(|latency| latency.mean_ns *= 1000.0));
        assert_eq!(of, Gate::Possible, "{said}");
        assert!(said.starts_with("stream: rounds took"), "{said}");
        let (of, said) = gate(|run| {
            run.groups[0].totals.latency.iter_mut().for_each(|latency| latency.percentiles.p90_ns = 1);
        });
        assert_eq!(of, Gate::Output, "{said}");
    }
}

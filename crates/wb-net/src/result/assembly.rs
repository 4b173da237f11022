//! Assembles the result of a run from the reports of all engines.

use super::latency::{summarize, summarize_with_pending};
use super::machine::machine_result;
use super::nested::nested_latency;
use super::progress::raise_sent;
use super::uncounted::count_received_as_sent;
use wb_results::net::{
    ConnectionInfo, DatagramCounts, FlowopResult, FlowopSide, GroupResult, IntervalLatency, LatencySummary,
    MachineResult, PendingRounds, RunResult, RunStatus, ScheduledExecutions, ScheduledRounds, StrandResult, Totals,
    TransactionResult, Usage, is_notable_share,
};

use crate::engine::clock::Nanos;
use crate::engine::latency::LatencyHistogram;
use crate::engine::protocol::{EngineErrorKind, Settings};
use crate::engine::report::{EngineReport, GroupReport};
use crate::engine::tally::{self, FlowopTally, TransactionTally, describe_failure};
use crate::session::client::{ClientRun, FinishedRun};
use crate::session::coordinator::{DatagramTotals, RunFailure};
use wb_net_profile::{Extent, Flowop, FlowopAction, Group, Protocol, StrandKind, Transaction};

/// The result of a run that was started.
pub fn assemble(run: &ClientRun, finished: FinishedRun) -> RunResult {
    let FinishedRun { hosts, outcome: run_outcome } = finished;
    let (profile, settings) = (&run.profile, &run.settings);
    let names = std::iter::once(("client".to_owned(), None))
        .chain(hosts.into_iter().map(|(name, address)| (name, Some(address.to_string()))));
    let names: Vec<(String, Option<String>)> = names.collect();
    let mut reports = run_outcome.reports;
    let uncounted = count_received_as_sent(profile, &mut reports);
    let mut machines: Vec<MachineResult> = names
        .into_iter()
        .zip(&reports)
        .map(|((name, address), report)| machine_result(profile, name, address, report.as_ref()))
        .collect();
    for is_sent_by_client in [true, false] {
        let (client, servers) = machines.split_at_mut(1.min(reports.len()));
        let (senders, receivers) = if is_sent_by_client { (client, servers) } else { (servers, client) };
        raise_sent(senders, receivers);
    }
    let client = if reports.is_empty() { None } else { reports.remove(0) };
    let servers: Vec<EngineReport> = reports.into_iter().flatten().collect();
    let groups: Vec<GroupData<'_>> = profile
        .groups
        .iter()
        .enumerate()
        .map(|(position, group)| GroupData {
            group,
            client: client.as_ref().and_then(|report| report.groups.get(position)),
            servers: servers.iter().filter_map(|report| report.groups.get(position)).collect(),
            datagrams: run_outcome.datagrams.get(position).copied().unwrap_or_default(),
            uncounted_bytes: uncounted[position],
            settings,
        })
        .collect();
    let truncation_notes: Vec<String> = if run.limit.is_some() && run_outcome.failure.is_none() {
        let (parts, truncated) = (groups.iter().enumerate(), &run_outcome.truncated);
        parts
            .flat_map(|(position, group)| group.truncation_notes(move |index| truncated.contains(&(position, index))))
            .collect()
    } else {
        Vec::new()
    };
    let is_limited = run.limit.is_some();
    let unsuccessful = groups.iter().find_map(|group| group.describe_lack_of_success(is_limited));
    let outcome = match (run_outcome.failure, unsuccessful) {
        (Some(failure), _) => failure_status(failure),
        (None, Some(reason)) => RunStatus::Failed { reason },
        (None, None) if truncation_notes.is_empty() => RunStatus::Completed,
        (None, None) => RunStatus::Truncated,
    };
    let losses =
        groups.iter().flat_map(|group| [group.window_notes(), group.offload_note(), group.loss_notes()].concat());
    RunResult {
        profile: profile.name.clone(),
        seed: run.seed,
        outcome,
        notes: truncation_notes.into_iter().chain(losses).collect(),
        totals: totals(groups.iter().map(|group| (group, group.data_transactions().collect()))),
        groups: groups.iter().map(GroupData::group_result).collect(),
        machines,
    }
}

fn failure_status(failure: RunFailure) -> RunStatus {
    let reason = failure.to_string();
    match failure {
        RunFailure::Interrupted => RunStatus::Interrupted,
        RunFailure::Engine { error: fault, .. } if fault.kind == EngineErrorKind::Unsupported => {
            RunStatus::Unsupported { reason }
        }
        RunFailure::Engine { .. } => RunStatus::Failed { reason },
        RunFailure::Lost { .. } => RunStatus::Lost { reason },
    }
}

/// A round that was open at the end of its window is noted from this age on, in nanoseconds, if it is twice as old as
/// the longest round.
const NOTABLE_PENDING: Nanos = 100_000_000;

/// A group with the reports of both sides.
pub(super) struct GroupData<'a> {
    pub(super) group: &'a Group,
    client: Option<&'a GroupReport>,
    servers: Vec<&'a GroupReport>,
    pub(super) datagrams: DatagramTotals,
    uncounted_bytes: u64,
    pub(super) settings: &'a Settings,
}

pub(super) fn is_send(flowop: &Flowop) -> Option<bool> {
    match flowop.action {
        FlowopAction::Send(_) | FlowopAction::SendFiles(_) => Some(true),
        FlowopAction::Receive(_) | FlowopAction::ReceiveFiles(_) => Some(false),
        _ => None,
    }
}

impl GroupData<'_> {
    pub(super) fn data_transactions(&self) -> impl Iterator<Item = usize> {
        self.group.data_phase()
    }

    /// Describes the transactions that did not run to their own end.
    fn truncation_notes(&self, is_truncated: impl Fn(usize) -> bool) -> impl Iterator<Item = String> {
        let transactions = self.group.transactions.iter().enumerate();
        transactions.filter_map(move |(position, transaction)| {
            let tally = self.client_tally(position)?;
            let name = format!("group {}, {}", self.group.name, transaction.name);
            match transaction.extent {
                Extent::Window(window) if is_truncated(position) => Some(format!(
                    "{name}: cut after {} s of {} s",
                    round_to_millis(seconds(tally)),
                    window.as_secs_f64()
                )),
                Extent::Iterations(each) if !self.settings.totals_only => {
                    let expected = each.saturating_mul(self.group.strands.into());
                    let done = tally.rounds.count() + tally.failed_rounds;
                    (done < expected).then(|| {
                        format!(
                            "{name}: cut after {} s, {done} of {expected} rounds were done",
                            round_to_millis(seconds(tally))
                        )
                    })
                }
                _ => None,
            }
        })
    }

    /// Says so if the kernel segmented and joined datagrams, which changes what is measured.
    fn offload_note(&self) -> Vec<String> {
        let name = &self.group.name;
        let note = format!("group {name}: datagrams passed the network stack together (gso), not one by one");
        self.group
            .flowops()
            .any(|flowop| flowop.endpoint().is_some_and(|endpoint| endpoint.gso))
            .then_some(note)
            .into_iter()
            .collect()
    }

    /// Notes of socket buffers that the kernel granted smaller than requested (`wndsz`).
    fn window_notes(&self) -> Vec<String> {
        let endpoints = self.group.flowops().filter_map(Flowop::endpoint);
        // The buffer of vsock is not limited.
        let windows = endpoints.filter(|endpoint| endpoint.protocol != Protocol::Vsock).filter_map(|end| end.window);
        let Some(requested) = windows.max().map(u64::from) else { return Vec::new() };
        let sides = self
            .client
            .iter()
            .map(|report| ("client", report))
            .chain(self.servers.iter().map(|report| ("server", report)));
        let mut notes = Vec::new();
        for (side, report) in sides {
            let connections = &report.connections;
            for (buffer, granted, limit) in [
                ("send", connections.send_buffer, "net.core.wmem_max"),
                ("receive", connections.receive_buffer, "net.core.rmem_max"),
            ] {
                // The kernel doubles the requested size, for its own overhead (socket(7)).
                let granted = granted / 2;
                if 0 < granted && granted < requested {
                    let name = &self.group.name;
                    notes.push(format!(
                        "group {name}, {side}: {granted} bytes of {buffer} buffer instead of wndsz={requested}: the limit is {limit}"
                    ));
                }
            }
        }
        notes
    }

    /// Notes of what was lost or did not end: it has no latency, so the latencies do not show it.
    fn loss_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let datagrams = self.datagrams;
        for (direction, sent, lost) in [
            ("sent by the client", datagrams.client_sent, datagrams.client_lost()),
            ("sent by servers", datagrams.server_sent, datagrams.server_lost()),
        ] {
            if lost > 0 {
                let percent = lost as f64 / sent as f64 * 100.0;
                let name = &self.group.name;
                notes.push(format!("group {name}: {lost} of {sent} datagrams {direction} were lost ({percent:.3} %)"));
            }
        }
        for position in self.data_transactions() {
            let (Some(tally), Some(transaction)) = (self.client_tally(position), self.group.transactions.get(position))
            else {
                continue;
            };
            let name = format!("group {}, {}", self.group.name, transaction.name);
            if tally.failed_rounds > 0 {
                let failed = tally.failed_rounds;
                notes.push(format!("{name}: {failed} rounds failed or lost a datagram; they are in no latency"));
            }
            let (ended, open) = (tally.rounds.count(), tally.pending.open_count());
            let longest = tally.pending.longest();
            let is_long = longest >= NOTABLE_PENDING && longest / 2 > tally.rounds.max;
            // Otherwise the end of the window just interrupts rounds like any others.
            if is_long || (ended > 0 && is_notable_share(open, ended + open)) {
                let milliseconds = longest as f64 / 1e6;
                notes.push(if ended == 0 {
                    format!(
                        "{name}: no round ended; the oldest had taken {milliseconds:.1} ms at the end of the window"
                    )
                } else {
                    let all = ended + open;
                    format!(
                        "{name}: {open} of {all} rounds were open at the end of the window, after at most \
                         {milliseconds:.1} ms; the latencies include them with the time until then, as lower bounds"
                    )
                });
            }
        }
        notes
    }

    pub(super) fn client_tally(&self, transaction: usize) -> Option<&TransactionTally> {
        self.client.and_then(|client| client.transactions.get(transaction)).filter(|tally| tally.began < Nanos::MAX)
    }

    pub(super) fn server_tallies(&self, transaction: usize) -> impl Iterator<Item = &TransactionTally> {
        self.servers
            .iter()
            .filter_map(move |server| server.transactions.get(transaction))
            .filter(|tally| tally.began < Nanos::MAX)
    }

    fn group_result(&self) -> GroupResult {
        let used = |reports: &mut dyn Iterator<Item = &GroupReport>| {
            reports.fold((Usage::default(), ConnectionInfo::default()), |(mut usage, mut info), report| {
                usage.add(report.usage);
                info.add(&report.connections);
                (usage, info)
            })
        };
        let (client_usage, client_connections) = used(&mut self.client.into_iter());
        let (server_usage, server_connections) = used(&mut self.servers.iter().copied());
        let datagrams = DatagramCounts {
            client_sent: self.datagrams.client_sent,
            client_lost: self.datagrams.client_lost(),
            server_sent: self.datagrams.server_sent,
            server_lost: self.datagrams.server_lost(),
        };
        GroupResult {
            name: self.group.name.clone(),
            strand_count: self.group.strands,
            processes: self.group.kind == StrandKind::Process,
            totals: totals([(self, self.data_transactions().collect())]),
            client_usage,
            server_usage,
            client_connections,
            server_connections,
            datagrams: (datagrams.client_sent + datagrams.server_sent > 0).then_some(datagrams),
            uncounted_bytes: self.uncounted_bytes,
            transactions: self
                .group
                .transactions
                .iter()
                .enumerate()
                .filter_map(|(position, transaction)| self.transaction_result(position, transaction))
                .collect(),
            strands: self.client.map_or(&[][..], |client| &client.strands).iter().map(strand_result).collect(),
        }
    }

    fn transaction_result(&self, position: usize, transaction: &Transaction) -> Option<TransactionResult> {
        let tally = self.client_tally(position)?;
        let totals = totals([(self, vec![position])]);
        let longest = self.server_tallies(position).map(seconds).fold(0.0, f64::max);
        let flowops = transaction.flowops.iter().enumerate().filter_map(|(flowop, written)| {
            let client = tally.flowops.get(flowop)?;
            let mut server: Option<FlowopTally> = None;
            for other in self.server_tallies(position).filter_map(|tally| tally.flowops.get(flowop)) {
                match &mut server {
                    Some(sum) => sum.add(other),
                    None => server = Some(other.clone()),
                }
            }
            let difference_percent = is_send(written).zip(server.as_ref()).and_then(|(is_sender, server)| {
                let (sent, received) =
                    if is_sender { (client.bytes, server.bytes) } else { (server.bytes, client.bytes) };
                difference(sent, received)
            });
            let mut client = self.flowop_side(written, client, seconds(tally));
            let mut server = server.map(|server| self.flowop_side(written, &server, longest));
            match (is_send(written), &mut server) {
                (Some(true), Some(server)) => raise_rate(&mut client.throughput, server.throughput),
                (Some(false), Some(server)) => raise_rate(&mut server.throughput, client.throughput),
                _ => {}
            }
            Some(FlowopResult { name: written.name.clone(), client, server, difference_percent })
        });
        let length = tally.intervals.length as f64 / 1e9;
        let intervals = tally.intervals.times.iter().zip(0..).map(|(histogram, number)| IntervalLatency {
            start_seconds: f64::from(number) * length,
            latency: summarize(histogram),
        });
        Some(TransactionResult {
            name: transaction.name.clone(),
            is_data_phase: transaction.moves_data() && !transaction.warm_up,
            seconds: seconds(tally),
            sent_bytes: totals.sent_bytes,
            received_bytes: totals.received_bytes,
            throughput: totals.throughput,
            operations: totals.operations,
            operations_per_second: totals.operations_per_second,
            rounds: (!self.settings.totals_only).then(|| tally.rounds.count()),
            failed_rounds: tally.failed_rounds,
            pending_rounds: pending_rounds(&tally.pending),
            scheduled_rounds: scheduled_rounds(&tally.pending),
            latency: summarize_with_pending(&tally.rounds, &tally.pending.open),
            response: tally.response.as_ref().and_then(|response| response_summary(response, &tally.pending)),
            lag: tally.lag.as_ref().and_then(|lag| summarize_with_pending(lag, &tally.pending.not_started)),
            flowops: flowops.collect(),
            intervals: intervals.collect(),
            nested: nested_latency(&tally.rounds, &tally.intervals),
        })
    }

    fn flowop_side(&self, written: &Flowop, tally: &FlowopTally, seconds: f64) -> FlowopSide {
        let counters = self.settings.counters.iter().cloned().zip(tally.counters.iter().copied());
        FlowopSide {
            count: tally.count,
            bytes: tally.bytes,
            throughput: (tally.bytes > 0 && seconds > 0.0).then(|| tally.bytes as f64 / seconds),
            latency: summarize(&tally.service),
            response: tally.response.as_ref().and_then(summarize),
            lag: tally.lag.as_ref().and_then(summarize),
            scheduled: scheduled_executions(tally.schedule, written),
            errors: tally.errors.iter().map(|(&number, &count)| (describe_failure(number), count)).collect(),
            timeouts: tally.timeouts,
            late: tally.late,
            reordered: tally.reordered,
            jitter_ns: tally.jitter.mean(),
            cpu_ns: self.settings.flowop_cpu.then_some(tally.cpu),
            counters: counters.collect(),
        }
    }
}

/// Raises the rate of a sender to the rate of its receiver. If the receiver's window was shorter, the sender's included
/// time in which nothing was left to send.
fn raise_rate(sent: &mut Option<f64>, received: Option<f64>) {
    *sent = sent.zip(received).map(|(sent, received)| sent.max(received)).or(*sent);
}

#[derive(Default)]
struct ByteTotals {
    /// Duration by the clock of the side that counted
    seconds: f64,
    /// Duration by the client's clock
    client_seconds: f64,
    /// Bytes, like `received`
    sent: u64,
    received: u64,
}

fn totals<'a>(groups: impl IntoIterator<Item = (&'a GroupData<'a>, Vec<usize>)>) -> Totals {
    let mut totals = Totals::default();
    let mut spans: Vec<(Nanos, Nanos)> = Vec::new();
    let mut latencies: Option<LatencyHistogram> = None;
    let mut responses: Option<LatencyHistogram> = None;
    let mut has_responses = true;
    let mut pending = tally::PendingRounds::default();
    let mut moved: Vec<[ByteTotals; 2]> = Vec::new();
    for (group, positions) in groups {
        // Transactions run in sequence: a rate is the sum of their bytes over the sum of their durations.
        let mut sides = [ByteTotals::default(), ByteTotals::default()];
        let mut client_seconds = 0.0;
        for position in positions {
            let (Some(client), Some(written)) = (group.client_tally(position), group.group.transactions.get(position))
            else {
                continue;
            };
            spans.push((client.began, client.ended));
            client_seconds += seconds(client);
            let mut add = |server: bool, tally: &TransactionTally| {
                let side = &mut sides[usize::from(server)];
                side.seconds += seconds(tally);
                for (flowop, tally) in written.flowops.iter().zip(&tally.flowops) {
                    match is_send(flowop).map(|is_sender| is_sender != server) {
                        Some(true) => side.sent += tally.bytes,
                        Some(false) => side.received += tally.bytes,
                        None => {}
                    }
                }
            };
            add(false, client);
            let mut servers = group.server_tallies(position).cloned();
            if let Some(mut first) = servers.next() {
                let longest = servers.fold(seconds(&first), |longest, other| {
                    first.flowops.iter_mut().zip(&other.flowops).for_each(|(own, others)| own.add(others));
                    longest.max(seconds(&other))
                });
                (first.began, first.ended) = (0, (longest * 1e9) as Nanos);
                add(true, &first);
            }
            totals.operations += client.flowops.iter().map(|flowop| flowop.count).sum::<u64>();
            for flowop in group.server_tallies(position).chain([client]).flat_map(|tally| &tally.flowops) {
                totals.errors += flowop.errors.values().sum::<u64>();
                totals.timeouts += flowop.timeouts;
                totals.late += flowop.late;
            }
            totals.rounds += client.rounds.count();
            totals.failed_rounds += client.failed_rounds;
            pending.add(&client.pending);
            merge_histogram(&mut latencies, &client.rounds);
            match &client.response {
                Some(response) => merge_histogram(&mut responses, response),
                None => has_responses = false,
            }
        }
        if group.settings.totals_only {
            totals.rounds +=
                group.client.iter().flat_map(|client| &client.strands).map(|strand| strand.rounds).sum::<u64>();
        }
        moved.push(sides.map(|side| ByteTotals { client_seconds, ..side }));
        totals.lost_datagrams += group.datagrams.client_lost() + group.datagrams.server_lost();
    }
    totals.seconds = union_length(spans) as f64 / 1e9;
    let (mut received_rate, mut sent_rate) = (0.0, 0.0);
    for sides in moved {
        let [client, server] = &sides;
        for (sender, receiver) in [(client, server), (server, client)] {
            totals.sent_bytes += sender.sent;
            totals.received_bytes += receiver.received;
            // Weighted by duration: the rates of groups that run in sequence must not simply be added.
            let rate = |bytes: u64, side: &ByteTotals| {
                let is_known = side.seconds > 0.0 && totals.seconds > 0.0;
                if is_known { bytes as f64 / side.seconds * (side.client_seconds / totals.seconds) } else { 0.0 }
            };
            let (sent, received) = (rate(sender.sent, sender), rate(receiver.received, receiver));
            received_rate += received;
            sent_rate += sent.max(received);
        }
    }
    let per_second = |count: u64| (totals.seconds > 0.0).then(|| count as f64 / totals.seconds);
    totals.operations_per_second = per_second(totals.operations);
    totals.rounds_per_second = per_second(totals.rounds);
    totals.throughput = (received_rate > 0.0).then_some(received_rate);
    totals.sent_throughput = (sent_rate > 0.0).then_some(sent_rate);
    totals.difference_percent = difference(totals.sent_bytes, totals.received_bytes);
    totals.pending_rounds = pending_rounds(&pending);
    totals.scheduled_rounds = scheduled_rounds(&pending);
    totals.latency = latencies.and_then(|latencies| summarize_with_pending(&latencies, &pending.open));
    totals.response = responses.filter(|_| has_responses).and_then(|responses| response_summary(&responses, &pending));
    totals
}

fn merge_histogram(sum: &mut Option<LatencyHistogram>, other: &LatencyHistogram) {
    match sum {
        Some(sum) => sum.merge(other),
        None => *sum = Some(other.clone()),
    }
}

fn pending_rounds(pending: &tally::PendingRounds) -> Option<PendingRounds> {
    let (count, at_least_ns) = (pending.open_count(), pending.longest());
    (count > 0).then_some(PendingRounds { count, at_least_ns })
}

fn scheduled_rounds(pending: &tally::PendingRounds) -> Option<ScheduledRounds> {
    let at_least_ns = pending.not_started.as_ref().map_or(0, |times| times.max);
    let (due, not_started, overdue) = (pending.due, pending.not_started_count(), pending.overdue);
    (due > 0).then_some(ScheduledRounds { due, not_started, at_least_ns, overdue })
}

fn scheduled_executions(schedule: tally::ScheduleTally, flowop: &Flowop) -> Option<ScheduledExecutions> {
    let tally::ScheduleTally { due, missed, slipped } = schedule;
    let skipped = flowop.rate.map_or(0, |rate| (slipped as f64 / 1e9 * rate) as u64);
    (due > 0).then_some(ScheduledExecutions { due: due + skipped, missed: missed + skipped })
}

fn response_summary(ended: &LatencyHistogram, pending: &tally::PendingRounds) -> Option<LatencySummary> {
    summarize_with_pending(ended, pending.open_response.iter().chain(&pending.not_started))
}

pub(super) fn union_length(mut spans: Vec<(Nanos, Nanos)>) -> Nanos {
    spans.sort_unstable();
    let mut covered = 0;
    let mut until = 0;
    for (began, ended) in spans {
        covered += ended.saturating_sub(began.max(until));
        until = until.max(ended);
    }
    covered
}

fn seconds(tally: &TransactionTally) -> f64 {
    tally.ended.saturating_sub(tally.began) as f64 / 1e9
}

fn difference(sent: u64, received: u64) -> Option<f64> {
    (sent > 0).then(|| (sent as f64 - received as f64) / sent as f64 * 100.0)
}

fn strand_result(strand: &crate::engine::tally::StrandTally) -> StrandResult {
    let has_rounds = strand.rounds > 0;
    StrandResult {
        strand: strand.strand,
        operations: strand.operations,
        rounds: strand.rounds,
        sent_bytes: strand.sent,
        received_bytes: strand.received,
        mean_ns: has_rounds.then(|| strand.sum as f64 / strand.rounds as f64),
        min_ns: has_rounds.then_some(strand.min),
        max_ns: has_rounds.then_some(strand.max),
    }
}

fn round_to_millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_between_spans_is_not_counted() {
        assert_eq!(union_length(vec![(10, 20), (15, 30), (50, 60), (52, 55)]), 30);
    }

    #[test]
    fn nothing_sent_has_no_difference() {
        assert_eq!(difference(0, 0), None);
        assert_eq!(difference(200, 150), Some(25.0));
    }
}

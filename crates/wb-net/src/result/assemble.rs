//! Puts a result together from what the sites of all machines reported.

use std::{collections::BTreeMap, io};

use super::{
    DatagramCounts, FlowopResult, FlowopSide, GroupResult, IntervalLatency, Latency, Machine, Outcome, ProgressPoint,
    RunResult, ThreadResult, Totals, TransactionResult,
};
use crate::engine::{
    clock::Nanos,
    report::{GroupReport, Report},
    tally::{FlowopTally, Times, TransactionTally},
    usage::Usage,
    work::{Executor, Progress, Settings},
};
use crate::language::{Action, Flowop, Group, Profile, StrandKind, Transaction};
use crate::session::{
    client::Made,
    coordinate::{Datagrams, Failure},
};
use crate::transport::Info;

impl RunResult {
    /// Of a run that was made.
    pub fn new(profile: &Profile, settings: &Settings, made: Made) -> Self {
        let Made { hosts, ended } = made;
        let outcome = match &ended.fault {
            None if ended.cut.is_empty() => Outcome::Completed,
            None => Outcome::Cut,
            Some(Failure::Interrupted) => Outcome::Interrupted,
            Some(Failure::Fault { fault, .. }) if fault.unsupported => {
                Outcome::Unsupported { why: ended.fault.as_ref().map(ToString::to_string).unwrap_or_default() }
            }
            Some(failure @ Failure::Fault { .. }) => Outcome::Failed { why: failure.to_string() },
            Some(failure @ Failure::Lost { .. }) => Outcome::Lost { why: failure.to_string() },
        };
        let names = std::iter::once(("client".to_owned(), None))
            .chain(hosts.into_iter().map(|(name, address)| (name, Some(address.to_string()))));
        let mut reports = ended.reports;
        let machines = names.zip(&reports).map(|((name, address), report)| machine(name, address, report.as_ref())).collect();
        let client = if reports.is_empty() { None } else { reports.remove(0) };
        let servers: Vec<Report> = reports.into_iter().flatten().collect();
        let groups: Vec<GroupParts<'_>> = profile
            .groups
            .iter()
            .enumerate()
            .map(|(position, group)| GroupParts {
                group,
                client: client.as_ref().and_then(|report| report.groups.get(position)),
                servers: servers.iter().filter_map(|report| report.groups.get(position)).collect(),
                datagrams: ended.datagrams.get(position).copied().unwrap_or_default(),
                settings,
            })
            .collect();
        Self {
            profile: profile.name.clone(),
            outcome,
            notes: Vec::new(),
            totals: totals(&groups),
            groups: groups.iter().map(GroupParts::result).collect(),
            machines,
        }
    }
}

/// What is known of a group.
struct GroupParts<'a> {
    group: &'a Group,
    client: Option<&'a GroupReport>,
    servers: Vec<&'a GroupReport>,
    datagrams: Datagrams,
    settings: &'a Settings,
}

fn is_data(flowop: &Flowop) -> bool {
    matches!(
        flowop.action,
        Action::Send(_) | Action::Receive(_) | Action::SendFiles(_) | Action::ReceiveFiles(_)
    )
}

fn sends(flowop: &Flowop) -> Option<bool> {
    match flowop.action {
        Action::Send(_) | Action::SendFiles(_) => Some(true),
        Action::Receive(_) | Action::ReceiveFiles(_) => Some(false),
        _ => None,
    }
}

impl GroupParts<'_> {
    /// The transactions of the data phase, by position.
    fn data(&self) -> impl Iterator<Item = (usize, &Transaction)> {
        let moves = |transaction: &Transaction| transaction.flowops.iter().any(is_data);
        let any = self.group.transactions.iter().any(moves);
        self.group.transactions.iter().enumerate().filter(move |(_, transaction)| !any || moves(transaction))
    }

    fn tally(&self, transaction: usize) -> Option<&TransactionTally> {
        self.client.and_then(|client| client.transactions.get(transaction)).filter(|tally| tally.began < Nanos::MAX)
    }

    fn of_servers(&self, transaction: usize) -> impl Iterator<Item = &TransactionTally> {
        self.servers
            .iter()
            .filter_map(move |server| server.transactions.get(transaction))
            .filter(|tally| tally.began < Nanos::MAX)
    }

    fn result(&self) -> GroupResult {
        let used = |reports: &mut dyn Iterator<Item = &GroupReport>| {
            reports.fold((Usage::default(), Info::default()), |(mut usage, mut info), report| {
                usage.add(report.usage);
                info.add(&report.connections);
                (usage, info)
            })
        };
        let (client_usage, client_connections) = used(&mut self.client.into_iter());
        let (server_usage, server_connections) = used(&mut self.servers.iter().copied());
        let Datagrams { client_sent, server_received, server_sent, client_received } = self.datagrams;
        let datagrams = DatagramCounts {
            client_sent,
            client_lost: client_sent.saturating_sub(server_received),
            server_sent,
            server_lost: server_sent.saturating_sub(client_received),
        };
        GroupResult {
            name: self.group.name.clone(),
            strands: self.group.strands,
            processes: self.group.kind == StrandKind::Process,
            totals: totals(std::slice::from_ref(self)),
            client_usage,
            server_usage,
            client_connections,
            server_connections,
            datagrams: (client_sent + server_sent > 0).then_some(datagrams),
            transactions: self
                .group
                .transactions
                .iter()
                .enumerate()
                .filter_map(|(position, transaction)| self.transaction(position, transaction))
                .collect(),
            threads: self.client.map_or(&[][..], |client| &client.strands).iter().map(thread).collect(),
        }
    }

    fn transaction(&self, position: usize, transaction: &Transaction) -> Option<TransactionResult> {
        let tally = self.tally(position)?;
        let flowops = transaction.flowops.iter().enumerate().filter_map(|(flowop, written)| {
            let client = tally.flowops.get(flowop)?;
            let mut server: Option<FlowopTally> = None;
            for theirs in self.of_servers(position).filter_map(|tally| tally.flowops.get(flowop)) {
                match &mut server {
                    Some(sum) => sum.add(theirs),
                    None => server = Some(theirs.clone()),
                }
            }
            let difference_percent = sends(written).zip(server.as_ref()).and_then(|(sends, server)| {
                let (sent, received) =
                    if sends { (client.bytes, server.bytes) } else { (server.bytes, client.bytes) };
                difference(sent, received)
            });
            Some(FlowopResult {
                name: written.name.clone(),
                client: self.side(client),
                server: server.map(|server| self.side(&server)),
                difference_percent,
            })
        });
        let length = tally.intervals.length as f64 / 1e9;
        let intervals = tally.intervals.times.iter().zip(0..).map(|(times, number)| IntervalLatency {
            at: f64::from(number) * length,
            latency: Latency::of(times),
        });
        Some(TransactionResult {
            name: transaction.name.clone(),
            data: transaction.flowops.iter().any(is_data),
            seconds: seconds(tally),
            rounds: tally.rounds.histogram.len(),
            latency: Latency::of(&tally.rounds),
            response: tally.response.as_ref().and_then(Latency::of),
            lag: tally.lag.as_ref().and_then(Latency::of),
            flowops: flowops.collect(),
            intervals: intervals.collect(),
        })
    }

    fn side(&self, tally: &FlowopTally) -> FlowopSide {
        let word = |number: i32| io::Error::from_raw_os_error(number).to_string();
        let counters = self.settings.counters.iter().cloned().zip(tally.counters.iter().copied());
        FlowopSide {
            count: tally.count,
            bytes: tally.bytes,
            latency: Latency::of(&tally.service),
            response: tally.response.as_ref().and_then(Latency::of),
            lag: tally.lag.as_ref().and_then(Latency::of),
            errors: tally.errors.iter().map(|(&number, &count)| (word(number), count)).collect(),
            timeouts: tally.timeouts,
            late: tally.late,
            cpu_ns: self.settings.flowop_cpu.then_some(tally.cpu),
            counters: counters.collect(),
        }
    }
}

fn totals(groups: &[GroupParts<'_>]) -> Totals {
    let mut totals = Totals::default();
    let mut spans: Vec<(Nanos, Nanos)> = Vec::new();
    let mut times: Option<Times> = None;
    // Received and sent per second, each by the clock of the side that counted it.
    let (mut received_rate, mut sent_rate) = (0.0, 0.0);
    for group in groups {
        // One transaction after the other: rates are of their bytes over their time together.
        let mut sides: BTreeMap<bool, (f64, u64, u64)> = BTreeMap::new();
        for (position, written) in group.data() {
            let Some(client) = group.tally(position) else { continue };
            spans.push((client.began, client.ended));
            let mut add = |server: bool, tally: &TransactionTally| {
                let side = sides.entry(server).or_default();
                side.0 += seconds(tally);
                for (flowop, tally) in written.flowops.iter().zip(&tally.flowops) {
                    match sends(flowop).map(|sends| sends != server) {
                        Some(true) => side.1 += tally.bytes,
                        Some(false) => side.2 += tally.bytes,
                        None => {}
                    }
                }
            };
            add(false, client);
            let mut servers = group.of_servers(position).cloned();
            if let Some(mut first) = servers.next() {
                let longest = servers.fold(seconds(&first), |longest, other| {
                    first.flowops.iter_mut().zip(&other.flowops).for_each(|(mine, theirs)| mine.add(theirs));
                    longest.max(seconds(&other))
                });
                (first.began, first.ended) = (0, (longest * 1e9) as Nanos);
                add(true, &first);
            }
            totals.operations += client.flowops.iter().map(|flowop| flowop.count).sum::<u64>();
            totals.errors += client.flowops.iter().flat_map(|flowop| flowop.errors.values()).sum::<u64>();
            totals.rounds += client.rounds.histogram.len();
            match &mut times {
                Some(times) => times.add(&client.rounds),
                None => times = Some(client.rounds.clone()),
            }
        }
        for (time, sent, received) in sides.into_values() {
            totals.sent_bytes += sent;
            totals.received_bytes += received;
            if time > 0.0 {
                sent_rate += sent as f64 / time;
                received_rate += received as f64 / time;
            }
        }
        let Datagrams { client_sent, server_received, server_sent, client_received } = group.datagrams;
        totals.lost_datagrams +=
            client_sent.saturating_sub(server_received) + server_sent.saturating_sub(client_received);
    }
    totals.seconds = union(spans) as f64 / 1e9;
    let per_second = |count: u64| (totals.seconds > 0.0).then(|| count as f64 / totals.seconds);
    totals.operations_per_second = per_second(totals.operations);
    totals.rounds_per_second = per_second(totals.rounds);
    totals.throughput = (received_rate > 0.0).then_some(received_rate);
    totals.sent_throughput = (sent_rate > 0.0).then_some(sent_rate);
    totals.difference_percent = difference(totals.sent_bytes, totals.received_bytes);
    totals.latency = times.and_then(|times| Latency::of(&times));
    totals
}

/// How long spans cover together.
fn union(mut spans: Vec<(Nanos, Nanos)>) -> Nanos {
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

fn thread(strand: &crate::engine::tally::StrandTally) -> ThreadResult {
    let any = strand.rounds > 0;
    ThreadResult {
        strand: strand.strand,
        operations: strand.operations,
        rounds: strand.rounds,
        sent_bytes: strand.sent,
        received_bytes: strand.received,
        mean_ns: any.then(|| strand.sum as f64 / strand.rounds as f64),
        min_ns: any.then_some(strand.min),
        max_ns: any.then_some(strand.max),
    }
}

fn machine(name: String, address: Option<String>, report: Option<&Report>) -> Machine {
    let mut usage = Usage::default();
    report.into_iter().flat_map(|report| &report.groups).for_each(|group| usage.add(group.usage));
    let executor = match report.map(|report| report.executor) {
        Some(Executor::Threads) => "a thread per strand".to_owned(),
        Some(Executor::Events { threads: 1 }) => "events on 1 thread".to_owned(),
        Some(Executor::Events { threads }) => format!("events on {threads} threads"),
        None => "not known: it did not report".to_owned(),
    };
    Machine {
        name,
        address,
        executor,
        usage,
        interfaces: report.map(|report| report.interfaces.clone()).unwrap_or_default(),
        refused: report.map_or(0, |report| report.refused),
        progress: points(report.map_or(&[][..], |report| &report.progress)),
    }
}

fn points(progress: &[Progress]) -> Vec<ProgressPoint> {
    let Some(first) = progress.first() else { return Vec::new() };
    let pairs = progress.windows(2).filter_map(|pair| <&[Progress; 2]>::try_from(pair).ok());
    pairs
        .filter(|[before, after]| after.at > before.at)
        .map(|[before, after]| ProgressPoint {
            at: (after.at - first.at) as f64 / 1e9,
            seconds: (after.at - before.at) as f64 / 1e9,
            sent_bytes: after.sent - before.sent,
            received_bytes: after.received - before.received,
            operations: after.operations - before.operations,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_between_spans_is_not_counted() {
        assert_eq!(union(vec![(10, 20), (15, 30), (50, 60), (52, 55)]), 30);
    }

    #[test]
    fn nothing_sent_has_no_difference() {
        assert_eq!(difference(0, 0), None);
        assert_eq!(difference(200, 150), Some(25.0));
    }
}

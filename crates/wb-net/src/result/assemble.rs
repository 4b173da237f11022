//! Puts a result together from what the sites of all machines reported.

use std::{collections::BTreeMap, io};

use super::{
    DatagramCounts, FlowopResult, FlowopSide, GroupResult, IntervalLatency, Latency, Machine, NestedLatency, Outcome,
    RunResult, ThreadResult, Totals, TransactionResult, progress::points,
};
use crate::engine::{
    clock::Nanos,
    report::{GroupReport, Report},
    tally::{FlowopTally, TransactionTally},
    times::Times,
    usage::Usage,
    work::{Executor, Settings},
};
use crate::language::{Action, Extent, Flowop, Group, Profile, StrandKind, Transaction};
use crate::session::{
    client::{Made, Run},
    coordinate::{Datagrams, Failure},
};
use crate::transport::Info;

impl RunResult {
    /// Of a run that was made.
    pub fn new(run: &Run, made: Made) -> Self {
        let Made { hosts, ended } = made;
        let (profile, settings) = (&run.profile, &run.settings);
        let names = std::iter::once(("client".to_owned(), None))
            .chain(hosts.into_iter().map(|(name, address)| (name, Some(address.to_string()))));
        let names: Vec<(String, Option<String>)> = names.collect();
        let mut reports = ended.reports;
        let machines: Vec<Machine> = names
            .into_iter()
            .zip(&reports)
            .map(|((name, address), report)| machine(profile, name, address, report.as_ref()))
            .collect();
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
        let cut: Vec<String> = if run.limit.is_some() && ended.fault.is_none() {
            let (parts, known) = (groups.iter().enumerate(), &ended.cut);
            parts.flat_map(|(position, group)| group.cut(move |at| known.contains(&(position, at)))).collect()
        } else {
            Vec::new()
        };
        let outcome = match ended.fault {
            None if cut.is_empty() => Outcome::Completed,
            None => Outcome::Cut,
            Some(failure) => failed(failure),
        };
        Self {
            profile: profile.name.clone(),
            seed: run.seed,
            outcome,
            notes: cut,
            totals: totals(groups.iter().map(|group| (group, group.data().collect()))),
            groups: groups.iter().map(GroupParts::result).collect(),
            machines,
        }
    }
}

fn failed(failure: Failure) -> Outcome {
    let why = failure.to_string();
    match failure {
        Failure::Interrupted => Outcome::Interrupted,
        Failure::Fault { fault, .. } if fault.unsupported => Outcome::Unsupported { why },
        Failure::Fault { .. } => Outcome::Failed { why },
        Failure::Lost { .. } => Outcome::Lost { why },
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
    matches!(flowop.action, Action::Send(_) | Action::Receive(_) | Action::SendFiles(_) | Action::ReceiveFiles(_))
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
    fn data(&self) -> impl Iterator<Item = usize> {
        data_phase(self.group)
    }

    /// Which transactions did not come to their own end, in words.
    fn cut(&self, is_known: impl Fn(usize) -> bool) -> impl Iterator<Item = String> {
        let transactions = self.group.transactions.iter().enumerate();
        transactions.filter_map(move |(position, transaction)| {
            let tally = self.tally(position)?;
            let name = format!("group {}, {}", self.group.name, transaction.name);
            match transaction.extent {
                Extent::Window(window) if is_known(position) => {
                    Some(format!("{name}: cut after {} s of {} s", rounded(seconds(tally)), window.as_secs_f64()))
                }
                Extent::Iterations(each) if !self.settings.bare => {
                    let (wanted, done) = (each.saturating_mul(self.group.strands.into()), tally.rounds.count());
                    (done < wanted).then(|| {
                        format!("{name}: cut after {} s, {done} of {wanted} rounds were done", rounded(seconds(tally)))
                    })
                }
                _ => None,
            }
        })
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
            totals: totals([(self, self.data().collect())]),
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
        let totals = totals([(self, vec![position])]);
        let longest = self.of_servers(position).map(seconds).fold(0.0, f64::max);
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
                let (sent, received) = if sends { (client.bytes, server.bytes) } else { (server.bytes, client.bytes) };
                difference(sent, received)
            });
            Some(FlowopResult {
                name: written.name.clone(),
                client: self.side(client, seconds(tally)),
                server: server.map(|server| self.side(&server, longest)),
                difference_percent,
            })
        });
        let length = tally.intervals.length as f64 / 1e9;
        let intervals = tally
            .intervals
            .times
            .iter()
            .zip(0..)
            .map(|(times, number)| IntervalLatency { at: f64::from(number) * length, latency: Latency::of(times) });
        Some(TransactionResult {
            name: transaction.name.clone(),
            data: transaction.flowops.iter().any(is_data),
            seconds: seconds(tally),
            sent_bytes: totals.sent_bytes,
            received_bytes: totals.received_bytes,
            throughput: totals.throughput,
            operations: totals.operations,
            operations_per_second: totals.operations_per_second,
            rounds: (!self.settings.bare).then(|| tally.rounds.count()),
            latency: Latency::of(&tally.rounds),
            response: tally.response.as_ref().and_then(Latency::of),
            lag: tally.lag.as_ref().and_then(Latency::of),
            flowops: flowops.collect(),
            intervals: intervals.collect(),
            nested: NestedLatency::of(&tally.rounds, &tally.intervals),
        })
    }

    fn side(&self, tally: &FlowopTally, seconds: f64) -> FlowopSide {
        let word = |number: i32| io::Error::from_raw_os_error(number).to_string();
        let counters = self.settings.counters.iter().cloned().zip(tally.counters.iter().copied());
        FlowopSide {
            count: tally.count,
            bytes: tally.bytes,
            throughput: (tally.bytes > 0 && seconds > 0.0).then(|| tally.bytes as f64 / seconds),
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

/// What a side of a group moved.
#[derive(Default)]
struct Moved {
    /// How long, by the clock of the side that counted
    seconds: f64,
    /// The same by the client's clock
    by_client: f64,
    /// Bytes
    sent: u64,
    /// Bytes
    received: u64,
}

/// Of these transactions of groups.
fn totals<'a>(groups: impl IntoIterator<Item = (&'a GroupParts<'a>, Vec<usize>)>) -> Totals {
    let mut totals = Totals::default();
    let mut spans: Vec<(Nanos, Nanos)> = Vec::new();
    let mut times: Option<Times> = None;
    let mut moved: Vec<Moved> = Vec::new();
    for (group, positions) in groups {
        // One transaction after the other: rates are of their bytes over their time together.
        let mut sides: BTreeMap<bool, Moved> = BTreeMap::new();
        let mut by_client = 0.0;
        for position in positions {
            let (Some(client), Some(written)) = (group.tally(position), group.group.transactions.get(position)) else {
                continue;
            };
            spans.push((client.began, client.ended));
            by_client += seconds(client);
            let mut add = |server: bool, tally: &TransactionTally| {
                let side = sides.entry(server).or_default();
                side.seconds += seconds(tally);
                for (flowop, tally) in written.flowops.iter().zip(&tally.flowops) {
                    match sends(flowop).map(|sends| sends != server) {
                        Some(true) => side.sent += tally.bytes,
                        Some(false) => side.received += tally.bytes,
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
            for flowop in group.of_servers(position).chain([client]).flat_map(|tally| &tally.flowops) {
                totals.errors += flowop.errors.values().sum::<u64>();
                totals.timeouts += flowop.timeouts;
                totals.late += flowop.late;
            }
            totals.rounds += client.rounds.count();
            match &mut times {
                Some(times) => times.add(&client.rounds),
                None => times = Some(client.rounds.clone()),
            }
        }
        if group.settings.bare {
            totals.rounds +=
                group.client.iter().flat_map(|client| &client.strands).map(|strand| strand.rounds).sum::<u64>();
        }
        moved.extend(sides.into_values().map(|side| Moved { by_client, ..side }));
        let Datagrams { client_sent, server_received, server_sent, client_received } = group.datagrams;
        totals.lost_datagrams +=
            client_sent.saturating_sub(server_received) + server_sent.saturating_sub(client_received);
    }
    totals.seconds = covered(spans) as f64 / 1e9;
    let (mut received_rate, mut sent_rate) = (0.0, 0.0);
    for Moved { seconds, by_client, sent, received } in moved {
        totals.sent_bytes += sent;
        totals.received_bytes += received;
        if seconds > 0.0 && totals.seconds > 0.0 {
            // Groups that run one after the other do not add up to more than ever flowed.
            let share = by_client / totals.seconds;
            sent_rate += sent as f64 / seconds * share;
            received_rate += received as f64 / seconds * share;
        }
    }
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
fn covered(mut spans: Vec<(Nanos, Nanos)>) -> Nanos {
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

fn machine(profile: &Profile, name: String, address: Option<String>, report: Option<&Report>) -> Machine {
    let mut usage = Usage::default();
    report.into_iter().flat_map(|report| &report.groups).for_each(|group| usage.add(group.usage));
    let executor = match report.map(|report| report.executor) {
        Some(Executor::Threads) => "a thread each".to_owned(),
        Some(Executor::Events { threads: 1 }) => "events on 1 thread".to_owned(),
        Some(Executor::Events { threads }) => format!("events on {threads} threads"),
        None => "not known: it did not report".to_owned(),
    };
    let spans = report.map_or_else(Vec::new, |report| spans(profile, report));
    let whole = (spans.iter().map(|span| span.0).min(), spans.iter().map(|span| span.1).max());
    let progress = report.map_or(&[][..], |report| &report.progress);
    let last = progress.last().copied().unwrap_or_default();
    let time = covered(spans);
    Machine {
        name,
        address,
        executor,
        usage,
        cpu_percent: (time > 0).then(|| (usage.user_ns + usage.system_ns) as f64 / time as f64 * 100.0),
        sent_bytes: last.sent,
        received_bytes: last.received,
        counted: report.map(|report| report.counted.clone()).unwrap_or_default(),
        refused: report.map_or(0, |report| report.refused),
        progress: whole.0.zip(whole.1).map(|whole| points(progress, whole)).unwrap_or_default(),
    }
}

/// When transactions of the data phase were carried out, by the clock of the machine that reports.
fn spans(profile: &Profile, report: &Report) -> Vec<(Nanos, Nanos)> {
    let groups = profile.groups.iter().zip(&report.groups);
    groups
        .flat_map(|(group, report)| data_phase(group).filter_map(|position| report.transactions.get(position)))
        .filter(|tally| tally.began < Nanos::MAX)
        .map(|tally| (tally.began, tally.ended))
        .collect()
}

/// The transactions of a group's data phase, by position: those that move data, or all if none does.
fn data_phase(group: &Group) -> impl Iterator<Item = usize> {
    let moves = |transaction: &Transaction| transaction.flowops.iter().any(is_data);
    let any = group.transactions.iter().any(moves);
    let transactions = group.transactions.iter().enumerate();
    transactions.filter(move |(_, transaction)| !any || moves(transaction)).map(|(position, _)| position)
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_between_spans_is_not_counted() {
        assert_eq!(covered(vec![(10, 20), (15, 30), (50, 60), (52, 55)]), 30);
    }

    #[test]
    fn nothing_sent_has_no_difference() {
        assert_eq!(difference(0, 0), None);
        assert_eq!(difference(200, 150), Some(25.0));
    }
}

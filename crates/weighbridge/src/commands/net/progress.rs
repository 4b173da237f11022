//! What is told while a run goes: a line per interval of the data phase.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use wb_net::{
    engine::{clock, protocol::EngineProgress, raw_log::LatencyRecord},
    language::{Extent, FlowopAction, NetProfile, Transaction},
    mirror,
    result::{ProgressPoint, RunResult},
    session::{client::ClientRun, coordinator::RunObserver},
};
use wb_report::net::progress::{IntervalRates, interval_line, transaction_start_line};

use super::super::print_text;
use super::response_log::ResponseLog;

/// How progress is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressFormat {
    /// Not at all.
    Silent,
    /// For people, times with so many decimals; transactions by name, too.
    Lines { decimals: usize, names: bool },
    /// For programs: counts since the run began, with the time of day.
    Stamped,
}

/// Tells of progress and keeps response times.
pub(super) struct ProgressPrinter<'a> {
    profile: &'a NetProfile,
    format: ProgressFormat,
    run_start: u64,
    data_start: Option<u64>,
    /// When the windows that are under way end; 0 where that is open.
    data_end: u64,
    limit: Option<Duration>,
    /// By group.
    current_transactions: Vec<usize>,
    interval: Duration,
    /// Up to where lines were told, in seconds after the data phase began.
    printed_until: f64,
    machines: usize,
    /// By host; the client has none.
    progress_by_host: BTreeMap<Option<String>, MachineProgress>,
    responses: Option<&'a mut ResponseLog>,
}

/// How far a machine is.
#[derive(Default)]
struct MachineProgress {
    /// What was told of it last.
    last: Option<EngineProgress>,
    /// What is to be told next, and when it came.
    pending: Option<(EngineProgress, u64)>,
}

impl<'a> ProgressPrinter<'a> {
    /// Nothing has happened yet.
    pub(super) fn new(run: &'a ClientRun, format: ProgressFormat, responses: Option<&'a mut ResponseLog>) -> Self {
        let profile = &run.profile;
        Self {
            profile,
            format,
            run_start: clock::now(),
            data_start: None,
            data_end: 0,
            limit: run.limit,
            current_transactions: vec![0; profile.groups.len()],
            interval: Duration::from_nanos(run.settings.progress_interval),
            printed_until: 0.0,
            machines: 1 + mirror::hosts(profile).len(),
            progress_by_host: BTreeMap::new(),
            responses,
        }
    }

    /// Whether a group is in its data phase or has it before it.
    fn is_in_data_phase(&self) -> bool {
        let mut groups = self.profile.groups.iter().zip(&self.current_transactions);
        groups.any(|(group, running)| {
            group.transactions.iter().skip(*running).any(|part| is_data_transaction(self.profile, part))
        })
    }

    fn print_interval(&mut self) {
        let Some(data_began) = self.data_start else { return };
        let mut tick = IntervalRates { at: 0.0, received: Some(0.0), sent: Some(0.0), operations: None };
        if self.progress_by_host.values().filter(|party| party.pending.is_some()).count() < self.machines {
            // What one machine does not say is not known of all together.
            (tick.received, tick.sent) = (None, None);
        }
        for (host, party) in &mut self.progress_by_host {
            let Some((now, arrived)) = party.pending.take() else { continue };
            // By this machine's clock, which a server's is not.
            let here = |at: u64| if host.is_none() { at } else { at.saturating_add(arrived).saturating_sub(now.time) };
            let before = party.last.replace(now);
            let from = before.map_or(data_began, |before| here(before.time).max(data_began));
            let until = if self.data_end > from { here(now.time).min(self.data_end) } else { here(now.time) };
            let seconds = until.saturating_sub(from) as f64 / 1e9;
            let before = before.unwrap_or_default();
            let rate = |now: u64, before: u64| (seconds > 0.0).then(|| now.saturating_sub(before) as f64 / seconds);
            let sum = |sum: Option<f64>, rate: Option<f64>| sum.zip(rate).map(|(sum, rate)| sum + rate);
            tick.received = sum(tick.received, rate(now.received, before.received));
            tick.sent = sum(tick.sent, rate(now.sent, before.sent));
            if host.is_none() {
                tick.operations = rate(now.operations, before.operations);
                tick.at = until.saturating_sub(data_began) as f64 / 1e9;
                self.printed_until = tick.at;
            }
        }
        if let (ProgressFormat::Lines { decimals, .. }, true) = (self.format, tick.operations.is_some()) {
            print_ignoring_errors(&interval_line(&tick, decimals));
        }
    }

    /// What the lines have not told yet: the interval that the end of the run cut.
    pub(super) fn finish(&self, result: &RunResult) {
        match self.format {
            ProgressFormat::Silent => {}
            ProgressFormat::Stamped => {
                let machines = || result.machines.iter();
                let (received, sent) =
                    (machines().map(|one| one.received_bytes).sum(), machines().map(|one| one.sent_bytes).sum());
                let progress = machines().next().into_iter().flat_map(|client| &client.progress);
                let operations = progress.map(|point| point.operations).sum();
                print_timestamp_line(&self.transaction_names(), &RunCounters { received, sent, operations });
            }
            ProgressFormat::Lines { decimals, .. } => {
                if let Some(tick) = self.remaining_interval(result) {
                    print_ignoring_errors(&interval_line(&tick, decimals));
                }
            }
        }
    }

    /// What all machines did after the last line.
    fn remaining_interval(&self, result: &RunResult) -> Option<IntervalRates> {
        // A machine's clock is not this one's: what ended by a tenth of an interval later has been told.
        let told = self.printed_until + self.interval.as_secs_f64() / 10.0;
        let rates = result.machines.iter().map(|machine| {
            let rest: Vec<_> = machine.progress.iter().filter(|point| point.end_seconds > told).collect();
            let seconds: f64 = rest.iter().map(|point| point.seconds).sum();
            let rate = |of: fn(&ProgressPoint) -> u64| {
                (seconds > 0.0).then(|| rest.iter().map(|point| of(point)).sum::<u64>() as f64 / seconds)
            };
            let end = rest.last().map(|point| point.end_seconds);
            (end, rate(|point| point.received_bytes), rate(|point| point.sent_bytes), rate(|point| point.operations))
        });
        let rates: Vec<_> = rates.collect();
        let &(at, _, _, operations) = rates.first()?;
        let received = rates.iter().map(|(_, received, ..)| *received).sum();
        Some(IntervalRates { at: at?, received, sent: rates.iter().map(|(_, _, sent, _)| *sent).sum(), operations })
    }

    /// Counts as far as they have been told.
    fn print_timestamp(&self, name: &str) {
        let known = || self.progress_by_host.values().filter_map(|party| party.last);
        let operations =
            self.progress_by_host.get(&None).and_then(|client| client.last).map_or(0, |told| told.operations);
        let (received, sent) = (known().map(|known| known.received).sum(), known().map(|known| known.sent).sum());
        print_timestamp_line(name, &RunCounters { received, sent, operations });
    }

    /// The transactions that groups are in, each name once.
    fn transaction_names(&self) -> String {
        let groups = self.profile.groups.iter().zip(&self.current_transactions);
        let mut names: Vec<&str> =
            groups.filter_map(|(group, running)| Some(group.transactions.get(*running)?.name.as_str())).collect();
        names.dedup();
        names.join("+")
    }
}

impl RunObserver for ProgressPrinter<'_> {
    fn on_progress(&mut self, host: Option<&str>, progress: EngineProgress) {
        let on = self.data_start.is_some() && self.is_in_data_phase();
        let waits = self.progress_by_host.get(&host.map(str::to_owned)).is_some_and(|party| party.pending.is_some());
        if on && waits && self.format != ProgressFormat::Stamped {
            self.print_interval();
        }
        let party = self.progress_by_host.entry(host.map(str::to_owned)).or_default();
        if !on || self.format == ProgressFormat::Stamped {
            party.last = Some(progress);
            if on && host.is_none() {
                self.print_timestamp(&self.transaction_names());
            }
            return;
        }
        party.pending = Some((progress, clock::now()));
        if self.progress_by_host.values().filter(|party| party.pending.is_some()).count() == self.machines {
            self.print_interval();
        }
    }

    fn on_transaction(&mut self, group: usize, transaction: usize) {
        if let Some(running) = self.current_transactions.get_mut(group) {
            *running = transaction;
        }
        let Some(of) = self.profile.groups.get(group) else { return };
        let Some(next) = of.transactions.get(transaction) else { return };
        if is_data_transaction(self.profile, next) {
            let now = clock::now();
            self.data_start.get_or_insert(now);
            self.data_end = match next.extent {
                Extent::Window(window) => {
                    let longest = self.limit.map_or(window, |limit| limit.min(window));
                    self.data_end.max(now.saturating_add(clock::nanos(longest)))
                }
                Extent::Iterations(_) => 0,
            };
        }
        match self.format {
            ProgressFormat::Lines { decimals, names: true } if of.transactions.len() > 1 => {
                let group = if self.profile.groups.len() > 1 { format!("{} ", of.name) } else { String::new() };
                let flowops: Vec<&str> = next.flowops.iter().map(|flowop| flowop.name.as_str()).collect();
                let from = self.data_start.unwrap_or(clock::now().max(self.run_start));
                let at = clock::now().saturating_sub(from) as f64 / 1e9;
                print_ignoring_errors(&transaction_start_line(
                    at,
                    decimals,
                    &format!("{group}{} ({})", next.name, flowops.join(", ")),
                ));
            }
            ProgressFormat::Stamped => self.print_timestamp(&next.name),
            _ => {}
        }
    }

    fn on_latencies(&mut self, times: &[LatencyRecord]) {
        if let Some(responses) = &mut self.responses {
            responses.append(self.run_start, times);
        }
    }
}

/// Whether a transaction is part of the data phase: it moves data, or none does.
fn is_data_transaction(profile: &NetProfile, transaction: &Transaction) -> bool {
    let moves = |transaction: &Transaction| {
        transaction.flowops.iter().any(|flowop| {
            matches!(
                flowop.action,
                FlowopAction::Send(_)
                    | FlowopAction::Receive(_)
                    | FlowopAction::SendFiles(_)
                    | FlowopAction::ReceiveFiles(_)
            )
        })
    };
    moves(transaction) || !profile.groups.iter().flat_map(|group| &group.transactions).any(moves)
}

/// Counts since the run began.
struct RunCounters {
    received: u64,
    sent: u64,
    operations: u64,
}

/// As uperf writes them.
fn print_timestamp_line(name: &str, RunCounters { received, sent, operations }: &RunCounters) {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
    print_ignoring_errors(&format!(
        "timestamp_ms:{millis:.4} name:{name} nr_bytes:{received} nr_ops:{operations} sent_bytes:{sent}\n"
    ));
}

/// Whoever has stopped reading does not stop the run.
fn print_ignoring_errors(text: &str) {
    let _: Result<(), _> = print_text(text);
}

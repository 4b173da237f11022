//! Prints the progress of a network run: one line per interval of the data phase.

use std::{collections::BTreeMap, time::Duration};

use wb_net::{
    engine::{clock, protocol::EngineProgress, raw_log::LatencyRecord},
    language::{Extent, FlowopAction, NetProfile, Transaction},
    mirror,
    result::{CLOCK_TOLERANCE, ProgressPoint, RunResult, SentByInterval},
    session::{client::ClientRun, coordinator::RunObserver},
};
use wb_report::net::progress::{IntervalRates, interval_line, transaction_start_line};

use super::response_log::ResponseLog;
use crate::output::print_text;

/// Format of the progress output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressFormat {
    /// No output.
    Silent,
    /// Lines for people, with this many decimals of times and optionally the names of transactions.
    Lines { decimals: usize, names: bool },
    /// Lines for programs, as in uperf, by [`TransactionProgress`](super::uperf::TransactionProgress).
    Timestamped,
}

/// Prints the progress of a run and records response times.
pub(super) struct ProgressPrinter<'a> {
    profile: &'a NetProfile,
    format: ProgressFormat,
    run_start: u64,
    data_start: Option<u64>,
    /// When the current windows end; 0 if unknown.
    data_end: u64,
    limit: Option<Duration>,
    /// Index of the current transaction, by group.
    current_transactions: Vec<usize>,
    interval: Duration,
    /// End of the last printed interval, in seconds after the start of the data phase.
    printed_until: f64,
    sent: SentByInterval,
    machines: usize,
    /// By host; `None` is the client.
    progress_by_host: BTreeMap<Option<String>, MachineProgress>,
    responses: Option<&'a mut ResponseLog>,
}

/// Progress of one machine: last printed and next pending counters.
#[derive(Default)]
struct MachineProgress {
    /// The counters printed last.
    last: Option<EngineProgress>,
    /// The counters to print next, and when they arrived.
    pending: Option<(EngineProgress, u64)>,
}

impl<'a> ProgressPrinter<'a> {
    /// Starts observing a run.
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
            sent: SentByInterval::default(),
            machines: 1 + mirror::hosts(profile).len(),
            progress_by_host: BTreeMap::new(),
            responses,
        }
    }

    /// Whether the data phase of any group is in progress or still to come.
    fn is_in_data_phase(&self) -> bool {
        let mut groups = self.profile.groups.iter().zip(&self.current_transactions);
        groups.any(|(group, running)| {
            group.transactions.iter().skip(*running).any(|part| is_data_transaction(self.profile, part))
        })
    }

    fn print_interval(&mut self) {
        let Some(data_began) = self.data_start else { return };
        let printed_until = self.printed_until;
        let mut tick = IntervalRates { at: 0.0, received: Some(0.0), sent: Some(0.0), operations: None };
        if self.progress_by_host.values().filter(|party| party.pending.is_some()).count() < self.machines {
            // Without the counters of one machine, the totals are unknown.
            (tick.received, tick.sent) = (None, None);
        }
        for (host, party) in &mut self.progress_by_host {
            let Some((now, arrived)) = party.pending.take() else { continue };
            // Convert to this machine's clock, which a server does not share.
            let to_local =
                |at: u64| if host.is_none() { at } else { at.saturating_add(arrived).saturating_sub(now.time) };
            let previous = party.last.replace(now);
            let from = previous.map_or(data_began, |previous| to_local(previous.time).max(data_began));
            let until = if self.data_end > from { to_local(now.time).min(self.data_end) } else { to_local(now.time) };
            let seconds = until.saturating_sub(from) as f64 / 1e9;
            let previous = previous.unwrap_or_default();
            let rate = |now: u64, previous: u64| (seconds > 0.0).then(|| now.saturating_sub(previous) as f64 / seconds);
            let sum = |sum: Option<f64>, rate: Option<f64>| sum.zip(rate).map(|(sum, rate)| sum + rate);
            tick.received = sum(tick.received, rate(now.received, previous.received));
            tick.sent = sum(tick.sent, rate(now.sent, previous.sent));
            if host.is_none() {
                tick.operations = rate(now.operations, previous.operations);
                tick.at = until.saturating_sub(data_began) as f64 / 1e9;
                self.printed_until = tick.at;
            }
        }
        if let (Some(received), Some(sent)) = (tick.received, &mut tick.sent) {
            let seconds = tick.at - printed_until;
            if seconds > 0.0 {
                *sent = self.sent.next(*sent * seconds, received * seconds) / seconds;
            }
        }
        if let (ProgressFormat::Lines { decimals, .. }, true) = (self.format, tick.operations.is_some()) {
            print_ignoring_errors(&interval_line(&tick, decimals));
        }
    }

    /// Prints the final totals, or the last interval, which the end of the run cut short.
    pub(super) fn finish(&self, result: &RunResult) {
        match self.format {
            ProgressFormat::Silent | ProgressFormat::Timestamped => {}
            ProgressFormat::Lines { decimals, .. } => {
                if let Some(tick) = self.remaining_interval(result) {
                    print_ignoring_errors(&interval_line(&tick, decimals));
                }
            }
        }
    }

    /// Rates of all machines after the last printed line.
    fn remaining_interval(&self, result: &RunResult) -> Option<IntervalRates> {
        // Clocks differ between machines: points up to a tenth of an interval later count as printed.
        let printed = self.printed_until + self.interval.as_secs_f64() * CLOCK_TOLERANCE;
        let rates = result.machines.iter().map(|machine| {
            let rest: Vec<_> = machine.progress.iter().filter(|point| point.end_seconds > printed).collect();
            let seconds: f64 = rest.iter().map(|point| point.seconds).sum();
            let rate = |counter: fn(&ProgressPoint) -> u64| {
                (seconds > 0.0).then(|| rest.iter().map(|point| counter(point)).sum::<u64>() as f64 / seconds)
            };
            let end = rest.last().map(|point| point.end_seconds);
            (end, rate(|point| point.received_bytes), rate(|point| point.sent_bytes), rate(|point| point.operations))
        });
        let rates: Vec<_> = rates.collect();
        let &(at, _, _, operations) = rates.first()?;
        let received: Option<f64> = rates.iter().map(|(_, received, ..)| *received).sum();
        let sent: Option<f64> = rates.iter().map(|(_, _, sent, _)| *sent).sum();
        // The machines' windows end at slightly different times.
        let sent = sent.zip(received).map(|(sent, received)| sent.max(received));
        Some(IntervalRates { at: at?, received, sent, operations })
    }
}

impl RunObserver for ProgressPrinter<'_> {
    fn on_progress(&mut self, host: Option<&str>, progress: EngineProgress) {
        let in_data_phase = self.data_start.is_some() && self.is_in_data_phase();
        let is_pending =
            self.progress_by_host.get(&host.map(str::to_owned)).is_some_and(|party| party.pending.is_some());
        if in_data_phase && is_pending {
            self.print_interval();
        }
        let party = self.progress_by_host.entry(host.map(str::to_owned)).or_default();
        if !in_data_phase {
            party.last = Some(progress);
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
        let Some(definition) = self.profile.groups.get(group) else { return };
        let Some(next) = definition.transactions.get(transaction) else { return };
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
            ProgressFormat::Lines { decimals, names: true } if definition.transactions.len() > 1 => {
                let group = if self.profile.groups.len() > 1 { format!("{} ", definition.name) } else { String::new() };
                let flowops: Vec<&str> = next.flowops.iter().map(|flowop| flowop.name.as_str()).collect();
                let from = self.data_start.unwrap_or(clock::now().max(self.run_start));
                let at = clock::now().saturating_sub(from) as f64 / 1e9;
                print_ignoring_errors(&transaction_start_line(
                    at,
                    decimals,
                    &format!("{group}{} ({})", next.name, flowops.join(", ")),
                ));
            }
            _ => {}
        }
    }

    fn on_latencies(&mut self, times: &[LatencyRecord]) {
        if let Some(responses) = &mut self.responses {
            responses.append(self.run_start, times);
        }
    }
}

/// Whether a transaction belongs to the data phase: it moves data, or no transaction of the profile does.
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

/// Prints text, ignoring errors: a closed pipe does not stop the run.
fn print_ignoring_errors(text: &str) {
    let _: Result<(), _> = print_text(text);
}

//! Prints the progress of a network run: one line per interval of the data phase.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use wb_net::{
    engine::{clock, protocol::EngineProgress, raw_log::LatencyRecord},
    result::{CLOCK_TOLERANCE, SentByInterval},
    session::{client::ClientRun, coordinator::RunObserver},
};
use wb_net_profile::{Extent, FlowopAction, NetProfile, Transaction, mirror};
use wb_report::net::progress::{IntervalRates, interval_line, transaction_start_line};
use wb_results::net::{RunResult, Totals};

use super::response_log::ResponseLog;
use crate::output::print_text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressFormat {
    Silent,
    /// Lines for people, with this many decimals of times and optionally the names of transactions.
    Lines {
        decimals: usize,
        names: bool,
    },
    /// Lines for programs, as in uperf, by [`TransactionProgress`](super::uperf::TransactionProgress).
    Timestamped,
}

/// Prints the progress of a run and records response times. The lines add up to the totals: each has what all machines
/// counted in it, and waits for the machine that reports last; the last line has what no earlier line has. What waited
/// in socket buffers may be in two lines as sent, so that none has less sent than received.
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
    printed: Printed,
    sent: SentByInterval,
    machines: usize,
    /// Progress of each host; `None` is the client.
    progress_by_host: BTreeMap<Option<String>, MachineProgress>,
    responses: Option<&'a mut ResponseLog>,
}

/// Sums over all printed lines: bytes received and sent, and flowops of the client.
#[derive(Debug, Default)]
struct Printed {
    /// The end of the last one, in seconds after the start of the data phase.
    until: f64,
    received: f64,
    sent: f64,
    operations: f64,
}

#[derive(Default)]
struct MachineProgress {
    /// The counters up to which its figures are printed.
    printed: EngineProgress,
    /// The counters at the ends of later intervals, in order.
    waiting: VecDeque<EngineProgress>,
}

impl MachineProgress {
    /// Bytes received and sent and flowops in the next interval.
    fn next(&mut self) -> Option<[f64; 3]> {
        let now = self.waiting.pop_front()?;
        let before = std::mem::replace(&mut self.printed, now);
        let counts = |progress: EngineProgress| [progress.received, progress.sent, progress.operations];
        let [now, before] = [now, before].map(counts);
        Some(std::array::from_fn(|index| now[index].saturating_sub(before[index]) as f64))
    }
}

impl<'a> ProgressPrinter<'a> {
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
            printed: Printed::default(),
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

    /// The next interval that all machines have reported. What ends with a window is left to the last line, because
    /// bytes may be counted behind it.
    fn next_interval(&mut self) -> Option<IntervalRates> {
        let data_began = self.data_start?;
        let end = self.progress_by_host.get(&None)?.waiting.front()?.time;
        let rest = clock::nanos(self.interval.mul_f64(CLOCK_TOLERANCE));
        let is_last = self.data_end > 0 && end.saturating_add(rest) >= self.data_end;
        let complete = self.progress_by_host.values().filter(|machine| !machine.waiting.is_empty()).count();
        if is_last || complete < self.machines {
            return None;
        }
        let (mut received, mut sent, mut operations) = (0.0, 0.0, 0.0);
        for (host, machine) in &mut self.progress_by_host {
            let [of_machine, sent_by_machine, executed] = machine.next()?;
            received += of_machine;
            sent += sent_by_machine;
            operations += if host.is_none() { executed } else { 0.0 };
        }
        let sent = self.sent.next(sent, received);
        self.line(end.saturating_sub(data_began) as f64 / 1e9, received, sent, operations)
    }

    /// The line of what was counted from the last line until `at`.
    fn line(&mut self, at: f64, received: f64, sent: f64, operations: f64) -> Option<IntervalRates> {
        let seconds = at - self.printed.until;
        let printed = &mut self.printed;
        printed.until = at;
        printed.received += received;
        printed.sent += sent;
        printed.operations += operations;
        let rate = |count: f64| Some(count.max(0.0) / seconds);
        (seconds > 0.0).then(|| IntervalRates {
            at,
            received: rate(received),
            sent: rate(sent),
            operations: rate(operations),
        })
    }

    pub(super) fn finish(&mut self, result: &RunResult) {
        let last = self.last_interval(&result.totals);
        self.show(last);
    }

    /// The last interval: the part of the totals that is in no earlier one.
    fn last_interval(&mut self, totals: &Totals) -> Option<IntervalRates> {
        // After a number of iterations a last line may have ended with the run.
        let rest = self.interval.as_secs_f64() * CLOCK_TOLERANCE;
        let Printed { until, received, sent, operations } = self.printed;
        let remaining = |total: u64, printed: f64| (total as f64 - printed).max(0.0);
        let received = remaining(totals.received_bytes, received);
        // Earlier lines may have as sent what waited in socket buffers until now.
        let sent = remaining(totals.sent_bytes, sent).max(received);
        let operations = remaining(totals.operations, operations);
        (totals.seconds - until > rest).then(|| self.line(totals.seconds, received, sent, operations))?
    }

    fn add(&mut self, host: Option<&str>, progress: EngineProgress) {
        let began = self.data_start.filter(|_| self.is_in_data_phase());
        let early = clock::nanos(self.interval / 2);
        let machine = self.progress_by_host.entry(host.map(str::to_owned)).or_default();
        match began {
            None => machine.printed = progress,
            // Intervals begin anew with the data phase: this is the end of one before, and what it has is the first one's.
            Some(began) if clock::now() < began.saturating_add(early) => {}
            Some(_) => machine.waiting.push_back(progress),
        }
    }

    fn show(&self, tick: Option<IntervalRates>) {
        if let (ProgressFormat::Lines { decimals, .. }, Some(tick)) = (self.format, tick) {
            print_ignoring_errors(&interval_line(&tick, decimals));
        }
    }
}

impl RunObserver for ProgressPrinter<'_> {
    fn on_progress(&mut self, host: Option<&str>, progress: EngineProgress) {
        self.add(host, progress);
        while let Some(tick) = self.next_interval() {
            self.show(Some(tick));
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
                let seconds = clock::now().saturating_sub(from) as f64 / 1e9;
                print_ignoring_errors(&transaction_start_line(
                    seconds,
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

/// Whether a transaction belongs to the data phase: it moves data and is measured, or no transaction of the profile
/// moves any.
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
    !transaction.warm_up && moves(transaction)
        || !profile.groups.iter().flat_map(|group| &group.transactions).any(moves)
}

/// Prints text, ignoring errors: a closed pipe does not stop the run.
fn print_ignoring_errors(text: &str) {
    let _: Result<(), _> = print_text(text);
}

#[cfg(test)]
mod tests {
    use wb_net_profile::presets::{PresetConfig, stream};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Lines of a run of 3 s in which the client streams 100 bytes a second to the server. `reports` are in the order
    /// of their arrival, each with the host, the second and the bytes counted until then.
    fn lines(reports: &[(Option<&str>, u64, u64)], totals: &Totals) -> Vec<IntervalRates> {
        let profile = stream(&PresetConfig::new("h"), 10);
        let began = clock::now().saturating_sub(10 * SECOND);
        let mut printer = ProgressPrinter {
            profile: &profile,
            format: ProgressFormat::Silent,
            run_start: began,
            data_start: Some(began),
            data_end: began + 3 * SECOND,
            limit: None,
            current_transactions: vec![1],
            interval: Duration::from_secs(1),
            printed: Printed::default(),
            sent: SentByInterval::default(),
            machines: 2,
            progress_by_host: BTreeMap::new(),
            responses: None,
        };
        let mut lines = Vec::new();
        for (host, second, bytes) in reports {
            // Clocks of other machines have another zero.
            let time = if host.is_none() { began + second * SECOND } else { second * SECOND };
            let (sent, received) = if host.is_none() { (*bytes, 0) } else { (0, *bytes) };
            printer.add(*host, EngineProgress { time, sent, received, operations: bytes / 10 });
            lines.extend(std::iter::from_fn(|| printer.next_interval()));
        }
        lines.extend(printer.last_interval(totals));
        lines
    }

    #[test]
    fn lines_add_up_to_the_totals_however_late_a_server_reports() {
        let (client, server) = (None, Some("h"));
        // The last block is counted after the last report.
        let totals = Totals { seconds: 3.0, sent_bytes: 310, received_bytes: 310, operations: 31, ..Totals::default() };
        let prompt = [(client, 1, 100), (server, 1, 100), (client, 2, 200), (server, 2, 190), (client, 3, 300)];
        let late = [(client, 1, 100), (client, 2, 200), (server, 1, 100), (client, 3, 300), (server, 2, 190)];
        for reports in [&prompt[..], &late, &[&prompt[..], &[(server, 3, 300)]].concat(), &late[..4], &late[..1]] {
            let lines = lines(reports, &totals);
            let mut before = 0.0;
            let mut sums = [0.0; 2];
            for line in &lines {
                assert!(line.sent >= line.received, "{line:?}");
                let rates = [line.received, line.operations].map(|rate| rate.unwrap());
                sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate * (line.at - before));
                before = line.at;
            }
            assert_eq!((before, sums), (3.0, [310.0, 31.0]), "{reports:?}: {lines:?}");
        }
        let received = lines(&late, &totals).iter().map(|line| line.received.unwrap()).collect::<Vec<_>>();
        assert_eq!(received, [100.0, 90.0, 120.0]);
    }
}

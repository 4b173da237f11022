//! The engine of one process: its strands, and the thread that drives them on command.

mod prepare;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{io, thread};
use wb_results::net::StrandProgress;

use self::prepare::{LiveStrand, PreparedRun};
use super::clock::{self, Nanos};
use super::executor_message::{EngineInput, ExecutorCommand, ExecutorEvent, ExecutorReport, Waker};
use super::protocol::{
    Assignment, ConnectionTotals, EngineCommand, EngineError, EngineEvent, EngineProgress, StrandTotals,
};
use super::report::{EngineReport, GroupReport};
use super::tally::{LiveCounters, LiveTotals};
use crate::netstat::Netstat;
use crate::transport::data_ports::DataPorts;
use wb_net_profile::Extent;

/// An engine in this process. Dropping it ends its strands and connections.
#[derive(Debug)]
pub struct LocalEngine(Sender<EngineInput>);

impl Drop for LocalEngine {
    fn drop(&mut self) {
        // Ignored: the engine may have ended already.
        let _: Result<(), _> = self.0.send(EngineInput::Quit);
    }
}

impl LocalEngine {
    /// Starts an engine that accepts connections on these ports. `on_event` gets the events, and returns whether
    /// anybody still receives them.
    pub fn start(ports: Arc<DataPorts>, on_event: impl Fn(EngineEvent) -> bool + Send + 'static) -> io::Result<Self> {
        let (input, inputs) = channel();
        let executor_events = input.clone();
        thread::Builder::new().name("engine".to_owned()).spawn(move || {
            let mut driver = Driver { on_event: Box::new(on_event), executor_events, ports, state: None };
            driver.run(&inputs);
        })?;
        Ok(Self(input))
    }

    /// Sends a command to the engine; false when it has ended.
    pub fn send(&self, command: EngineCommand) -> bool {
        self.0.send(EngineInput::Command(command)).is_ok()
    }
}

struct Driver {
    on_event: Box<dyn Fn(EngineEvent) -> bool + Send>,
    executor_events: Sender<EngineInput>,
    ports: Arc<DataPorts>,
    state: Option<RunState>,
}

struct RunState {
    prepared: PreparedRun,
    groups: Vec<GroupState>,
    /// Whether the intervals of progress began with a warm-up or with the data phase; `None` before both.
    aligned_to_warm_up: Option<bool>,
    live_counters: Vec<Arc<LiveCounters>>,
    progress: Vec<EngineProgress>,
    interval: Nanos,
    next_progress: Nanos,
    netstat: Netstat,
    executor_reports: Vec<ExecutorReport>,
    stopping: bool,
    /// Datagrams that were lost on the way to each strand, by group and strand, in the transactions that were drained.
    losses: BTreeMap<(usize, u32), u64>,
    /// Since when links are being set up.
    linking_since: Option<Nanos>,
}

/// Shortest and longest interval between two steps of the setup of links.
const SETUP_INTERVAL: (Nanos, Nanos) = (300_000, 10_000_000);

#[derive(Default)]
struct GroupState {
    /// Number of strands that are executing a transaction or draining.
    running: usize,
    /// The transaction that it executes or has executed last.
    transaction: usize,
    moves_data: bool,
    is_window: bool,
    began: Nanos,
    end: Option<Nanos>,
    finishing: bool,
    /// Datagrams that the other side has sent to each strand, while it is drained.
    peer_datagrams: BTreeMap<u32, u64>,
    /// Totals of the strands that have finished the step; reported once all have.
    totals: Vec<StrandTotals>,
    next_wake: Nanos,
    wake_interval: Nanos,
}

impl GroupState {
    /// The time of a sample. Nothing that ends after the window is counted, and a window that is not cut short lasts to
    /// its end, even with nothing left to do in it. A receiver of a number of datagrams waits in vain for others after
    /// the last, so its time is that of the last.
    fn sample_time(&self, now: Nanos, counters: &LiveCounters, is_cut: bool) -> Nanos {
        match (self.end, counters.last_datagram()) {
            (Some(end), _) if self.is_window && self.running == 0 && !is_cut => end,
            (None, last) if self.running == 0 && last > self.began => last,
            (end, _) => now.max(self.began).min(end.unwrap_or(Nanos::MAX)),
        }
    }
}

/// Interval between two attempts to interrupt strands: initial and maximum.
const WAKE_BACKOFF: (Nanos, Nanos) = (500_000, 20_000_000);

/// Delay between a command and its transaction, multiplied by the number of strands, so that all are awake by then.
const START_DELAY: Nanos = 10_000;

impl Driver {
    fn run(&mut self, inputs: &Receiver<EngineInput>) {
        loop {
            let left =
                self.state.as_ref().map_or(Nanos::MAX, |state| state.next_deadline().saturating_sub(clock::now()));
            let input = match inputs.recv_timeout(Duration::from_nanos(left.min(1_000_000_000))) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let running = match input {
                Some(EngineInput::Command(command)) => self.handle_command(command),
                Some(EngineInput::Executor(event)) => self.handle_executor_event(event),
                Some(EngineInput::Quit) => false,
                None => true,
            };
            if !running || !self.tick() {
                self.shut_down(inputs);
                return;
            }
        }
    }

    fn shut_down(&mut self, inputs: &Receiver<EngineInput>) {
        let Some(state) = self.state.take() else { return };
        state.prepared.executors.iter().flat_map(|executor| executor.signals.iter()).for_each(|(_, signals)| {
            signals.stop.store(true, Relaxed);
        });
        let PreparedRun { executors, .. } = state.prepared;
        let (mut wakers, threads): (Vec<_>, Vec<_>) =
            executors.into_iter().map(|executor| (executor.waker, executor.thread)).unzip();
        while threads.iter().any(|thread| !thread.is_finished()) {
            // Those that had just started can be woken only now.
            for input in inputs.try_iter() {
                if let EngineInput::Executor(ExecutorEvent::Ready { executor, waker }) = input {
                    wakers[executor] = Some(waker);
                }
            }
            for (waker, _) in wakers.iter().zip(&threads).filter(|(_, thread)| !thread.is_finished()) {
                waker.iter().for_each(Waker::wake);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn handle_command(&mut self, command: EngineCommand) -> bool {
        let command = match command {
            EngineCommand::Prepare(assignment) => return self.prepare(*assignment),
            command => command,
        };
        let Some(state) = &mut self.state else {
            return (self.on_event)(EngineEvent::Failed(EngineError::new("protocol error: command before `Prepare`")));
        };
        match command {
            EngineCommand::Prepare(_) | EngineCommand::Heartbeat => true,
            EngineCommand::SetPeers(links) => match state.prepared.set_peers(links) {
                Ok(()) => {
                    state.linking_since = Some(clock::now());
                    true
                }
                Err(fault) => (self.on_event)(EngineEvent::Failed(fault)),
            },
            EngineCommand::Run { group, transaction, limit } => {
                let Some((began, end)) = state.begin_transaction(group, transaction, limit) else { return true };
                // The counts at the start, which the first strand may change at once.
                let connected = self.send_strand_progress(Some(group));
                if let Some(state) = &mut self.state {
                    let run = || ExecutorCommand::Run { group, transaction, began, end };
                    state.prepared.send_to_group(group, run);
                }
                connected
            }
            EngineCommand::Finish { group, totals } => {
                state.finish(group, totals);
                true
            }
            EngineCommand::Drain { group, totals } => {
                if let Some(group_state) = state.groups.get_mut(group).filter(|group_state| group_state.running == 0) {
                    group_state.running = totals.len();
                    group_state.totals.clear();
                    group_state.peer_datagrams = sum_datagrams(&totals, |totals| totals.sent);
                    state.prepared.drain(group, totals);
                }
                true
            }
            EngineCommand::Stop => {
                state.stop();
                true
            }
            EngineCommand::Report => {
                // What a run that is cut short has moved since the last report.
                let connected = self.send_strand_progress(None);
                let Some(state) = &mut self.state else { return connected };
                state.prepared.broadcast(|| ExecutorCommand::Report);
                true
            }
        }
    }

    fn prepare(&mut self, assignment: Assignment) -> bool {
        if self.state.is_some() {
            return (self.on_event)(EngineEvent::Failed(EngineError::new("protocol error: second `Prepare`")));
        }
        let settings = &assignment.settings;
        let interval = settings.progress_interval.max(1_000_000);
        let groups = assignment.profile.groups.iter().map(|_| GroupState::default()).collect();
        match PreparedRun::new(assignment, &self.ports) {
            Ok(mut prepared) => {
                let event = EngineEvent::Prepared { links: prepared.take_announcements(), executor: prepared.executor };
                let live_counters = prepared.live_counters.clone();
                let now = clock::now();
                let start = EngineProgress { time: now, ..EngineProgress::default() };
                self.state = Some(RunState {
                    prepared,
                    groups,
                    aligned_to_warm_up: None,
                    live_counters,
                    progress: vec![start],
                    interval,
                    next_progress: now + interval,
                    netstat: Netstat::now(),
                    executor_reports: Vec::new(),
                    stopping: false,
                    losses: BTreeMap::new(),
                    linking_since: None,
                });
                (self.on_event)(event)
            }
            Err(fault) => (self.on_event)(EngineEvent::Failed(fault)),
        }
    }

    fn handle_executor_event(&mut self, event: ExecutorEvent) -> bool {
        let Some(state) = &mut self.state else { return true };
        match event {
            ExecutorEvent::Ready { executor, waker } => {
                state.prepared.executors[executor].waker = Some(waker);
                if state.prepared.executors.iter().all(|executor| executor.waker.is_some()) {
                    return (self.on_event)(EngineEvent::Ready);
                }
                true
            }
            ExecutorEvent::Ended { group, totals } => {
                let Some(strands) = state.collect_totals(group, totals) else { return true };
                let progress = state.progress_at(clock::now());
                self.send_strand_progress(Some(group))
                    && (self.on_event)(EngineEvent::Ended { group, progress, strands })
            }
            ExecutorEvent::Drained { group, totals } => {
                let Some(strands) = state.collect_totals(group, totals) else { return true };
                let progress = state.count_losses(group, &strands);
                (progress.is_empty() || (self.on_event)(EngineEvent::StrandProgress(progress)))
                    && (self.on_event)(EngineEvent::Drained { group, strands })
            }
            ExecutorEvent::Failed(fault) => (self.on_event)(EngineEvent::Failed(fault)),
            ExecutorEvent::Report(report) => {
                state.executor_reports.push(*report);
                if state.executor_reports.len() < state.prepared.report_count {
                    return true;
                }
                self.send_raw();
                let report = self.state.as_mut().map(RunState::report);
                if let Some(report) = report {
                    (self.on_event)(EngineEvent::Report(Box::new(report)));
                }
                false
            }
        }
    }

    fn tick(&mut self) -> bool {
        let now = clock::now();
        let Some(state) = &mut self.state else { return true };
        if state.linking_since.is_some() {
            match state.prepared.continue_setup() {
                Ok(false) => {}
                Ok(true) => {
                    state.linking_since = None;
                    state.prepared.spawn_executors(&self.executor_events);
                }
                Err(fault) => {
                    state.linking_since = None;
                    return (self.on_event)(EngineEvent::Failed(fault));
                }
            }
        }
        state.wake_overdue(now);
        if now < state.next_progress {
            return true;
        }
        let progress = state.record_progress(now);
        let connected = (self.on_event)(EngineEvent::Progress(progress)) && self.send_strand_progress(None);
        self.send_raw();
        connected
    }

    /// Reports the progress of the strands of a group, or of all that are executing a transaction.
    fn send_strand_progress(&self, group: Option<usize>) -> bool {
        // Nothing without a run.
        let progress = self.state.as_ref().map(|state| state.strand_progress(group)).unwrap_or_default();
        progress.is_empty() || (self.on_event)(EngineEvent::StrandProgress(progress))
    }

    fn send_raw(&self) {
        let Some(state) = &self.state else { return };
        for reader in &state.prepared.raw {
            reader.fetch(|records| {
                if !records.is_empty() {
                    // Ignored: without a coordinator the records have no destination.
                    let _: bool = (self.on_event)(EngineEvent::Raw(records.to_vec()));
                }
            });
        }
    }
}

fn sum_datagrams(strands: &[StrandTotals], count: fn(&ConnectionTotals) -> u64) -> BTreeMap<u32, u64> {
    let of = |strand: &StrandTotals| strand.connections.iter().filter(|totals| totals.datagrams).map(count).sum();
    strands.iter().map(|strand| (strand.strand, of(strand))).collect()
}

impl RunState {
    fn next_deadline(&self) -> Nanos {
        let wake_times = self.groups.iter().filter(|group| group.running > 0).filter_map(|group| {
            if group.finishing || self.stopping {
                Some(group.next_wake)
            } else {
                group.end.map(|end| end.max(group.next_wake))
            }
        });
        let setup = self.linking_since.map(|since| {
            let now = clock::now();
            now + clock::growing_interval(now.saturating_sub(since), SETUP_INTERVAL)
        });
        wake_times.chain(setup).chain([self.next_progress]).min().unwrap_or(self.next_progress)
    }

    /// Prepares a transaction; returns its begin and end. A second `Run`, which our clients never send, is ignored.
    fn begin_transaction(
        &mut self,
        group: usize,
        transaction: usize,
        limit: Option<Nanos>,
    ) -> Option<(Nanos, Option<Nanos>)> {
        let strands = self.prepared.strand_count(group);
        let group_state = self.groups.get_mut(group).filter(|group_state| group_state.running == 0)?;
        let plan = self.prepared.plans.get(group).and_then(|plan| plan.transactions.get(transaction))?;
        let began = clock::now() + (strands as Nanos * START_DELAY).min(100_000_000);
        let window = match plan.extent {
            Extent::Window(window) => Some(clock::nanos(window)),
            Extent::Iterations(_) => None,
        };
        let end = window.into_iter().chain(limit).min().map(|length| began + length);
        let moves_data = plan.moves_data();
        *group_state = GroupState {
            running: strands,
            transaction,
            moves_data,
            is_window: window.is_some(),
            began,
            end,
            wake_interval: WAKE_BACKOFF.0,
            ..GroupState::default()
        };
        if moves_data && self.aligned_to_warm_up != Some(!plan.is_data_phase) {
            // Intervals begin with what they describe.
            self.aligned_to_warm_up = Some(!plan.is_data_phase);
            self.next_progress = began + self.interval;
        }
        // Reset here, by the thread that sets it: the peer's end may arrive before a strand has begun.
        self.prepared.signals(group).for_each(|(_, signals)| signals.finish.store(false, Relaxed));
        Some((began, end))
    }

    /// The progress of the strands of a group, or of all groups that are executing, where they move data.
    fn strand_progress(&self, group: Option<usize>) -> Vec<StrandProgress> {
        let now = clock::now();
        let concerned = |live: &LiveStrand| match group {
            Some(group) => live.group == group,
            None => self.groups[live.group].running > 0,
        };
        let live = self.prepared.live_strands.iter().filter(|live| concerned(live));
        live.filter(|live| self.groups[live.group].moves_data)
            .map(|live| {
                let state = &self.groups[live.group];
                let totals = live.counters.totals();
                StrandProgress {
                    group: live.group as u32,
                    transaction: state.transaction as u32,
                    strand: live.strand,
                    time: state.sample_time(now, &live.counters, self.stopping),
                    sent: totals.sent,
                    received: totals.received,
                    operations: totals.operations,
                    datagrams: live.counters.datagrams(),
                    connection: live.connection.snapshot(),
                }
            })
            .collect()
    }

    /// Counts the losses of a transaction once it is drained, including what was behind the last datagram that arrived.
    /// Returns the last samples of the strands that miss more than the gaps between arrivals show.
    fn count_losses(&mut self, group: usize, totals: &[StrandTotals]) -> Vec<StrandProgress> {
        let received = sum_datagrams(totals, |totals| totals.received);
        let sent = std::mem::take(&mut self.groups[group].peer_datagrams);
        let mut samples = self.strand_progress(Some(group));
        samples.retain_mut(|sample| {
            let of = |counts: &BTreeMap<u32, u64>| counts.get(&sample.strand).copied().unwrap_or(0);
            let all = of(&sent).saturating_sub(of(&received));
            let earlier = self.losses.insert((group, sample.strand), all).unwrap_or(0);
            let missing = all.saturating_sub(earlier);
            let is_more = missing > sample.datagrams.missing;
            sample.datagrams.missing = missing;
            is_more
        });
        samples
    }

    fn finish(&mut self, group: usize, totals: Vec<StrandTotals>) {
        let Some(group_state) = self.groups.get_mut(group) else { return };
        group_state.finishing = true;
        group_state.wake_interval = WAKE_BACKOFF.0;
        group_state.next_wake = 0;
        let mut totals: BTreeMap<u32, StrandTotals> =
            totals.into_iter().map(|totals| (totals.strand, totals)).collect();
        for (strand, signals) in self.prepared.signals(group) {
            *signals.peer_totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = totals.remove(&strand);
            signals.finish.store(true, Relaxed);
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        for group in 0..self.groups.len() {
            self.prepared.signals(group).for_each(|(_, signals)| signals.stop.store(true, Relaxed));
            self.groups[group].next_wake = 0;
        }
    }

    fn wake_overdue(&mut self, now: Nanos) {
        for (group, group_state) in self.groups.iter_mut().enumerate() {
            let overdue = group_state.end.is_some_and(|end| now >= end) || group_state.finishing || self.stopping;
            if group_state.running == 0 || !overdue || now < group_state.next_wake {
                continue;
            }
            group_state.next_wake = now + group_state.wake_interval;
            group_state.wake_interval = (group_state.wake_interval * 2).min(WAKE_BACKOFF.1);
            self.prepared.wake_group(group);
        }
    }

    /// Records a strand's totals; returns those of all strands after the last one.
    fn collect_totals(&mut self, group: usize, totals: StrandTotals) -> Option<Vec<StrandTotals>> {
        let group_state = &mut self.groups[group];
        group_state.totals.push(totals);
        group_state.running -= 1;
        (group_state.running == 0).then(|| {
            group_state.finishing = false;
            std::mem::take(&mut group_state.totals)
        })
    }

    fn record_progress(&mut self, now: Nanos) -> EngineProgress {
        while self.next_progress <= now {
            self.next_progress += self.interval;
        }
        let progress = self.progress_at(now);
        self.progress.push(progress);
        progress
    }

    fn progress_at(&self, now: Nanos) -> EngineProgress {
        let LiveTotals { sent, received, operations } = LiveCounters::snapshot(&self.live_counters);
        EngineProgress { time: now, sent, received, operations }
    }

    fn report(&mut self) -> EngineReport {
        self.record_progress(clock::now());
        let mut groups: Vec<GroupReport> = Vec::new();
        let mut refused = 0;
        let mut reports = std::mem::take(&mut self.executor_reports);
        for group in 0..self.groups.len() {
            let mut report = GroupReport::default();
            for executor_report in reports.extract_if(.., |executor_report| executor_report.group == group) {
                let ExecutorReport { transactions, strands, connections, usage, .. } = executor_report;
                report.add(GroupReport { transactions, strands, connections, usage });
                refused += executor_report.refused;
            }
            groups.push(report);
        }
        EngineReport {
            side: self.prepared.side,
            groups,
            progress: std::mem::take(&mut self.progress),
            network: Netstat::now().since(&self.netstat),
            rejected_connections: refused,
            executor: self.prepared.executor,
        }
    }
}

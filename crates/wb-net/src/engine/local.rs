//! The engine of one process: its strands, and the thread that drives them on command.

mod prepare;

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use self::prepare::PreparedRun;
use super::{
    clock::{self, Nanos},
    executor::{ExecutorCommand, ExecutorEvent, ExecutorReport, Waker},
    protocol::{Assignment, EngineCommand, EngineError, EngineEvent, EngineProgress, StrandTotals},
    report::{EngineReport, GroupReport},
    tally::LiveCounters,
};
use crate::language::Extent;
use crate::netstat::Netstat;
use crate::transport::listener::SharedListeners;

/// What comes to a site: from whoever coordinates the run, or from its own threads.
#[derive(Debug)]
pub(super) enum EngineInput {
    Command(EngineCommand),
    Executor(ExecutorEvent),
    Quit,
}

/// A site of this process. When it is dropped, its strands and connections end.
#[derive(Debug)]
pub struct LocalEngine(Sender<EngineInput>);

impl Drop for LocalEngine {
    fn drop(&mut self) {
        // One that has ended needs no telling.
        let _: Result<(), _> = self.0.send(EngineInput::Quit);
    }
}

impl LocalEngine {
    /// Starts one; what it has to say goes to `tell`, which says whether anybody listens.
    pub fn start(tell: impl Fn(EngineEvent) -> bool + Send + 'static) -> io::Result<Self> {
        let (input, inputs) = channel();
        let hands = input.clone();
        thread::Builder::new().name("site".to_owned()).spawn(move || {
            let mut driver = Driver { on_event: Box::new(tell), executor_events: hands, state: None };
            driver.run(&inputs);
        })?;
        Ok(Self(input))
    }

    /// Tells it what to do; false when it has ended.
    pub fn send(&self, order: EngineCommand) -> bool {
        self.0.send(EngineInput::Command(order)).is_ok()
    }
}

struct Driver {
    on_event: Box<dyn Fn(EngineEvent) -> bool + Send>,
    executor_events: Sender<EngineInput>,
    state: Option<RunState>,
}

/// A run that is under way.
struct RunState {
    prepared: PreparedRun,
    groups: Vec<GroupState>,
    live_counters: Vec<Arc<LiveCounters>>,
    progress: Vec<EngineProgress>,
    interval: Nanos,
    next_progress: Nanos,
    netstat: Netstat,
    executor_reports: Vec<ExecutorReport>,
    stopping: bool,
    /// Shared ones take connections for as long as this is held.
    _listeners: Arc<SharedListeners>,
}

#[derive(Default)]
struct GroupState {
    /// Strands that are in a transaction.
    running: usize,
    end: Option<Nanos>,
    finishing: bool,
    /// Strands whose end or settling has not been told yet.
    totals: Vec<StrandTotals>,
    next_wake: Nanos,
    wake_interval: Nanos,
}

/// Between two attempts to interrupt strands, at first and at most.
const WAKE_BACKOFF: (Nanos, Nanos) = (500_000, 20_000_000);

/// Strands begin this much after they were told, for each of them; all are awake by then.
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
            let on = match input {
                Some(EngineInput::Command(order)) => self.handle_command(order),
                Some(EngineInput::Executor(heard)) => self.handle_executor_event(heard),
                Some(EngineInput::Quit) => false,
                None => true,
            };
            if !on || !self.tick() {
                self.shut_down();
                return;
            }
        }
    }

    /// Leaves nothing behind: every strand is made to end, and its connections with it.
    fn shut_down(&mut self) {
        let Some(state) = self.state.take() else { return };
        state.prepared.executors.iter().flat_map(|hand| hand.signals.iter()).for_each(|(_, signals)| {
            signals.stop.store(true, Relaxed);
        });
        let PreparedRun { executors: hands, .. } = state.prepared;
        for hand in hands {
            drop(hand.commands);
            while !hand.thread.is_finished() {
                if let Some(reach) = &hand.waker {
                    reach.wake();
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn handle_command(&mut self, order: EngineCommand) -> bool {
        let order = match order {
            EngineCommand::Prepare(assignment) => return self.prepare(*assignment),
            order => order,
        };
        let Some(state) = &mut self.state else {
            return (self.on_event)(EngineEvent::Failed(EngineError::new(
                "it was told to work before it was told on what",
            )));
        };
        match order {
            EngineCommand::Prepare(_) | EngineCommand::Heartbeat => true,
            EngineCommand::SetPeers(links) => match state.prepared.set_peers(links) {
                Ok(()) => {
                    state.prepared.spawn_executors(&self.executor_events);
                    true
                }
                Err(fault) => (self.on_event)(EngineEvent::Failed(fault)),
            },
            EngineCommand::Run { group, transaction, limit } => state.begin_transaction(group, transaction, limit),
            EngineCommand::Finish { group, totals } => {
                state.finish(group, totals);
                true
            }
            EngineCommand::Drain { group, totals } => {
                if let Some(known) = state.groups.get_mut(group).filter(|known| known.running == 0) {
                    known.running = totals.len();
                    known.totals.clear();
                    state.prepared.drain(group, totals);
                }
                true
            }
            EngineCommand::Stop => {
                state.stop();
                true
            }
            EngineCommand::Report => {
                state.prepared.broadcast(|| ExecutorCommand::Report);
                true
            }
        }
    }

    fn prepare(&mut self, assignment: Assignment) -> bool {
        if self.state.is_some() {
            return (self.on_event)(EngineEvent::Failed(EngineError::new("it was told on what to work twice")));
        }
        let settings = &assignment.settings;
        let doors = match SharedListeners::new(settings.ports.map(|(low, high)| low..=high)) {
            Ok(doors) => doors,
            Err(error) => return (self.on_event)(EngineEvent::Failed(EngineError::new(error.to_string()))),
        };
        let interval = settings.progress_interval.max(1_000_000);
        let groups = assignment.profile.groups.iter().map(|_| GroupState::default()).collect();
        match PreparedRun::new(assignment, &doors) {
            Ok(prepared) => {
                let event = EngineEvent::Prepared { links: prepared.announcements(), executor: prepared.executor };
                let published = prepared.live_counters.clone();
                let now = clock::now();
                let nothing = EngineProgress { time: now, ..EngineProgress::default() };
                self.state = Some(RunState {
                    prepared,
                    groups,
                    live_counters: published,
                    progress: vec![nothing],
                    interval,
                    next_progress: now + interval,
                    netstat: Netstat::now(),
                    executor_reports: Vec::new(),
                    stopping: false,
                    _listeners: doors,
                });
                (self.on_event)(event)
            }
            Err(fault) => (self.on_event)(EngineEvent::Failed(fault)),
        }
    }

    fn handle_executor_event(&mut self, heard: ExecutorEvent) -> bool {
        let Some(state) = &mut self.state else { return true };
        match heard {
            ExecutorEvent::Ready { hand, reach } => {
                state.prepared.executors[hand].waker = Some(reach);
                if state.prepared.executors.iter().all(|hand| hand.waker.is_some()) {
                    return (self.on_event)(EngineEvent::Ready);
                }
                true
            }
            ExecutorEvent::Ended { group, totals } => match state.collect_totals(group, totals) {
                Some(strands) => (self.on_event)(EngineEvent::Ended { group, strands }),
                None => true,
            },
            ExecutorEvent::Drained { group, totals } => match state.collect_totals(group, totals) {
                Some(strands) => (self.on_event)(EngineEvent::Drained { group, strands }),
                None => true,
            },
            ExecutorEvent::Failed(fault) => (self.on_event)(EngineEvent::Failed(fault)),
            ExecutorEvent::Report(part) => {
                state.executor_reports.push(*part);
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

    /// What has to be done at certain times.
    fn tick(&mut self) -> bool {
        let now = clock::now();
        let Some(state) = &mut self.state else { return true };
        state.wake_overdue(now);
        if now < state.next_progress {
            return true;
        }
        let progress = state.record_progress(now);
        let on = (self.on_event)(EngineEvent::Progress(progress));
        self.send_raw();
        on
    }

    fn send_raw(&self) {
        let Some(state) = &self.state else { return };
        for parts in &state.prepared.raw {
            parts.fetch(|part| {
                if !part.is_empty() {
                    // A run whose coordinator is gone keeps nothing.
                    let _: bool = (self.on_event)(EngineEvent::Raw(part.to_vec()));
                }
            });
        }
    }
}

impl RunState {
    /// When something has to be done again.
    fn next_deadline(&self) -> Nanos {
        let touches = self.groups.iter().filter(|group| group.running > 0).filter_map(|group| {
            if group.finishing || self.stopping {
                Some(group.next_wake)
            } else {
                group.end.map(|end| end.max(group.next_wake))
            }
        });
        touches.chain([self.next_progress]).min().unwrap_or(self.next_progress)
    }

    fn begin_transaction(&mut self, group: usize, transaction: usize, limit: Option<Nanos>) -> bool {
        let strands = self.prepared.strand_count(group);
        // What a client may say twice is said by none of ours.
        let Some(known) = self.groups.get_mut(group).filter(|known| known.running == 0) else { return true };
        let Some(plan) = self.prepared.plans.get(group).and_then(|plan| plan.transactions.get(transaction)) else {
            return true;
        };
        let began = clock::now() + (strands as Nanos * START_DELAY).min(100_000_000);
        let window = match plan.extent {
            Extent::Window(window) => Some(clock::nanos(window)),
            Extent::Iterations(_) => None,
        };
        let end = window.into_iter().chain(limit).min().map(|length| began + length);
        *known =
            GroupState { running: strands, end, next_wake: 0, wake_interval: WAKE_BACKOFF.0, ..GroupState::default() };
        // By who sets it: that the other side is done may be heard of before a strand has begun.
        self.prepared.signals(group).for_each(|(_, signals)| signals.finish.store(false, Relaxed));
        self.prepared.send_to_group(group, || ExecutorCommand::Run { group, transaction, began, end });
        true
    }

    fn finish(&mut self, group: usize, totals: Vec<StrandTotals>) {
        let Some(known) = self.groups.get_mut(group) else { return };
        known.finishing = true;
        known.wake_interval = WAKE_BACKOFF.0;
        known.next_wake = 0;
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

    /// Interrupts strands that should have ended.
    fn wake_overdue(&mut self, now: Nanos) {
        for (group, known) in self.groups.iter_mut().enumerate() {
            let over = known.end.is_some_and(|end| now >= end) || known.finishing || self.stopping;
            if known.running == 0 || !over || now < known.next_wake {
                continue;
            }
            known.next_wake = now + known.wake_interval;
            known.wake_interval = (known.wake_interval * 2).min(WAKE_BACKOFF.1);
            self.prepared.wake_group(group);
        }
    }

    /// Notes what a strand moved; gives what all did when it was the last.
    fn collect_totals(&mut self, group: usize, totals: StrandTotals) -> Option<Vec<StrandTotals>> {
        let known = &mut self.groups[group];
        known.totals.push(totals);
        known.running -= 1;
        (known.running == 0).then(|| {
            known.finishing = false;
            std::mem::take(&mut known.totals)
        })
    }

    fn record_progress(&mut self, now: Nanos) -> EngineProgress {
        let look = LiveCounters::snapshot(&self.live_counters);
        while self.next_progress <= now {
            self.next_progress += self.interval;
        }
        let progress =
            EngineProgress { time: now, sent: look.sent, received: look.received, operations: look.operations };
        self.progress.push(progress);
        progress
    }

    fn report(&mut self) -> EngineReport {
        self.record_progress(clock::now());
        let mut groups: Vec<GroupReport> = Vec::new();
        let mut refused = 0;
        let mut parts = std::mem::take(&mut self.executor_reports);
        for group in 0..self.groups.len() {
            let mut report = GroupReport::default();
            for part in parts.extract_if(.., |part| part.group == group) {
                let ExecutorReport { transactions, strands, connections, usage, .. } = part;
                report.add(GroupReport { transactions, strands, connections, usage });
                refused += part.refused;
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

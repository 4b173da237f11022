//! An event loop: many strands on one thread, which waits for events on all their connections.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::clock::{self, Nanos};
use super::executor::{self, GroupMetrics};
use super::executor_message::{EngineInput, ExecutorCommand, ExecutorEvent, Waker};
use super::protocol::{EngineError, Settings, StrandTotals};
use super::strand::{Strand, StrandStatus};
use super::usage::current_thread_usage;
use crate::transport::WaitCondition;
use wb_results::net::Usage;

/// The strands of one group on this thread.
pub(super) struct GroupStrands {
    pub(super) metrics: GroupMetrics,
    pub(super) strands: Vec<Strand>,
}

/// Maximum number of events per `epoll_wait`.
const MAX_EVENTS: usize = 256;

/// epoll token of the eventfd that wakes the loop.
const WAKE_TOKEN: u64 = u64::MAX;

struct EventLoop<'a> {
    groups: Vec<GroupStrands>,
    running: Vec<RunningTransaction>,
    /// The thread's usage when it was last distributed among the groups.
    last_usage: Usage,
    states: Vec<Vec<StrandState>>,
    ready: VecDeque<(usize, usize)>,
    timers: BinaryHeap<Reverse<(Nanos, usize, usize, u64)>>,
    epoll: OwnedFd,
    wake_fd: Arc<OwnedFd>,
    watched: HashMap<RawFd, (usize, usize, u64)>,
    buffer: Vec<u8>,
    /// When the connections of idle strands need maintenance next; `None` if none do.
    next_maintenance: Option<Nanos>,
    engine: &'a Sender<EngineInput>,
}

#[derive(Default)]
struct RunningTransaction {
    transaction: usize,
    end: Option<Nanos>,
    left: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum StrandTask {
    #[default]
    Idle,
    Transaction,
    Drain,
}

#[derive(Clone, Default)]
struct StrandState {
    task: StrandTask,
    queued: bool,
    /// Number of its latest timer; earlier ones are void.
    timer: u64,
}

pub(super) fn run_event_loop(
    executor: usize,
    mut groups: Vec<GroupStrands>,
    settings: &Settings,
    commands: &Receiver<ExecutorCommand>,
    engine: &Sender<EngineInput>,
) {
    let send = |event| engine.send(EngineInput::Executor(event)).is_ok();
    executor::prepare_thread(settings, executor);
    for group in &mut groups {
        if let Err(fault) = group.metrics.open_counters(settings) {
            send(ExecutorEvent::Failed(fault));
        }
    }
    let mut this = match EventLoop::new(groups, settings, engine) {
        Ok(this) => this,
        Err(error) => {
            send(ExecutorEvent::Failed(EngineError::new(format!("cannot create epoll instance: {error}"))));
            return;
        }
    };
    if !send(ExecutorEvent::Ready { executor, waker: Waker::Eventfd(this.wake_fd.clone()) }) {
        return;
    }
    while this.handle_commands(commands) {
        this.advance_ready();
        this.wait();
    }
}

impl<'a> EventLoop<'a> {
    fn new(groups: Vec<GroupStrands>, settings: &Settings, engine: &'a Sender<EngineInput>) -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake_fd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &*wake_fd, epoll::EventData::new_u64(WAKE_TOKEN), epoll::EventFlags::IN)?;
        let buffer = groups.iter().map(|group| group.metrics.plan.buffer).max().unwrap_or(0);
        Ok(Self {
            running: groups.iter().map(|_| RunningTransaction::default()).collect(),
            last_usage: current_thread_usage(),
            states: groups.iter().map(|group| vec![StrandState::default(); group.strands.len()]).collect(),
            groups,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            epoll,
            wake_fd,
            watched: HashMap::new(),
            buffer: executor::payload(buffer, settings),
            next_maintenance: Some(0),
            engine,
        })
    }

    fn send_event(&self, event: ExecutorEvent) {
        // Ignored: if the engine is gone, its command channel is closed, which is noticed next.
        let _: Result<(), _> = self.engine.send(EngineInput::Executor(event));
    }

    /// Executes pending commands; false when no more will come.
    fn handle_commands(&mut self, commands: &Receiver<ExecutorCommand>) -> bool {
        loop {
            match commands.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
                Ok(ExecutorCommand::Report) => {
                    for mut group in std::mem::take(&mut self.groups) {
                        self.send_event(ExecutorEvent::Report(Box::new(group.metrics.into_report(&mut group.strands))));
                    }
                    return false;
                }
                Ok(ExecutorCommand::Run { group, transaction, began, end }) => {
                    self.begin_transaction(group, transaction, began, end)
                }
                Ok(ExecutorCommand::Poll { group }) => {
                    if let Some(index) = self.group_index(group) {
                        for strand in 0..self.states[index].len() {
                            self.enqueue(index, strand);
                        }
                    }
                }
                Ok(ExecutorCommand::Drain { group, totals }) => {
                    let Some(index) = self.group_index(group) else { continue };
                    let mut totals: HashMap<u32, StrandTotals> =
                        totals.into_iter().map(|totals| (totals.strand, totals)).collect();
                    for strand in 0..self.states[index].len() {
                        let drained = &mut self.groups[index].strands[strand];
                        if let Some(peer_totals) = totals.remove(&drained.index) {
                            drained.begin_drain(peer_totals.connections);
                            self.states[index][strand].task = StrandTask::Drain;
                            self.enqueue(index, strand);
                        }
                    }
                }
            }
        }
    }

    fn group_index(&self, group: usize) -> Option<usize> {
        self.groups.iter().position(|entry| entry.metrics.group == group)
    }

    fn begin_transaction(&mut self, group: usize, transaction: usize, began: Nanos, end: Option<Nanos>) {
        let Some(index) = self.group_index(group) else { return };
        self.distribute_usage();
        let entry = &mut self.groups[index];
        entry.metrics.begin_transaction(transaction, began, end);
        self.running[index] = RunningTransaction { transaction, end, left: entry.strands.len() };
        for (position, strand) in entry.strands.iter_mut().enumerate() {
            strand.begin_transaction(transaction, began, end);
            self.states[index][position].task = StrandTask::Transaction;
        }
        for strand in 0..self.states[index].len() {
            self.enqueue(index, strand);
        }
    }

    fn enqueue(&mut self, index: usize, strand: usize) {
        let state = &mut self.states[index][strand];
        if state.task != StrandTask::Idle && !state.queued {
            state.queued = true;
            self.ready.push_back((index, strand));
        }
    }

    fn advance_ready(&mut self) {
        for _ in 0..self.ready.len() {
            let Some((index, strand)) = self.ready.pop_front() else { return };
            self.states[index][strand].queued = false;
            let GroupStrands { metrics, strands } = &mut self.groups[index];
            let step = match self.states[index][strand].task {
                // It finished while it was in the queue.
                StrandTask::Idle => continue,
                StrandTask::Transaction => strands[strand].advance(&mut metrics.context(&mut self.buffer)),
                StrandTask::Drain => strands[strand].drain(&mut self.buffer),
            };
            match step {
                StrandStatus::Yield => self.enqueue(index, strand),
                StrandStatus::Wait(wait) => self.watch(index, strand, &wait),
                StrandStatus::Ended => self.finish_task(index, strand, None),
                StrandStatus::Failed(fault) => self.finish_task(index, strand, Some(fault)),
            }
        }
    }

    fn finish_task(&mut self, index: usize, strand: usize, fault: Option<EngineError>) {
        let state = &mut self.states[index][strand];
        let task = std::mem::take(&mut state.task);
        state.timer += 1;
        self.next_maintenance = Some(0);
        if task == StrandTask::Transaction {
            if self.running[index].left == 1 {
                self.distribute_usage();
            }
            let running = &mut self.running[index];
            running.left -= 1;
            let GroupStrands { metrics, strands } = &mut self.groups[index];
            let is_cut = fault.is_some() || strands[strand].is_stopped();
            metrics.end_transaction(running.transaction, running.end, is_cut);
        }
        let GroupStrands { metrics, strands } = &self.groups[index];
        let (group, totals) = (metrics.group, strands[strand].totals());
        self.send_event(match (fault, task) {
            (Some(fault), _) => ExecutorEvent::Failed(fault),
            (None, StrandTask::Drain) => ExecutorEvent::Drained { group, totals },
            (None, _) => ExecutorEvent::Ended { group, totals },
        });
    }

    /// Divides the thread's CPU usage equally among the groups in a data-phase transaction.
    fn distribute_usage(&mut self) {
        let now = current_thread_usage();
        let used = now.since(self.last_usage);
        self.last_usage = now;
        let busy = |running: &RunningTransaction, group: &GroupStrands| {
            running.left > 0 && group.metrics.plan.is_data_phase(running.transaction)
        };
        let group_count =
            self.running.iter().zip(&self.groups).filter(|(running, group)| busy(running, group)).count() as u64;
        for (running, group) in self.running.iter().zip(&mut self.groups) {
            if busy(running, group) {
                group.metrics.usage.add(used.split_among(group_count));
            }
        }
    }

    #[allow(unsafe_code)]
    fn watch(&mut self, index: usize, strand: usize, wait: &WaitCondition) {
        let state = &mut self.states[index][strand];
        state.timer += 1;
        if let Some(until) = wait.until {
            self.timers.push(Reverse((until, index, strand, state.timer)));
        }
        let Some(fd) = wait.fd else { return };
        let key = (index, strand, self.groups[index].strands[strand].generation());
        if self.watched.get(&fd) == Some(&key) {
            return;
        }
        // SAFETY: the descriptor belongs to a connection of this strand, which nobody else closes.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        // Edge-triggered, one registration for both directions: a strand continues until EAGAIN before it waits.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64((index as u64) << 32 | strand as u64);
        match epoll::add(&self.epoll, borrowed, data, flags) {
            Ok(()) => {}
            Err(Errno::EXIST) => {}
            Err(error) => {
                self.send_event(ExecutorEvent::Failed(EngineError::new(format!("cannot watch connection: {error}"))))
            }
        }
        self.watched.insert(fd, key);
    }

    /// Maintains the connections of idle strands; returns when that is due next.
    fn maintain_idle(&mut self, now: Nanos) -> Option<Nanos> {
        if self.next_maintenance.is_none_or(|next| now < next) {
            return self.next_maintenance;
        }
        let mut interval: Option<Nanos> = None;
        for (group, states) in self.groups.iter_mut().zip(&self.states) {
            for (strand, _) in group.strands.iter_mut().zip(states).filter(|(_, state)| state.task == StrandTask::Idle)
            {
                interval = strand.maintain().into_iter().chain(interval).min();
            }
        }
        self.next_maintenance = interval.map(|interval| now + interval);
        self.next_maintenance
    }

    fn wait(&mut self) {
        let now = clock::now();
        let next_maintenance = self.maintain_idle(now);
        while let Some(&Reverse((until, index, strand, timer))) = self.timers.peek() {
            if self.states[index][strand].timer != timer {
                self.timers.pop();
            } else if until <= now {
                self.timers.pop();
                self.enqueue(index, strand);
            } else {
                break;
            }
        }
        let left = match (self.ready.is_empty(), self.timers.peek()) {
            (false, _) => Some(0),
            (true, timer) => {
                let timer = timer.map(|Reverse((until, ..))| *until);
                timer.into_iter().chain(next_maintenance).min().map(|until| until.saturating_sub(now))
            }
        };
        let timeout =
            left.map(|left| Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as _ });
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; MAX_EVENTS];
        let count = epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()).unwrap_or(0);
        for event in &events[..count] {
            match event.data.u64() {
                WAKE_TOKEN => {
                    let mut count = [0; 8];
                    // Resets the counter; the commands themselves are read from the channel.
                    let _: rustix::io::Result<usize> = rustix::io::read(self.wake_fd.as_fd(), &mut count);
                }
                data => self.enqueue((data >> 32) as usize, (data & 0xffff_ffff) as usize),
            }
        }
    }
}

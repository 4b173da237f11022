//! Many strands on one thread, which waits for events of all their connections.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, TryRecvError},
    },
};

use rustix::{
    event::{EventfdFlags, epoll, eventfd},
    io::Errno,
    time::Timespec,
};

use super::{
    clock::{self, Nanos},
    executor::{self, ExecutorCommand, ExecutorEvent, GroupMetrics, Waker},
    local::EngineInput,
    protocol::{EngineError, Settings, StrandTotals},
    strand::{Strand, StrandStatus},
    usage::Usage,
};
use crate::transport::WaitCondition;

/// The strands of one group on this thread.
pub(super) struct GroupStrands {
    pub(super) metrics: GroupMetrics,
    pub(super) strands: Vec<Strand>,
}

/// So many events are taken at once.
const MAX_EVENTS: usize = 256;

/// epoll token of the eventfd that wakes the loop.
const WAKE_TOKEN: u64 = u64::MAX;

struct EventLoop<'a> {
    groups: Vec<GroupStrands>,
    running: Vec<RunningTransaction>,
    /// What the thread had used when that was last shared out among the crews.
    last_usage: Usage,
    states: Vec<Vec<StrandState>>,
    ready: VecDeque<(usize, usize)>,
    timers: BinaryHeap<Reverse<(Nanos, usize, usize, u64)>>,
    epoll: OwnedFd,
    wake_fd: Arc<OwnedFd>,
    watched: HashMap<RawFd, (usize, usize, u64)>,
    buffer: Vec<u8>,
    /// When connections of strands that carry out nothing are tended; none if nothing is left to do.
    next_maintenance: Option<Nanos>,
    site: &'a Sender<EngineInput>,
}

#[derive(Default)]
struct RunningTransaction {
    transaction: usize,
    end: Option<Nanos>,
    left: usize,
}

/// What a strand does.
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
    /// Whether it stands in the queue.
    queued: bool,
    /// Which of its timers is meant.
    timer: u64,
}

/// Carries out strands on this thread.
pub(super) fn run_event_loop(
    hand: usize,
    mut crews: Vec<GroupStrands>,
    settings: &Settings,
    told: &Receiver<ExecutorCommand>,
    site: &Sender<EngineInput>,
) {
    let tell = |heard| site.send(EngineInput::Executor(heard)).is_ok();
    executor::prepare_thread(settings, hand);
    for crew in &mut crews {
        if let Err(fault) = crew.metrics.open_counters(settings) {
            tell(ExecutorEvent::Failed(fault));
        }
    }
    let mut this = match EventLoop::new(crews, site) {
        Ok(this) => this,
        Err(error) => {
            tell(ExecutorEvent::Failed(EngineError::new(format!("no event queue: {error}"))));
            return;
        }
    };
    if !tell(ExecutorEvent::Ready { hand, reach: Waker::Eventfd(this.wake_fd.clone()) }) {
        return;
    }
    while this.handle_commands(told) {
        this.advance_ready();
        this.wait();
    }
}

impl<'a> EventLoop<'a> {
    fn new(crews: Vec<GroupStrands>, site: &'a Sender<EngineInput>) -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let call = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &*call, epoll::EventData::new_u64(WAKE_TOKEN), epoll::EventFlags::IN)?;
        let buffer = crews.iter().map(|crew| crew.metrics.plan.buffer).max().unwrap_or(0);
        Ok(Self {
            running: crews.iter().map(|_| RunningTransaction::default()).collect(),
            last_usage: Usage::current_thread(),
            states: crews.iter().map(|crew| vec![StrandState::default(); crew.strands.len()]).collect(),
            groups: crews,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            epoll,
            wake_fd: call,
            watched: HashMap::new(),
            buffer: executor::incompressible_buffer(buffer),
            next_maintenance: None,
            site,
        })
    }

    fn send_event(&self, heard: ExecutorEvent) {
        // A site that is gone hears nothing, and its end of the orders says so next.
        let _: Result<(), _> = self.site.send(EngineInput::Executor(heard));
    }

    /// Does what was told meanwhile; false when there is no more to come.
    fn handle_commands(&mut self, told: &Receiver<ExecutorCommand>) -> bool {
        loop {
            match told.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
                Ok(ExecutorCommand::Report) => {
                    for crew in std::mem::take(&mut self.groups) {
                        self.send_event(ExecutorEvent::Report(Box::new(crew.metrics.into_report(&crew.strands))));
                    }
                    return false;
                }
                Ok(ExecutorCommand::Run { group, transaction, began, end }) => {
                    self.begin_transaction(group, transaction, began, end)
                }
                Ok(ExecutorCommand::Poll { group }) => {
                    if let Some(crew) = self.group_index(group) {
                        for strand in 0..self.states[crew].len() {
                            self.enqueue(crew, strand);
                        }
                    }
                }
                Ok(ExecutorCommand::Drain { group, totals }) => {
                    let Some(crew) = self.group_index(group) else { continue };
                    let mut totals: HashMap<u32, StrandTotals> =
                        totals.into_iter().map(|totals| (totals.strand, totals)).collect();
                    for strand in 0..self.states[crew].len() {
                        let settled = &mut self.groups[crew].strands[strand];
                        if let Some(theirs) = totals.remove(&settled.index) {
                            settled.begin_drain(theirs.connections);
                            self.states[crew][strand].task = StrandTask::Drain;
                            self.enqueue(crew, strand);
                        }
                    }
                }
            }
        }
    }

    fn group_index(&self, group: usize) -> Option<usize> {
        self.groups.iter().position(|crew| crew.metrics.group == group)
    }

    fn begin_transaction(&mut self, group: usize, transaction: usize, began: Nanos, end: Option<Nanos>) {
        let Some(index) = self.group_index(group) else { return };
        self.distribute_usage();
        let crew = &mut self.groups[index];
        crew.metrics.begin_transaction(transaction, began, end);
        self.running[index] = RunningTransaction { transaction, end, left: crew.strands.len() };
        for (position, strand) in crew.strands.iter_mut().enumerate() {
            strand.begin_transaction(transaction, began, end);
            self.states[index][position].task = StrandTask::Transaction;
        }
        for strand in 0..self.states[index].len() {
            self.enqueue(index, strand);
        }
    }

    fn enqueue(&mut self, crew: usize, strand: usize) {
        let state = &mut self.states[crew][strand];
        if state.task != StrandTask::Idle && !state.queued {
            state.queued = true;
            self.ready.push_back((crew, strand));
        }
    }

    /// Gives each strand that can go on its turn, once.
    fn advance_ready(&mut self) {
        for _ in 0..self.ready.len() {
            let Some((crew, strand)) = self.ready.pop_front() else { return };
            self.states[crew][strand].queued = false;
            let GroupStrands { metrics: notes, strands } = &mut self.groups[crew];
            let step = match self.states[crew][strand].task {
                // It ended while it stood in the queue.
                StrandTask::Idle => continue,
                StrandTask::Transaction => strands[strand].advance(&mut notes.context(&mut self.buffer)),
                StrandTask::Drain => strands[strand].drain(&mut self.buffer),
            };
            match step {
                StrandStatus::Yield => self.enqueue(crew, strand),
                StrandStatus::Wait(wait) => self.watch(crew, strand, &wait),
                StrandStatus::Ended => self.finish_task(crew, strand, None),
                StrandStatus::Failed(fault) => self.finish_task(crew, strand, Some(fault)),
            }
        }
    }

    /// A strand is done with its duty, or failed at it.
    fn finish_task(&mut self, crew: usize, strand: usize, fault: Option<EngineError>) {
        let state = &mut self.states[crew][strand];
        let duty = std::mem::take(&mut state.task);
        state.timer += 1;
        self.next_maintenance = Some(0);
        if duty == StrandTask::Transaction {
            if self.running[crew].left == 1 {
                self.distribute_usage();
            }
            let running = &mut self.running[crew];
            running.left -= 1;
            self.groups[crew].metrics.end_transaction(running.transaction, running.end);
        }
        let GroupStrands { metrics: notes, strands } = &self.groups[crew];
        let (group, totals) = (notes.group, strands[strand].totals());
        self.send_event(match (fault, duty) {
            (Some(fault), _) => ExecutorEvent::Failed(fault),
            (None, StrandTask::Drain) => ExecutorEvent::Drained { group, totals },
            (None, _) => ExecutorEvent::Ended { group, totals },
        });
    }

    /// Divides the thread's CPU usage equally among the groups in a data-phase transaction.
    fn distribute_usage(&mut self) {
        let now = Usage::current_thread();
        let used = now.since(self.last_usage);
        self.last_usage = now;
        let busy = |running: &RunningTransaction, crew: &GroupStrands| {
            running.left > 0 && crew.metrics.plan.is_data_phase(running.transaction)
        };
        let among = self.running.iter().zip(&self.groups).filter(|(running, crew)| busy(running, crew)).count() as u64;
        for (running, crew) in self.running.iter().zip(&mut self.groups) {
            if busy(running, crew) {
                crew.metrics.usage.add(used.split_among(among));
            }
        }
    }

    #[allow(unsafe_code)]
    fn watch(&mut self, crew: usize, strand: usize, wait: &WaitCondition) {
        let state = &mut self.states[crew][strand];
        state.timer += 1;
        if let Some(until) = wait.until {
            self.timers.push(Reverse((until, crew, strand, state.timer)));
        }
        let Some(fd) = wait.fd else { return };
        let key = (crew, strand, self.groups[crew].strands[strand].generation());
        if self.watched.get(&fd) == Some(&key) {
            return;
        }
        // SAFETY: the descriptor belongs to a connection of this strand, which nobody else closes.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        // Edges, once for both directions: a strand goes on until the kernel has nothing more, and only then waits.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64((crew as u64) << 32 | strand as u64);
        match epoll::add(&self.epoll, borrowed, data, flags) {
            Ok(()) => {}
            Err(Errno::EXIST) => {}
            Err(error) => self.send_event(ExecutorEvent::Failed(EngineError::new(format!(
                "a connection cannot be waited for: {error}"
            )))),
        }
        self.watched.insert(fd, key);
    }

    /// Tends the connections of strands that carry out nothing; says when it has to be done again.
    fn maintain_idle(&mut self, now: Nanos) -> Option<Nanos> {
        if self.next_maintenance.is_none_or(|next| now < next) {
            return self.next_maintenance;
        }
        let mut again = false;
        for (crew, states) in self.groups.iter_mut().zip(&self.states) {
            for (strand, _) in crew.strands.iter_mut().zip(states).filter(|(_, state)| state.task == StrandTask::Idle) {
                again |= strand.maintain();
            }
        }
        self.next_maintenance = again.then(|| now + clock::nanos(executor::MAINTENANCE_INTERVAL));
        self.next_maintenance
    }

    /// Until something happens.
    fn wait(&mut self) {
        let now = clock::now();
        let tending = self.maintain_idle(now);
        while let Some(&Reverse((until, crew, strand, timer))) = self.timers.peek() {
            if self.states[crew][strand].timer != timer {
                self.timers.pop();
            } else if until <= now {
                self.timers.pop();
                self.enqueue(crew, strand);
            } else {
                break;
            }
        }
        let left = match (self.ready.is_empty(), self.timers.peek()) {
            (false, _) => Some(0),
            (true, timer) => {
                let timer = timer.map(|Reverse((until, ..))| *until);
                timer.into_iter().chain(tending).min().map(|until| until.saturating_sub(now))
            }
        };
        let timeout =
            left.map(|left| Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as _ });
        let mut happened =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; MAX_EVENTS];
        let count = epoll::wait(&self.epoll, &mut happened[..], timeout.as_ref()).unwrap_or(0);
        for event in &happened[..count] {
            match event.data.u64() {
                WAKE_TOKEN => {
                    let mut count = [0; 8];
                    // It is emptied; what was told is read from the channel.
                    let _: rustix::io::Result<usize> = rustix::io::read(self.wake_fd.as_fd(), &mut count);
                }
                data => self.enqueue((data >> 32) as usize, (data & 0xffff_ffff) as usize),
            }
        }
    }
}

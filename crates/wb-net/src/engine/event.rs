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
    hand::{self, Heard, Notes, Reach, Told},
    site::Input,
    strand::{Step, Strand},
    usage::Usage,
    work::{Fault, Settings, StrandTotals},
};
use crate::transport::Wait;

/// The strands of one group on this thread.
pub(super) struct Crew {
    pub(super) notes: Notes,
    pub(super) strands: Vec<Strand>,
}

/// So many events are taken at once.
const EVENTS: usize = 256;

/// What stands for the site's call among the events.
const CALL: u64 = u64::MAX;

struct Loop<'a> {
    crews: Vec<Crew>,
    running: Vec<Running>,
    /// What the thread had used when that was last shared out among the crews.
    shared_out: Usage,
    states: Vec<Vec<State>>,
    ready: VecDeque<(usize, usize)>,
    timers: BinaryHeap<Reverse<(Nanos, usize, usize, u64)>>,
    epoll: OwnedFd,
    call: Arc<OwnedFd>,
    watched: HashMap<RawFd, (usize, usize, u64)>,
    buffer: Vec<u8>,
    /// When connections of strands that carry out nothing are tended; none if nothing is left to do.
    next_tending: Option<Nanos>,
    site: &'a Sender<Input>,
}

#[derive(Default)]
struct Running {
    transaction: usize,
    end: Option<Nanos>,
    left: usize,
}

/// What a strand does.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Duty {
    #[default]
    Nothing,
    Transaction,
    Settling,
}

#[derive(Clone, Default)]
struct State {
    duty: Duty,
    /// Whether it stands in the queue.
    queued: bool,
    /// Which of its timers is meant.
    timer: u64,
}

/// Carries out strands on this thread.
pub(super) fn events(
    hand: usize,
    mut crews: Vec<Crew>,
    settings: &Settings,
    told: &Receiver<Told>,
    site: &Sender<Input>,
) {
    let tell = |heard| site.send(Input::Heard(heard)).is_ok();
    hand::prepare_thread(settings, hand);
    for crew in &mut crews {
        if let Err(fault) = crew.notes.count(settings) {
            tell(Heard::Failed(fault));
        }
    }
    let mut this = match Loop::new(crews, site) {
        Ok(this) => this,
        Err(error) => {
            tell(Heard::Failed(Fault::new(format!("no event queue: {error}"))));
            return;
        }
    };
    if !tell(Heard::Ready { hand, reach: Reach::Events(this.call.clone()) }) {
        return;
    }
    while this.obey(told) {
        this.advance_ready();
        this.wait();
    }
}

impl<'a> Loop<'a> {
    fn new(crews: Vec<Crew>, site: &'a Sender<Input>) -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let call = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &*call, epoll::EventData::new_u64(CALL), epoll::EventFlags::IN)?;
        let buffer = crews.iter().map(|crew| crew.notes.plan.buffer).max().unwrap_or(0);
        Ok(Self {
            running: crews.iter().map(|_| Running::default()).collect(),
            shared_out: Usage::of_thread(),
            states: crews.iter().map(|crew| vec![State::default(); crew.strands.len()]).collect(),
            crews,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            epoll,
            call,
            watched: HashMap::new(),
            buffer: hand::buffer(buffer),
            next_tending: None,
            site,
        })
    }

    fn tell(&self, heard: Heard) {
        // A site that is gone hears nothing, and its end of the orders says so next.
        let _: Result<(), _> = self.site.send(Input::Heard(heard));
    }

    /// Does what was told meanwhile; false when there is no more to come.
    fn obey(&mut self, told: &Receiver<Told>) -> bool {
        loop {
            match told.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
                Ok(Told::Report) => {
                    for crew in std::mem::take(&mut self.crews) {
                        self.tell(Heard::Reported(Box::new(crew.notes.part(&crew.strands))));
                    }
                    return false;
                }
                Ok(Told::Run { group, transaction, began, end }) => self.run(group, transaction, began, end),
                Ok(Told::Look { group }) => {
                    if let Some(crew) = self.crew(group) {
                        for strand in 0..self.states[crew].len() {
                            self.queue(crew, strand);
                        }
                    }
                }
                Ok(Told::Settle { group, totals }) => {
                    let Some(crew) = self.crew(group) else { continue };
                    let mut totals: HashMap<u32, StrandTotals> =
                        totals.into_iter().map(|totals| (totals.strand, totals)).collect();
                    for strand in 0..self.states[crew].len() {
                        let settled = &mut self.crews[crew].strands[strand];
                        if let Some(theirs) = totals.remove(&settled.index) {
                            settled.settles(theirs.connections);
                            self.states[crew][strand].duty = Duty::Settling;
                            self.queue(crew, strand);
                        }
                    }
                }
            }
        }
    }

    fn crew(&self, group: usize) -> Option<usize> {
        self.crews.iter().position(|crew| crew.notes.group == group)
    }

    fn run(&mut self, group: usize, transaction: usize, began: Nanos, end: Option<Nanos>) {
        let Some(index) = self.crew(group) else { return };
        self.share_out();
        let crew = &mut self.crews[index];
        crew.notes.begin(transaction, began, end);
        self.running[index] = Running { transaction, end, left: crew.strands.len() };
        for (position, strand) in crew.strands.iter_mut().enumerate() {
            strand.begin(transaction, began, end);
            self.states[index][position].duty = Duty::Transaction;
        }
        for strand in 0..self.states[index].len() {
            self.queue(index, strand);
        }
    }

    fn queue(&mut self, crew: usize, strand: usize) {
        let state = &mut self.states[crew][strand];
        if state.duty != Duty::Nothing && !state.queued {
            state.queued = true;
            self.ready.push_back((crew, strand));
        }
    }

    /// Gives each strand that can go on its turn, once.
    fn advance_ready(&mut self) {
        for _ in 0..self.ready.len() {
            let Some((crew, strand)) = self.ready.pop_front() else { return };
            self.states[crew][strand].queued = false;
            let Crew { notes, strands } = &mut self.crews[crew];
            let step = match self.states[crew][strand].duty {
                // It ended while it stood in the queue.
                Duty::Nothing => continue,
                Duty::Transaction => strands[strand].advance(&mut notes.context(&mut self.buffer)),
                Duty::Settling => strands[strand].settle(&mut self.buffer),
            };
            match step {
                Step::Yield => self.queue(crew, strand),
                Step::Wait(wait) => self.watch(crew, strand, &wait),
                Step::Ended => self.done(crew, strand, None),
                Step::Failed(fault) => self.done(crew, strand, Some(fault)),
            }
        }
    }

    /// A strand is done with its duty, or failed at it.
    fn done(&mut self, crew: usize, strand: usize, fault: Option<Fault>) {
        let state = &mut self.states[crew][strand];
        let duty = std::mem::take(&mut state.duty);
        state.timer += 1;
        self.next_tending = Some(0);
        if duty == Duty::Transaction {
            if self.running[crew].left == 1 {
                self.share_out();
            }
            let running = &mut self.running[crew];
            running.left -= 1;
            self.crews[crew].notes.end(running.transaction, running.end);
        }
        let Crew { notes, strands } = &self.crews[crew];
        let (group, totals) = (notes.group, strands[strand].totals());
        self.tell(match (fault, duty) {
            (Some(fault), _) => Heard::Failed(fault),
            (None, Duty::Settling) => Heard::Settled { group, totals },
            (None, _) => Heard::Ended { group, totals },
        });
    }

    /// Shares out what the thread has used among the crews that are in transactions which matter: how much of it was
    /// whose cannot be told, and what is nobody's counts for nothing.
    fn share_out(&mut self) {
        let now = Usage::of_thread();
        let used = now.since(self.shared_out);
        self.shared_out = now;
        let busy = |running: &Running, crew: &Crew| running.left > 0 && crew.notes.plan.matters(running.transaction);
        let among = self.running.iter().zip(&self.crews).filter(|(running, crew)| busy(running, crew)).count() as u64;
        for (running, crew) in self.running.iter().zip(&mut self.crews) {
            if busy(running, crew) {
                crew.notes.usage.add(used.shared(among));
            }
        }
    }

    #[allow(unsafe_code)]
    fn watch(&mut self, crew: usize, strand: usize, wait: &Wait) {
        let state = &mut self.states[crew][strand];
        state.timer += 1;
        if let Some(until) = wait.until {
            self.timers.push(Reverse((until, crew, strand, state.timer)));
        }
        let Some(fd) = wait.fd else { return };
        let key = (crew, strand, self.crews[crew].strands[strand].generation());
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
            Err(error) => self.tell(Heard::Failed(Fault::new(format!("a connection cannot be waited for: {error}")))),
        }
        self.watched.insert(fd, key);
    }

    /// Tends the connections of strands that carry out nothing; says when it has to be done again.
    fn tend(&mut self, now: Nanos) -> Option<Nanos> {
        if self.next_tending.is_none_or(|next| now < next) {
            return self.next_tending;
        }
        let mut again = false;
        for (crew, states) in self.crews.iter_mut().zip(&self.states) {
            for (strand, _) in crew.strands.iter_mut().zip(states).filter(|(_, state)| state.duty == Duty::Nothing) {
                again |= strand.tend();
            }
        }
        self.next_tending = again.then(|| now + clock::nanos(hand::TENDING));
        self.next_tending
    }

    /// Until something happens.
    fn wait(&mut self) {
        let now = clock::now();
        let tending = self.tend(now);
        while let Some(&Reverse((until, crew, strand, timer))) = self.timers.peek() {
            if self.states[crew][strand].timer != timer {
                self.timers.pop();
            } else if until <= now {
                self.timers.pop();
                self.queue(crew, strand);
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
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; EVENTS];
        let count = epoll::wait(&self.epoll, &mut happened[..], timeout.as_ref()).unwrap_or(0);
        for event in &happened[..count] {
            match event.data.u64() {
                CALL => {
                    let mut count = [0; 8];
                    // It is emptied; what was told is read from the channel.
                    let _: rustix::io::Result<usize> = rustix::io::read(self.call.as_fd(), &mut count);
                }
                data => self.queue((data >> 32) as usize, (data & 0xffff_ffff) as usize),
            }
        }
    }
}

//! A site: the strands of one process, and the thread that drives them as it is told.

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

use self::prepare::Prepared;
use super::{
    clock::{self, Nanos},
    hand::{Heard, Part, Reach, Told},
    report::{GroupReport, Report},
    tally::Published,
    work::{Assignment, Event, Fault, Order, Progress, StrandTotals},
};
use crate::language::Extent;
use crate::netstat::Netstat;
use crate::transport::door::Doors;

/// What comes to a site: from whoever coordinates the run, or from its own threads.
#[derive(Debug)]
pub(super) enum Input {
    Order(Order),
    Heard(Heard),
    Quit,
}

/// A site of this process. When it is dropped, its strands and connections end.
#[derive(Debug)]
pub struct Site(Sender<Input>);

impl Drop for Site {
    fn drop(&mut self) {
        // One that has ended needs no telling.
        let _: Result<(), _> = self.0.send(Input::Quit);
    }
}

impl Site {
    /// Starts one; what it has to say goes to `tell`, which says whether anybody listens.
    pub fn start(tell: impl Fn(Event) -> bool + Send + 'static) -> io::Result<Self> {
        let (input, inputs) = channel();
        let hands = input.clone();
        thread::Builder::new().name("site".to_owned()).spawn(move || {
            let mut driver = Driver { tell: Box::new(tell), hands, state: None };
            driver.drive(&inputs);
        })?;
        Ok(Self(input))
    }

    /// Tells it what to do; false when it has ended.
    pub fn order(&self, order: Order) -> bool {
        self.0.send(Input::Order(order)).is_ok()
    }
}

struct Driver {
    tell: Box<dyn Fn(Event) -> bool + Send>,
    hands: Sender<Input>,
    state: Option<State>,
}

/// A run that is under way.
struct State {
    prepared: Prepared,
    groups: Vec<GroupState>,
    published: Vec<Arc<Published>>,
    progress: Vec<Progress>,
    interval: Nanos,
    next_progress: Nanos,
    netstat: Netstat,
    parts: Vec<Part>,
    stopping: bool,
    /// Shared ones take connections for as long as this is held.
    _doors: Arc<Doors>,
}

#[derive(Default)]
struct GroupState {
    /// Strands that are in a transaction.
    running: usize,
    end: Option<Nanos>,
    finishing: bool,
    /// Strands whose end or settling has not been told yet.
    totals: Vec<StrandTotals>,
    next_touch: Nanos,
    pause: Nanos,
}

/// Between two attempts to interrupt strands, at first and at most.
const PAUSE: (Nanos, Nanos) = (500_000, 20_000_000);

/// Strands begin this much after they were told, for each of them; all are awake by then.
const WAKING: Nanos = 10_000;

impl Driver {
    fn drive(&mut self, inputs: &Receiver<Input>) {
        loop {
            let left = self.state.as_ref().map_or(Nanos::MAX, |state| state.next().saturating_sub(clock::now()));
            let input = match inputs.recv_timeout(Duration::from_nanos(left.min(1_000_000_000))) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let on = match input {
                Some(Input::Order(order)) => self.obey(order),
                Some(Input::Heard(heard)) => self.hear(heard),
                Some(Input::Quit) => false,
                None => true,
            };
            if !on || !self.tick() {
                self.end();
                return;
            }
        }
    }

    /// Leaves nothing behind: every strand is made to end, and its connections with it.
    fn end(&mut self) {
        let Some(state) = self.state.take() else { return };
        state.prepared.hands.iter().flat_map(|hand| hand.signals.iter()).for_each(|(_, signals)| {
            signals.stop.store(true, Relaxed);
        });
        let Prepared { hands, .. } = state.prepared;
        for hand in hands {
            drop(hand.told);
            while !hand.thread.is_finished() {
                if let Some(reach) = &hand.reach {
                    reach.touch();
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn obey(&mut self, order: Order) -> bool {
        let order = match order {
            Order::Prepare(assignment) => return self.prepare(*assignment),
            order => order,
        };
        let Some(state) = &mut self.state else {
            return (self.tell)(Event::Failed(Fault::new("it was told to work before it was told on what")));
        };
        match order {
            Order::Prepare(_) | Order::Alive => true,
            Order::Meet(links) => match state.prepared.meet(links) {
                Ok(()) => {
                    state.prepared.start(&self.hands);
                    true
                }
                Err(fault) => (self.tell)(Event::Failed(fault)),
            },
            Order::Run { group, transaction, limit } => state.run(group, transaction, limit),
            Order::Finish { group, totals } => {
                state.finish(group, totals);
                true
            }
            Order::Settle { group, totals } => {
                if let Some(known) = state.groups.get_mut(group).filter(|known| known.running == 0) {
                    known.running = totals.len();
                    known.totals.clear();
                    state.prepared.settle(group, totals);
                }
                true
            }
            Order::Stop => {
                state.stop();
                true
            }
            Order::Report => {
                state.prepared.tell_all(|| Told::Report);
                true
            }
        }
    }

    fn prepare(&mut self, assignment: Assignment) -> bool {
        if self.state.is_some() {
            return (self.tell)(Event::Failed(Fault::new("it was told on what to work twice")));
        }
        let settings = &assignment.settings;
        let doors = match Doors::new(settings.ports.map(|(low, high)| low..=high)) {
            Ok(doors) => doors,
            Err(error) => return (self.tell)(Event::Failed(Fault::new(error.to_string()))),
        };
        let interval = settings.interval.max(1_000_000);
        let groups = assignment.profile.groups.iter().map(|_| GroupState::default()).collect();
        match Prepared::new(assignment, &doors) {
            Ok(prepared) => {
                let event = Event::Prepared { links: prepared.announcements(), executor: prepared.executor };
                let published = prepared.published.clone();
                let now = clock::now();
                let nothing = Progress { at: now, ..Progress::default() };
                self.state = Some(State {
                    prepared,
                    groups,
                    published,
                    progress: vec![nothing],
                    interval,
                    next_progress: now + interval,
                    netstat: Netstat::now(),
                    parts: Vec::new(),
                    stopping: false,
                    _doors: doors,
                });
                (self.tell)(event)
            }
            Err(fault) => (self.tell)(Event::Failed(fault)),
        }
    }

    fn hear(&mut self, heard: Heard) -> bool {
        let Some(state) = &mut self.state else { return true };
        match heard {
            Heard::Ready { hand, reach } => {
                state.prepared.hands[hand].reach = Some(reach);
                if state.prepared.hands.iter().all(|hand| hand.reach.is_some()) {
                    return (self.tell)(Event::Met);
                }
                true
            }
            Heard::Ended { group, totals } => match state.gather(group, totals) {
                Some(strands) => (self.tell)(Event::Ended { group, strands }),
                None => true,
            },
            Heard::Settled { group, totals } => match state.gather(group, totals) {
                Some(strands) => (self.tell)(Event::Settled { group, strands }),
                None => true,
            },
            Heard::Failed(fault) => (self.tell)(Event::Failed(fault)),
            Heard::Reported(part) => {
                state.parts.push(*part);
                if state.parts.len() < state.prepared.parts {
                    return true;
                }
                self.tell_raw();
                let report = self.state.as_mut().map(State::report);
                if let Some(report) = report {
                    (self.tell)(Event::Report(Box::new(report)));
                }
                false
            }
        }
    }

    /// What has to be done at certain times.
    fn tick(&mut self) -> bool {
        let now = clock::now();
        let Some(state) = &mut self.state else { return true };
        state.touch(now);
        if now < state.next_progress {
            return true;
        }
        let progress = state.look(now);
        let on = (self.tell)(Event::Progress(progress));
        self.tell_raw();
        on
    }

    fn tell_raw(&self) {
        let Some(state) = &self.state else { return };
        for parts in &state.prepared.raw {
            parts.fetch(|part| {
                if !part.is_empty() {
                    // A run whose coordinator is gone keeps nothing.
                    let _: bool = (self.tell)(Event::Raw(part.to_vec()));
                }
            });
        }
    }
}

impl State {
    /// When something has to be done again.
    fn next(&self) -> Nanos {
        let touches = self.groups.iter().filter(|group| group.running > 0).filter_map(|group| {
            if group.finishing || self.stopping {
                Some(group.next_touch)
            } else {
                group.end.map(|end| end.max(group.next_touch))
            }
        });
        touches.chain([self.next_progress]).min().unwrap_or(self.next_progress)
    }

    fn run(&mut self, group: usize, transaction: usize, limit: Option<Nanos>) -> bool {
        let strands = self.prepared.strands_of(group);
        // What a client may say twice is said by none of ours.
        let Some(known) = self.groups.get_mut(group).filter(|known| known.running == 0) else { return true };
        let Some(plan) = self.prepared.plans.get(group).and_then(|plan| plan.transactions.get(transaction)) else {
            return true;
        };
        let began = clock::now() + (strands as Nanos * WAKING).min(100_000_000);
        let window = match plan.extent {
            Extent::Window(window) => Some(clock::nanos(window)),
            Extent::Iterations(_) => None,
        };
        let end = window.into_iter().chain(limit).min().map(|length| began + length);
        *known = GroupState { running: strands, end, next_touch: 0, pause: PAUSE.0, ..GroupState::default() };
        // By who sets it: that the other side is done may be heard of before a strand has begun.
        self.prepared.signals(group).for_each(|(_, signals)| signals.finish.store(false, Relaxed));
        self.prepared.tell(group, || Told::Run { group, transaction, began, end });
        true
    }

    fn finish(&mut self, group: usize, totals: Vec<StrandTotals>) {
        let Some(known) = self.groups.get_mut(group) else { return };
        known.finishing = true;
        known.pause = PAUSE.0;
        known.next_touch = 0;
        let mut totals: BTreeMap<u32, StrandTotals> =
            totals.into_iter().map(|totals| (totals.strand, totals)).collect();
        for (strand, signals) in self.prepared.signals(group) {
            *signals.totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = totals.remove(&strand);
            signals.finish.store(true, Relaxed);
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        for group in 0..self.groups.len() {
            self.prepared.signals(group).for_each(|(_, signals)| signals.stop.store(true, Relaxed));
            self.groups[group].next_touch = 0;
        }
    }

    /// Interrupts strands that should have ended.
    fn touch(&mut self, now: Nanos) {
        for (group, known) in self.groups.iter_mut().enumerate() {
            let over = known.end.is_some_and(|end| now >= end) || known.finishing || self.stopping;
            if known.running == 0 || !over || now < known.next_touch {
                continue;
            }
            known.next_touch = now + known.pause;
            known.pause = (known.pause * 2).min(PAUSE.1);
            self.prepared.touch(group);
        }
    }

    /// Notes what a strand moved; gives what all did when it was the last.
    fn gather(&mut self, group: usize, totals: StrandTotals) -> Option<Vec<StrandTotals>> {
        let known = &mut self.groups[group];
        known.totals.push(totals);
        known.running -= 1;
        (known.running == 0).then(|| {
            known.finishing = false;
            std::mem::take(&mut known.totals)
        })
    }

    fn look(&mut self, now: Nanos) -> Progress {
        let look = Published::look(&self.published);
        while self.next_progress <= now {
            self.next_progress += self.interval;
        }
        let progress = Progress { at: now, sent: look.sent, received: look.received, operations: look.operations };
        self.progress.push(progress);
        progress
    }

    fn report(&mut self) -> Report {
        self.look(clock::now());
        let mut groups: Vec<GroupReport> = Vec::new();
        let mut refused = 0;
        let mut parts = std::mem::take(&mut self.parts);
        for group in 0..self.groups.len() {
            let mut report = GroupReport::default();
            for part in parts.extract_if(.., |part| part.group == group) {
                let Part { transactions, strands, connections, usage, .. } = part;
                report.add(GroupReport { transactions, strands, connections, usage });
                refused += part.refused;
            }
            groups.push(report);
        }
        Report {
            side: self.prepared.side,
            groups,
            progress: std::mem::take(&mut self.progress),
            counted: Netstat::now().since(&self.netstat),
            refused,
            executor: self.prepared.executor,
        }
    }
}

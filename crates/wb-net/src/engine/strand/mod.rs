//! One strand: where it is in its transactions, and what it does next.
//!
//! A strand is carried on by [`Strand::advance`] until it has to wait. Under a thread of its own its sockets block,
//! so that this is in the kernel; under events it says what it waits for. All else is the same.

pub mod files;
mod header;
mod message;
mod open;
mod settle;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use self::{
    files::{Listings, Pick},
    message::Moving,
    open::Open,
    settle::Settling,
};
use super::{
    clock::{self, Nanos},
    counters::Counters,
    descriptors,
    jots::{Jot, Jots, Of},
    plan::{Executions, FlowopPlan, GroupPlan, TransactionPlan},
    raw::RawLog,
    tally::{Published, StrandTally, TransactionTally},
    work::{Fault, Side, StrandTotals},
};
use crate::language::{Action, Extent, Message};
use crate::transport::{Info, Intent, Transport, Wait, ends::End};

/// A strand of a group.
pub(super) struct Strand {
    pub(super) index: u32,
    side: Side,
    seed: u64,
    deadline: Nanos,
    plan: Arc<GroupPlan>,
    /// By the place of the connect or accept.
    ends: Vec<(u32, End)>,
    files: Listings,
    open: Vec<Open>,
    /// Connections opened so far, by host.
    opened: Vec<u32>,
    at: At,
    doing: Doing,
    now: Nanos,
    own_thread: bool,
    /// What the kernel said of connections that are closed.
    closed: Info,
    /// Datagrams of connections that are closed, by host, sent and received.
    gone: Vec<(u64, u64)>,
    /// What it takes in after a transaction.
    settling: Settling,
    /// Changes with every connection that is opened or closed.
    generation: u64,
    pub(super) signals: Arc<Signals>,
    pub(super) tally: StrandTally,
}

/// What others tell a strand while it is busy.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Give up.
    pub(super) stop: AtomicBool,
    /// The other side is done: end when nothing more can come.
    pub(super) finish: AtomicBool,
    /// With these totals.
    pub(super) totals: std::sync::Mutex<Option<StrandTotals>>,
}

/// What a strand works with; strands of one executor share it.
pub(super) struct Context<'a> {
    pub(super) buffer: &'a mut [u8],
    pub(super) transactions: &'a mut [TransactionTally],
    pub(super) published: &'a Published,
    pub(super) jots: &'a mut Jots,
    pub(super) raw: Option<&'a mut RawLog>,
    pub(super) counters: Option<&'a mut Counters>,
    /// Whether CPU time is asked for around each execution.
    pub(super) cpu: bool,
    /// Whether times are recorded.
    pub(super) record: bool,
}

/// How far a strand came.
#[derive(Debug)]
pub(super) enum Step {
    /// It waits.
    Wait(Wait),
    /// Others had no turn for long; it could go on.
    Yield,
    /// It is done with the transaction.
    Ended,
    /// It cannot go on.
    Failed(Fault),
}

/// Where a strand is.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    transaction: usize,
    /// Whether it belongs to the data phase.
    matters: bool,
    round: u64,
    flowop: usize,
    execution: u64,
    /// Of the transaction.
    began: Nanos,
    /// Of its window.
    end: Option<Nanos>,
    round_began: Nanos,
    /// When the rate wanted this round to start.
    round_intended: Nanos,
    /// Of the flowop's first execution in this round.
    flowop_began: Nanos,
    /// Bytes moved in pieces in this round.
    moved: u64,
}

/// What a strand is in the middle of.
enum Doing {
    /// Nothing: the next execution has not begun.
    Nothing,
    /// It waits for the time that a rate sets.
    Pacing,
    /// A message.
    Message(Moving),
    /// A file.
    File { began: Nanos, picks: Vec<Pick>, offset: u64 },
    /// A connection that is being made.
    Connecting { began: Nanos, transport: Box<dyn Transport> },
    /// It waits for a connection.
    Accepting { began: Nanos },
    /// A connection that is being closed.
    Closing { began: Nanos, open: Open },
    /// It does nothing.
    Thinking { began: Nanos, until: Nanos },
}

/// How an execution went.
enum Went {
    /// To its end, with so many bytes sent and received.
    Done { messages: u64, began: Nanos, intended: Option<Nanos>, sent: u64, received: u64 },
    /// It waits.
    Waits(Wait),
    /// The time of the flowop is up in the middle of it.
    Left,
    /// The transaction is over for this strand.
    Over,
    /// A datagram did not come in time.
    Lost,
    /// It failed.
    Failed(io::Error),
}

/// So many executions go by before others have their turn.
const TURN: u32 = 64;

/// Datagrams that have not come so long after the other side was done are lost.
const QUIET: Nanos = 100_000_000;

/// What a strand is made of.
pub(super) struct Setup {
    pub(super) index: u32,
    pub(super) side: Side,
    pub(super) seed: u64,
    /// How long a client waits for a datagram where the profile does not say.
    pub(super) deadline: Nanos,
    pub(super) plan: Arc<GroupPlan>,
    /// By the place of the connect or accept.
    pub(super) ends: Vec<(u32, End)>,
    pub(super) files: Listings,
    /// How many other machines there are.
    pub(super) hosts: usize,
    /// Whether it may block its thread.
    pub(super) own_thread: bool,
}

impl Strand {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { index, side, seed, deadline, plan, ends, files, hosts, own_thread } = setup;
        Self {
            index,
            side,
            seed,
            deadline,
            plan,
            ends,
            files,
            open: Vec::new(),
            opened: vec![0; hosts.max(1)],
            at: At::default(),
            doing: Doing::Nothing,
            now: 0,
            own_thread,
            closed: Info::default(),
            gone: vec![(0, 0); hosts.max(1)],
            settling: Settling::default(),
            generation: 0,
            signals: Arc::default(),
            tally: StrandTally { strand: index, ..StrandTally::default() },
        }
    }

    /// The end of a link of this strand.
    pub(super) fn end_mut(&mut self, place: u32) -> Option<&mut End> {
        self.ends.iter_mut().find(|(at, _)| *at == place).map(|(_, end)| end)
    }

    /// Connections from elsewhere that were dropped.
    pub(super) fn refused(&self) -> u64 {
        self.ends.iter().map(|(_, end)| end.refused()).sum()
    }

    /// Makes ready to carry out a transaction in a window.
    pub(super) fn begin(&mut self, transaction: usize, began: Nanos, end: Option<Nanos>) {
        let matters = self.plan.matters(transaction);
        self.at = At { transaction, matters, began, end, round_began: began, round_intended: began, ..At::default() };
        self.doing = Doing::Nothing;
    }

    /// Does what its connections need while it carries out nothing; says whether that has to be done again soon.
    pub(super) fn tend(&mut self) -> bool {
        let mut again = false;
        for open in &mut self.open {
            again |= open.transport.tend();
        }
        again
    }

    /// Goes on until it has to wait.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) -> Step {
        self.now = clock::now();
        let plan = self.plan.clone();
        let transaction = &plan.transactions[self.at.transaction];
        let mut left = TURN;
        if self.now < self.at.began && !self.signals.stop.load(Relaxed) {
            return Step::Wait(Wait::until(self.at.began));
        }
        loop {
            if self.is_over() {
                self.give_up();
                return Step::Ended;
            }
            if transaction.idle {
                return self.at.end.map_or(Step::Ended, |end| Step::Wait(Wait::until(end)));
            }
            if self.at.flowop == 0 && self.at.execution == 0 && matches!(self.doing, Doing::Nothing | Doing::Pacing) {
                match self.round_begins(transaction) {
                    Begins::Now => {}
                    Begins::At(point) => return Step::Wait(Wait::until(point)),
                    Begins::Never => return Step::Ended,
                }
            }
            let flowop = &transaction.flowops[self.at.flowop];
            if matches!(flowop.flowop.action, Action::Elsewhere) {
                self.next_flowop(transaction, context);
                continue;
            }
            let before = context.cpu.then(clock::thread_cpu);
            if let Some(counters) = context.counters.as_deref_mut() {
                counters.begin();
            }
            let went = self.execute(flowop, context);
            if let Some(before) = before {
                let tally = &mut context.transactions[self.at.transaction].flowops[self.at.flowop];
                tally.cpu += clock::thread_cpu() - before;
            }
            if let Some(counters) = context.counters.as_deref_mut() {
                counters.add(&mut context.transactions[self.at.transaction].flowops[self.at.flowop].counters);
            }
            match went {
                Went::Done { messages, began, intended, sent, received } => {
                    self.now = clock::now();
                    if self.at.end.is_some_and(|end| self.now > end) {
                        return Step::Ended;
                    }
                    // A datagram may have been another than the one that was waited for.
                    let flowop = &transaction.flowops[self.at.flowop];
                    self.record(flowop, messages, (began, intended), (sent, received), context);
                    self.next_execution(flowop, transaction, (messages, sent + received), context);
                }
                Went::Waits(wait) => {
                    let end = self.at.end.unwrap_or(Nanos::MAX);
                    let end = end.min(self.flowop_end(flowop).unwrap_or(Nanos::MAX));
                    return Step::Wait(if end == Nanos::MAX { wait } else { wait.or_until(end) });
                }
                Went::Left => self.next_flowop(transaction, context),
                Went::Over => return Step::Ended,
                Went::Lost => {
                    context.transactions[self.at.transaction].flowops[self.at.flowop].timeouts += 1;
                    self.next_execution(flowop, transaction, (1, 0), context);
                }
                Went::Failed(error) => {
                    if !flowop.flowop.can_fail {
                        return Step::Failed(self.fault(flowop, &error));
                    }
                    let number = error.raw_os_error().unwrap_or(0);
                    let tally = &mut context.transactions[self.at.transaction].flowops[self.at.flowop];
                    *tally.errors.entry(number).or_default() += 1;
                    self.now = clock::now();
                    self.next_execution(flowop, transaction, (1, 0), context);
                }
            }
            left -= 1;
            if left == 0 {
                left = TURN;
                if !self.own_thread {
                    return Step::Yield;
                }
            }
        }
    }

    /// Another one whenever connections were opened or closed, so that descriptors may be others.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    fn is_over(&self) -> bool {
        self.signals.stop.load(Relaxed) || self.at.end.is_some_and(|end| self.now >= end)
    }

    /// Leaves what it is in the middle of; but a connection that is being made stays until the next transaction, when
    /// the other side does not wait for it any more.
    fn give_up(&mut self) {
        if !matches!(self.doing, Doing::Connecting { .. }) {
            self.doing = Doing::Nothing;
        }
    }

    fn round_begins(&mut self, transaction: &TransactionPlan) -> Begins {
        if let Extent::Iterations(rounds) = transaction.extent
            && self.at.round >= rounds
        {
            return Begins::Never;
        }
        if let Some(period) = transaction.period {
            // From the number of the round, not from the last one: an open loop makes up for what it missed.
            let intended = self.at.began + (self.at.round as f64 * period) as Nanos;
            if self.now < intended {
                self.now = clock::now();
                if self.now < intended {
                    self.doing = Doing::Pacing;
                    return Begins::At(intended);
                }
            }
            self.at.round_intended = intended;
        }
        self.doing = Doing::Nothing;
        self.at.round_began = self.now.max(self.at.began);
        self.at.flowop_began = self.now;
        Begins::Now
    }

    fn execute(&mut self, flowop: &FlowopPlan, context: &mut Context<'_>) -> Went {
        match &flowop.flowop.action {
            Action::Send(message) => self.send(flowop, message, context),
            Action::Receive(message) => self.receive(flowop, message, context),
            Action::Connect(endpoint) => self.connect(flowop, endpoint),
            Action::Accept(_) => self.accept(flowop),
            Action::Disconnect => self.disconnect(flowop),
            Action::SendFiles(files) => self.send_files(flowop, files, context),
            Action::ReceiveFiles(sizes) => self.receive_files(flowop, sizes, context),
            Action::Think { duration, busy } => self.think(clock::nanos(*duration), *busy),
            Action::Nop | Action::Elsewhere => {
                Went::Done { messages: 1, began: self.now, intended: None, sent: 0, received: 0 }
            }
        }
    }

    fn think(&mut self, duration: Nanos, busy: bool) -> Went {
        let (began, until) = match self.doing {
            Doing::Thinking { began, until } => (began, until),
            _ => (self.now, self.now + duration),
        };
        if !busy {
            if self.now < until {
                self.doing = Doing::Thinking { began, until };
                return Went::Waits(Wait::until(until));
            }
        } else {
            while self.now < until {
                std::hint::spin_loop();
                self.now = clock::now();
                if self.is_over() {
                    return Went::Over;
                }
            }
        }
        self.doing = Doing::Nothing;
        Went::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
    }

    /// When an execution may start; remembers that it waits for it.
    fn pace(&mut self, flowop: &FlowopPlan) -> Result<Option<Nanos>, Wait> {
        let Some(period) = flowop.period else { return Ok(None) };
        let number = self.at.round.saturating_mul(flowop.flowop.executions()) + self.at.execution;
        let intended = self.at.began + (number as f64 * period) as Nanos;
        if self.now < intended {
            self.now = clock::now();
            if self.now < intended {
                return Err(Wait::until(intended));
            }
        }
        Ok(Some(intended))
    }

    #[inline]
    fn record(
        &mut self,
        flowop: &FlowopPlan,
        messages: u64,
        (began, intended): (Nanos, Option<Nanos>),
        (sent, received): (u64, u64),
        context: &mut Context<'_>,
    ) {
        let tally = &mut context.transactions[self.at.transaction].flowops[self.at.flowop];
        tally.count += messages;
        tally.bytes += sent + received;
        context.published.add(sent, received, messages);
        if self.at.matters {
            self.tally.operations += messages;
            self.tally.sent += sent;
            self.tally.received += received;
        }
        if !context.record {
            return;
        }
        let service = self.now.saturating_sub(began);
        if let (Some(intended), Some(response), Some(lag)) = (intended, &mut tally.response, &mut tally.lag) {
            response.record(self.now.saturating_sub(intended));
            lag.record(began.saturating_sub(intended));
        }
        let of = Of::Flowop { flowop: self.at.flowop as u32, messages: messages as u32 };
        context.jots.jot(Jot { transaction: self.at.transaction as u32, of, nanos: service }, context.transactions);
        if let Some(raw) = context.raw.as_deref_mut() {
            raw.add(self.now, self.index, flowop.place, service);
        }
    }

    fn flowop_end(&self, flowop: &FlowopPlan) -> Option<Nanos> {
        flowop
            .flowop
            .duration
            .filter(|_| !matches!(flowop.flowop.action, Action::Think { .. }))
            .map(|duration| self.at.flowop_began + clock::nanos(duration))
    }

    #[inline]
    fn next_execution(
        &mut self,
        flowop: &FlowopPlan,
        transaction: &TransactionPlan,
        (messages, bytes): (u64, u64),
        context: &mut Context<'_>,
    ) {
        self.doing = Doing::Nothing;
        self.at.execution += messages;
        self.at.moved += bytes;
        let done = match self.flowop_end(flowop) {
            Some(end) => self.now >= end,
            None => match flowop.executions {
                Executions::AsWritten(executions) | Executions::InPieces { executions, .. } => {
                    self.at.execution >= executions
                }
            },
        };
        if done {
            self.next_flowop(transaction, context);
        }
    }

    fn next_flowop(&mut self, transaction: &TransactionPlan, context: &mut Context<'_>) {
        self.at.flowop += 1;
        self.at.execution = 0;
        self.at.moved = 0;
        self.at.flowop_began = self.now;
        if self.at.flowop == transaction.flowops.len() {
            self.round_ends(transaction, context);
        }
    }

    fn round_ends(&mut self, transaction: &TransactionPlan, context: &mut Context<'_>) {
        let took = self.now.saturating_sub(self.at.round_began);
        if self.at.matters {
            self.tally.round(took);
        }
        if context.record {
            let jot = Jot { transaction: self.at.transaction as u32, of: Of::Round { now: self.now }, nanos: took };
            context.jots.jot(jot, context.transactions);
            if transaction.period.is_some()
                && let tally = &mut context.transactions[self.at.transaction]
                && let (Some(response), Some(lag)) = (&mut tally.response, &mut tally.lag)
            {
                response.record(self.now.saturating_sub(self.at.round_intended));
                lag.record(self.at.round_began.saturating_sub(self.at.round_intended));
            }
        }
        self.at.flowop = 0;
        self.at.round += 1;
        // Without a rate the next round begins where this one ended.
        self.at.round_began = self.now;
    }

    fn fault(&self, flowop: &FlowopPlan, error: &io::Error) -> Fault {
        let transaction = &self.plan.transactions[self.at.transaction].name;
        Fault {
            place: Some(format!(
                "{}, {transaction}, {} with {}",
                self.plan.name,
                flowop.flowop.name,
                self.plan.host(flowop)
            )),
            what: descriptors::words(error),
            unsupported: matches!(
                error.raw_os_error(),
                Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::ESOCKTNOSUPPORT)
            ) || error.kind() == io::ErrorKind::Unsupported,
        }
    }
}

enum Begins {
    Now,
    At(Nanos),
    Never,
}

/// What went wrong, in the system's words where it has some.
fn error(kind: io::ErrorKind, what: &str) -> io::Error {
    io::Error::new(kind, what)
}

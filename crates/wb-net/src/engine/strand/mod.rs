//! One strand: where it is in its transactions, and what it does next.
//!
//! A strand is carried on by [`Strand::advance`] until it has to wait. Under a thread of its own its sockets block,
//! so that this is in the kernel; under events it says what it waits for. All else is the same.

mod connections;
mod datagram_header;
mod drain;
pub mod files;
mod message;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use self::{
    connections::OpenConnection,
    drain::DrainState,
    files::{FileLists, SelectedFile},
    message::MessageTransfer,
};
use super::{
    clock::{self, Nanos},
    descriptors,
    latencies::{LatencyBuffer, LatencyEntry, LatencyKind},
    perf_counters::PerfCounters,
    plan::{Executions, FlowopPlan, GroupPlan, TransactionPlan},
    protocol::{EngineError, Side, StrandTotals},
    raw_log::RawLog,
    tally::{LiveCounters, StrandTally, TransactionTally},
};
use crate::language::{Extent, FlowopAction, Message};
use crate::transport::{ConnectionInfo, Intent, Transport, WaitCondition, link::LinkEnd};

/// A strand of a group.
pub(super) struct Strand {
    pub(super) index: u32,
    side: Side,
    seed: u64,
    datagram_timeout: Nanos,
    plan: Arc<GroupPlan>,
    /// By the place of the connect or accept.
    ends: Vec<(u32, LinkEnd)>,
    files: FileLists,
    open: Vec<OpenConnection>,
    /// Connections opened so far, by host.
    opened: Vec<u32>,
    position: StrandPosition,
    operation: StrandOperation,
    now: Nanos,
    own_thread: bool,
    /// What the kernel said of connections that are closed.
    closed_info: ConnectionInfo,
    /// Datagrams of connections that are closed, by host, sent and received.
    closed_datagrams: Vec<(u64, u64)>,
    /// What it takes in after a transaction.
    drain: DrainState,
    /// Changes with every connection that is opened or closed.
    generation: u64,
    pub(super) signals: Arc<Signals>,
    pub(super) tally: StrandTally,
}

/// Flags by which other threads stop or finish a running strand.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Give up.
    pub(super) stop: AtomicBool,
    /// The other side is done: end when nothing more can come.
    pub(super) finish: AtomicBool,
    /// With these totals.
    pub(super) peer_totals: std::sync::Mutex<Option<StrandTotals>>,
}

/// What a strand works with; strands of one executor share it.
pub(super) struct StrandContext<'a> {
    pub(super) buffer: &'a mut [u8],
    pub(super) transactions: &'a mut [TransactionTally],
    pub(super) published: &'a LiveCounters,
    pub(super) latencies: &'a mut LatencyBuffer,
    pub(super) raw: Option<&'a mut RawLog>,
    pub(super) counters: Option<&'a mut PerfCounters>,
    /// Whether CPU time is asked for around each execution.
    pub(super) measure_cpu: bool,
    /// Whether times are recorded.
    pub(super) record: bool,
}

/// How far a strand came.
#[derive(Debug)]
pub(super) enum StrandStatus {
    /// It waits.
    Wait(WaitCondition),
    /// Others had no turn for long; it could go on.
    Yield,
    /// It is done with the transaction.
    Ended,
    /// It cannot go on.
    Failed(EngineError),
}

/// Where a strand is.
#[derive(Debug, Clone, Copy, Default)]
struct StrandPosition {
    transaction: usize,
    /// Whether it belongs to the data phase.
    is_data_phase: bool,
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
    piece_bytes: u64,
}

/// The operation that a strand has begun and not finished.
enum StrandOperation {
    /// Nothing: the next execution has not begun.
    Idle,
    /// It waits for the time that a rate sets.
    Pacing,
    /// A message.
    Message(MessageTransfer),
    /// A file.
    File { began: Nanos, picks: Vec<SelectedFile>, offset: u64 },
    /// A connection that is being made.
    Connecting { began: Nanos, transport: Box<dyn Transport> },
    /// It waits for a connection.
    Accepting { began: Nanos },
    /// A connection that is being closed.
    Closing { began: Nanos, open: OpenConnection },
    /// It does nothing.
    Thinking { began: Nanos, until: Nanos },
}

/// How an execution went.
enum StepResult {
    /// To its end, with so many bytes sent and received.
    Done { messages: u64, began: Nanos, intended: Option<Nanos>, sent: u64, received: u64 },
    /// It waits.
    Wait(WaitCondition),
    /// The time of the flowop is up in the middle of it.
    TimeUp,
    /// The transaction is over for this strand.
    TransactionOver,
    /// A datagram did not come in time.
    Lost,
    /// It failed.
    Failed(io::Error),
}

/// So many executions go by before others have their turn.
const EXECUTIONS_PER_TURN: u32 = 64;

/// Datagrams that have not come so long after the other side was done are lost.
const DATAGRAM_GRACE: Nanos = 100_000_000;

/// What a strand is made of.
pub(super) struct StrandConfig {
    pub(super) index: u32,
    pub(super) side: Side,
    pub(super) seed: u64,
    /// How long a client waits for a datagram where the profile does not say.
    pub(super) datagram_timeout: Nanos,
    pub(super) plan: Arc<GroupPlan>,
    /// By the place of the connect or accept.
    pub(super) ends: Vec<(u32, LinkEnd)>,
    pub(super) files: FileLists,
    /// How many other machines there are.
    pub(super) hosts: usize,
    /// Whether it may block its thread.
    pub(super) own_thread: bool,
}

impl Strand {
    pub(super) fn new(setup: StrandConfig) -> Self {
        let StrandConfig { index, side, seed, datagram_timeout, plan, ends, files, hosts, own_thread } = setup;
        Self {
            index,
            side,
            seed,
            datagram_timeout,
            plan,
            ends,
            files,
            open: Vec::new(),
            opened: vec![0; hosts.max(1)],
            position: StrandPosition::default(),
            operation: StrandOperation::Idle,
            now: 0,
            own_thread,
            closed_info: ConnectionInfo::default(),
            closed_datagrams: vec![(0, 0); hosts.max(1)],
            drain: DrainState::default(),
            generation: 0,
            signals: Arc::default(),
            tally: StrandTally { strand: index, ..StrandTally::default() },
        }
    }

    /// The end of a link of this strand.
    pub(super) fn end_mut(&mut self, place: u32) -> Option<&mut LinkEnd> {
        self.ends.iter_mut().find(|(at, _)| *at == place).map(|(_, end)| end)
    }

    /// Connections from elsewhere that were dropped.
    pub(super) fn take_refused(&self) -> u64 {
        self.ends.iter().map(|(_, end)| end.take_refused()).sum()
    }

    /// Makes ready to carry out a transaction in a window.
    pub(super) fn begin_transaction(&mut self, transaction: usize, began: Nanos, end: Option<Nanos>) {
        let matters = self.plan.is_data_phase(transaction);
        self.position = StrandPosition {
            transaction,
            is_data_phase: matters,
            began,
            end,
            round_began: began,
            round_intended: began,
            ..StrandPosition::default()
        };
        self.operation = StrandOperation::Idle;
    }

    /// Does what its connections need while it carries out nothing; says whether that has to be done again soon.
    pub(super) fn maintain(&mut self) -> bool {
        let mut again = false;
        for open in &mut self.open {
            again |= open.transport.maintain();
        }
        again
    }

    /// Goes on until it has to wait.
    pub(super) fn advance(&mut self, context: &mut StrandContext<'_>) -> StrandStatus {
        self.now = clock::now();
        let plan = self.plan.clone();
        let transaction = &plan.transactions[self.position.transaction];
        let mut left = EXECUTIONS_PER_TURN;
        if self.now < self.position.began && !self.signals.stop.load(Relaxed) {
            return StrandStatus::Wait(WaitCondition::until(self.position.began));
        }
        loop {
            if self.is_over() {
                self.abandon_operation();
                return StrandStatus::Ended;
            }
            if transaction.idle {
                return self
                    .position
                    .end
                    .map_or(StrandStatus::Ended, |end| StrandStatus::Wait(WaitCondition::until(end)));
            }
            if self.position.flowop == 0
                && self.position.execution == 0
                && matches!(self.operation, StrandOperation::Idle | StrandOperation::Pacing)
            {
                match self.begin_round(transaction) {
                    RoundStart::Now => {}
                    RoundStart::At(point) => return StrandStatus::Wait(WaitCondition::until(point)),
                    RoundStart::Never => return StrandStatus::Ended,
                }
            }
            let flowop = &transaction.flowops[self.position.flowop];
            if matches!(flowop.flowop.action, FlowopAction::Skip) {
                self.next_flowop(transaction, context);
                continue;
            }
            let before = context.measure_cpu.then(clock::thread_cpu_time);
            if let Some(counters) = context.counters.as_deref_mut() {
                counters.start();
            }
            let went = self.execute(flowop, context);
            if let Some(before) = before {
                let tally = &mut context.transactions[self.position.transaction].flowops[self.position.flowop];
                tally.cpu += clock::thread_cpu_time() - before;
            }
            if let Some(counters) = context.counters.as_deref_mut() {
                counters.add_to(
                    &mut context.transactions[self.position.transaction].flowops[self.position.flowop].counters,
                );
            }
            match went {
                StepResult::Done { messages, began, intended, sent, received } => {
                    self.now = clock::now();
                    if self.position.end.is_some_and(|end| self.now > end) {
                        return StrandStatus::Ended;
                    }
                    // A datagram may have been another than the one that was waited for.
                    let flowop = &transaction.flowops[self.position.flowop];
                    self.record(flowop, messages, (began, intended), (sent, received), context);
                    self.next_execution(flowop, transaction, (messages, sent + received), context);
                }
                StepResult::Wait(wait) => {
                    let end = self.position.end.unwrap_or(Nanos::MAX);
                    let end = end.min(self.flowop_end(flowop).unwrap_or(Nanos::MAX));
                    return StrandStatus::Wait(if end == Nanos::MAX { wait } else { wait.or_until(end) });
                }
                StepResult::TimeUp => self.next_flowop(transaction, context),
                StepResult::TransactionOver => return StrandStatus::Ended,
                StepResult::Lost => {
                    context.transactions[self.position.transaction].flowops[self.position.flowop].timeouts += 1;
                    self.next_execution(flowop, transaction, (1, 0), context);
                }
                StepResult::Failed(error) => {
                    if !flowop.flowop.can_fail {
                        return StrandStatus::Failed(self.engine_error(flowop, &error));
                    }
                    let number = error.raw_os_error().unwrap_or(0);
                    let tally = &mut context.transactions[self.position.transaction].flowops[self.position.flowop];
                    *tally.errors.entry(number).or_default() += 1;
                    self.now = clock::now();
                    self.next_execution(flowop, transaction, (1, 0), context);
                }
            }
            left -= 1;
            if left == 0 {
                left = EXECUTIONS_PER_TURN;
                if !self.own_thread {
                    return StrandStatus::Yield;
                }
            }
        }
    }

    /// Another one whenever connections were opened or closed, so that descriptors may be others.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    fn is_over(&self) -> bool {
        self.signals.stop.load(Relaxed) || self.position.end.is_some_and(|end| self.now >= end)
    }

    /// Leaves what it is in the middle of; but a connection that is being made stays until the next transaction, when
    /// the other side does not wait for it any more.
    fn abandon_operation(&mut self) {
        if !matches!(self.operation, StrandOperation::Connecting { .. }) {
            self.operation = StrandOperation::Idle;
        }
    }

    fn begin_round(&mut self, transaction: &TransactionPlan) -> RoundStart {
        if let Extent::Iterations(rounds) = transaction.extent
            && self.position.round >= rounds
        {
            return RoundStart::Never;
        }
        if let Some(period) = transaction.period {
            // From the number of the round, not from the last one: an open loop makes up for what it missed.
            let intended = self.position.began + (self.position.round as f64 * period) as Nanos;
            if self.now < intended {
                self.now = clock::now();
                if self.now < intended {
                    self.operation = StrandOperation::Pacing;
                    return RoundStart::At(intended);
                }
            }
            self.position.round_intended = intended;
        }
        self.operation = StrandOperation::Idle;
        self.position.round_began = self.now.max(self.position.began);
        self.position.flowop_began = self.now;
        RoundStart::Now
    }

    fn execute(&mut self, flowop: &FlowopPlan, context: &mut StrandContext<'_>) -> StepResult {
        match &flowop.flowop.action {
            FlowopAction::Send(message) => self.send(flowop, message, context),
            FlowopAction::Receive(message) => self.receive(flowop, message, context),
            FlowopAction::Connect(endpoint) => self.connect(flowop, endpoint),
            FlowopAction::Accept(_) => self.accept(flowop),
            FlowopAction::Disconnect => self.disconnect(flowop),
            FlowopAction::SendFiles(files) => self.send_files(flowop, files, context),
            FlowopAction::ReceiveFiles(sizes) => self.receive_files(flowop, sizes, context),
            FlowopAction::Think { duration, busy } => self.think(clock::nanos(*duration), *busy),
            FlowopAction::Nop | FlowopAction::Skip => {
                StepResult::Done { messages: 1, began: self.now, intended: None, sent: 0, received: 0 }
            }
        }
    }

    fn think(&mut self, duration: Nanos, busy: bool) -> StepResult {
        let (began, until) = match self.operation {
            StrandOperation::Thinking { began, until } => (began, until),
            _ => (self.now, self.now + duration),
        };
        if !busy {
            if self.now < until {
                self.operation = StrandOperation::Thinking { began, until };
                return StepResult::Wait(WaitCondition::until(until));
            }
        } else {
            while self.now < until {
                std::hint::spin_loop();
                self.now = clock::now();
                if self.is_over() {
                    return StepResult::TransactionOver;
                }
            }
        }
        self.operation = StrandOperation::Idle;
        StepResult::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
    }

    /// When an execution may start; remembers that it waits for it.
    fn intended_start(&mut self, flowop: &FlowopPlan) -> Result<Option<Nanos>, WaitCondition> {
        let Some(period) = flowop.period else { return Ok(None) };
        let number = self.position.round.saturating_mul(flowop.flowop.executions()) + self.position.execution;
        let intended = self.position.began + (number as f64 * period) as Nanos;
        if self.now < intended {
            self.now = clock::now();
            if self.now < intended {
                return Err(WaitCondition::until(intended));
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
        context: &mut StrandContext<'_>,
    ) {
        let tally = &mut context.transactions[self.position.transaction].flowops[self.position.flowop];
        tally.count += messages;
        tally.bytes += sent + received;
        context.published.add(sent, received, messages);
        if self.position.is_data_phase {
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
        let of = LatencyKind::Flowop { flowop: self.position.flowop as u32, messages: messages as u32 };
        context.latencies.push(
            LatencyEntry { transaction: self.position.transaction as u32, kind: of, nanos: service },
            context.transactions,
        );
        if let Some(raw) = context.raw.as_deref_mut() {
            raw.push(self.now, self.index, flowop.id, service);
        }
    }

    fn flowop_end(&self, flowop: &FlowopPlan) -> Option<Nanos> {
        flowop
            .flowop
            .duration
            .filter(|_| !matches!(flowop.flowop.action, FlowopAction::Think { .. }))
            .map(|duration| self.position.flowop_began + clock::nanos(duration))
    }

    #[inline]
    fn next_execution(
        &mut self,
        flowop: &FlowopPlan,
        transaction: &TransactionPlan,
        (messages, bytes): (u64, u64),
        context: &mut StrandContext<'_>,
    ) {
        self.operation = StrandOperation::Idle;
        self.position.execution += messages;
        self.position.piece_bytes += bytes;
        let done = match self.flowop_end(flowop) {
            Some(end) => self.now >= end,
            None => match flowop.executions {
                Executions::AsWritten(executions) | Executions::InPieces { executions, .. } => {
                    self.position.execution >= executions
                }
            },
        };
        if done {
            self.next_flowop(transaction, context);
        }
    }

    fn next_flowop(&mut self, transaction: &TransactionPlan, context: &mut StrandContext<'_>) {
        self.position.flowop += 1;
        self.position.execution = 0;
        self.position.piece_bytes = 0;
        self.position.flowop_began = self.now;
        if self.position.flowop == transaction.flowops.len() {
            self.end_round(transaction, context);
        }
    }

    fn end_round(&mut self, transaction: &TransactionPlan, context: &mut StrandContext<'_>) {
        let took = self.now.saturating_sub(self.position.round_began);
        if self.position.is_data_phase {
            self.tally.record_round(took);
        }
        if context.record {
            let jot = LatencyEntry {
                transaction: self.position.transaction as u32,
                kind: LatencyKind::Round { now: self.now },
                nanos: took,
            };
            context.latencies.push(jot, context.transactions);
            if transaction.period.is_some()
                && let tally = &mut context.transactions[self.position.transaction]
                && let (Some(response), Some(lag)) = (&mut tally.response, &mut tally.lag)
            {
                response.record(self.now.saturating_sub(self.position.round_intended));
                lag.record(self.position.round_began.saturating_sub(self.position.round_intended));
            }
        }
        self.position.flowop = 0;
        self.position.round += 1;
        // Without a rate the next round begins where this one ended.
        self.position.round_began = self.now;
    }

    fn engine_error(&self, flowop: &FlowopPlan, error: &io::Error) -> EngineError {
        let transaction = &self.plan.transactions[self.position.transaction].name;
        EngineError {
            location: Some(format!(
                "{}, {transaction}, {} with {}",
                self.plan.name,
                flowop.flowop.name,
                self.plan.host(flowop)
            )),
            message: descriptors::describe_error(error),
            unsupported: matches!(
                error.raw_os_error(),
                Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::ESOCKTNOSUPPORT)
            ) || error.kind() == io::ErrorKind::Unsupported,
        }
    }
}

enum RoundStart {
    Now,
    At(Nanos),
    Never,
}

/// What went wrong, in the system's words where it has some.
fn io_error(kind: io::ErrorKind, what: &str) -> io::Error {
    io::Error::new(kind, what)
}

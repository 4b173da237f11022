//! A strand: its position in its transactions, and its next step.
//!
//! [`Strand::advance`] runs a strand until it has to wait. On a thread of its own its sockets block, so that it waits
//! in the kernel with the system calls of the program that it imitates; in an event loop it returns the condition that
//! it waits for. Everything else is the same: counting, windows, rates and losses.

mod arrivals;
mod connections;
pub(super) mod datagram_header;
mod drain;
mod execution;
pub mod files;
mod maintenance;
mod message;
mod rounds;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use self::arrivals::Arrivals;
use self::connections::OpenConnection;
use self::drain::DrainState;
use self::files::{FileLists, SelectedFile};
use self::message::MessageTransfer;
use self::rounds::RoundStart;
use super::clock::{self, Nanos};
use super::descriptors;
use super::latencies::{LatencyBuffer, LatencyEntry, LatencyKind};
use super::perf_counters::PerfCounters;
use super::plan::{Executions, FlowopPlan, GroupPlan, TransactionPlan};
use super::protocol::{EngineError, EngineErrorKind, Side, StrandTotals};
use super::raw_log::RawLog;
use super::tally::{FlowopTally, LiveCounters, StrandTally, TransactionTally, failure_number};
use crate::transport::link::LinkEnd;
use crate::transport::watched_connection::WatchedConnection;
use crate::transport::{Intent, Transport, WaitCondition};
use wb_net_profile::{Extent, FlowopAction, Message};
use wb_results::net::ConnectionInfo;

pub(super) struct Strand {
    pub(super) index: u32,
    side: Side,
    seed: u64,
    datagram_timeout: Nanos,
    plan: Arc<GroupPlan>,
    /// Link ends, by the number of the connect or accept.
    ends: Vec<(u32, LinkEnd)>,
    files: FileLists,
    /// Open connections, in the order in which they were opened.
    open: VecDeque<OpenConnection>,
    /// Number of connections opened so far, by host.
    opened: Vec<u32>,
    position: StrandPosition,
    /// When it learned that the other side has finished the transaction.
    peer_finished_at: Option<Nanos>,
    /// When each flowop of the transaction may begin at the earliest, given by its rate.
    schedules: Vec<Nanos>,
    operation: StrandOperation,
    now: Nanos,
    own_thread: bool,
    closed_info: ConnectionInfo,
    /// Datagrams of closed connections, by host: sent and received; none if no such connection was closed.
    closed_datagrams: Vec<Option<(u64, u64)>>,
    pub(super) watched: Option<Arc<WatchedConnection>>,
    drain: DrainState,
    generation: u64,
    prepared: Nanos,
    has_begun: bool,
    /// Whether a transaction ended before its last iteration, by a time limit or because the other side ended it.
    ended_early: bool,
    pub(super) signals: Arc<Signals>,
    pub(super) tally: StrandTally,
}

/// Flags by which other threads stop or finish a running strand.
#[derive(Debug, Default)]
pub(super) struct Signals {
    pub(super) stop: AtomicBool,
    /// The other side has finished: end when nothing more can arrive.
    pub(super) finish: AtomicBool,
    pub(super) peer_totals: std::sync::Mutex<Option<StrandTotals>>,
}

/// State of an executor that its strands share.
pub(super) struct StrandContext<'a> {
    pub(super) buffer: &'a mut [u8],
    pub(super) transactions: &'a mut [TransactionTally],
    pub(super) live_counters: &'a LiveCounters,
    pub(super) latencies: &'a mut LatencyBuffer,
    pub(super) raw: Option<&'a mut RawLog>,
    pub(super) counters: Option<&'a mut PerfCounters>,
    pub(super) measure_cpu: bool,
    /// Whether latencies are recorded.
    pub(super) record: bool,
}

#[derive(Debug)]
pub(super) enum StrandStatus {
    Wait(WaitCondition),
    /// It could continue, but lets other strands run.
    Yield,
    Ended,
    Failed(EngineError),
}

#[derive(Debug, Clone, Copy, Default)]
struct StrandPosition {
    transaction: usize,
    is_data_phase: bool,
    round: u64,
    flowop: usize,
    execution: u64,
    began: Nanos,
    /// End of the transaction's window.
    end: Option<Nanos>,
    round_began: Nanos,
    /// Intended start of this round, given by the rate.
    round_intended: Nanos,
    is_round_open: bool,
    /// Whether a flowop of this round has failed, or a datagram was lost.
    round_failed: bool,
    /// Start of the flowop's first execution in this round.
    flowop_began: Nanos,
    /// Intended start of that execution, given by the rate of the flowop.
    flowop_intended: Nanos,
    /// Intended start of the current execution, of a flowop that moves no message.
    execution_intended: Option<Nanos>,
    /// Executions of the flowop in this round that began after the period of its last was over.
    overdue_executions: u64,
    /// How long its only execution in this round was kept from its schedule by the round before.
    slipped: Nanos,
    /// Like executions, rounds of the transaction.
    overdue_rounds: u64,
    /// Bytes moved in pieces in this round.
    piece_bytes: u64,
}

impl StrandPosition {
    /// The tally of its flowop.
    #[inline]
    fn tally<'a>(&self, transactions: &'a mut [TransactionTally]) -> &'a mut FlowopTally {
        &mut transactions[self.transaction].flowops[self.flowop]
    }
}

/// The operation that a strand has begun and not finished.
enum StrandOperation {
    Idle,
    Pacing,
    Message(MessageTransfer),
    File {
        began: Nanos,
        picks: Vec<SelectedFile>,
        offset: u64,
    },
    Connecting {
        began: Nanos,
        transport: Box<dyn Transport>,
    },
    Accepting {
        began: Nanos,
    },
    /// Completing the handshake of an accepted connection, whose number the other side gave.
    Completing {
        began: Nanos,
        transport: Box<dyn Transport>,
        ordinal: Option<u32>,
    },
    Closing {
        began: Nanos,
        open: OpenConnection,
    },
    Thinking {
        began: Nanos,
        until: Nanos,
    },
}

enum StepResult {
    /// The execution is complete; `sent` and `received` are bytes.
    Done {
        messages: u64,
        began: Nanos,
        intended: Option<Nanos>,
        sent: u64,
        received: u64,
    },
    Wait(WaitCondition),
    /// The flowop's time limit has expired.
    TimeUp,
    TransactionOver,
    /// A datagram did not arrive in time.
    Lost,
    Failed(io::Error),
}

/// Executions, and bytes that they moved, after which a strand lets others run. With 4 MiB for each turn, the last ones
/// of 300 strands moved nothing within 300 ms.
const PER_TURN: (u32, u64) = (64, 128 << 10);

/// Datagrams that have not arrived this long after the other side finished are lost.
const DATAGRAM_GRACE: Nanos = 100_000_000;

pub(super) struct StrandConfig {
    pub(super) index: u32,
    pub(super) side: Side,
    pub(super) seed: u64,
    /// How long a client waits for a datagram by default.
    pub(super) datagram_timeout: Nanos,
    pub(super) plan: Arc<GroupPlan>,
    /// By the number of the connect or accept.
    pub(super) ends: Vec<(u32, LinkEnd)>,
    pub(super) files: FileLists,
    pub(super) hosts: usize,
    /// Whether it runs on a thread of its own, which it may block.
    pub(super) own_thread: bool,
    pub(super) watched: Option<Arc<WatchedConnection>>,
}

impl Strand {
    pub(super) fn new(config: StrandConfig) -> Self {
        let StrandConfig { index, side, seed, datagram_timeout, plan, ends, files, hosts, own_thread, watched } =
            config;
        Self {
            index,
            side,
            seed,
            datagram_timeout,
            plan,
            ends,
            files,
            // Most strands have one connection, and there may be many strands.
            open: VecDeque::with_capacity(1),
            opened: vec![0; hosts.max(1)],
            position: StrandPosition::default(),
            peer_finished_at: None,
            schedules: Vec::new(),
            operation: StrandOperation::Idle,
            now: 0,
            own_thread,
            closed_info: ConnectionInfo::default(),
            closed_datagrams: vec![None; hosts.max(1)],
            watched,
            drain: DrainState::default(),
            generation: 0,
            prepared: clock::now(),
            has_begun: false,
            ended_early: false,
            signals: Arc::default(),
            tally: StrandTally { strand: index, ..StrandTally::default() },
        }
    }

    pub(super) fn end_mut(&mut self, id: u32) -> Option<&mut LinkEnd> {
        self.ends.iter_mut().find(|(other, _)| *other == id).map(|(_, end)| end)
    }

    /// Does not wait; returns whether all links are set up.
    pub(super) fn continue_setup(&mut self) -> Result<bool, EngineError> {
        let mut complete = true;
        for index in 0..self.ends.len() {
            let (id, end) = &mut self.ends[index];
            let id = *id;
            complete &= end.continue_setup().map_err(|error| self.link_error(id, &error))?;
        }
        Ok(complete)
    }

    pub(super) fn link_error(&self, id: u32, error: &io::Error) -> EngineError {
        for transaction in &self.plan.transactions {
            if let Some(flowop) = transaction.flowops.iter().find(|flowop| flowop.id == id) {
                let mut error = self.locate_error(&transaction.name, flowop, error);
                if self.side == Side::Server && matches!(flowop.flowop.action, FlowopAction::Connect(_)) {
                    error.message += "; `accept` in the profile makes the server connect to the client, which NAT or a \
                                      firewall between them may prevent: `connect` works through both";
                }
                return error;
            }
        }
        EngineError::new(error.to_string())
    }

    pub(super) fn take_rejected(&mut self) -> u64 {
        self.ends.iter_mut().map(|(_, end)| end.take_rejected()).sum()
    }

    pub(super) fn begin_transaction(&mut self, transaction: usize, began: Nanos, end: Option<Nanos>) {
        let is_data_phase = self.plan.is_data_phase(transaction);
        // The other side has completed its setup.
        self.has_begun = true;
        self.position = StrandPosition {
            transaction,
            is_data_phase,
            began,
            end,
            round_began: began,
            round_intended: began,
            ..StrandPosition::default()
        };
        self.peer_finished_at = None;
        self.open.iter_mut().for_each(|open| open.arrivals = Arrivals::default());
        let phase = self.plan.phase(self.index);
        self.schedules.clear();
        let flowops = &self.plan.transactions[transaction].flowops;
        let first = |period: Option<f64>| period.map_or(0, |period| began + (phase * period) as Nanos);
        self.schedules.extend(flowops.iter().map(|flowop| first(flowop.period)));
        self.operation = StrandOperation::Idle;
    }

    pub(super) fn advance(&mut self, context: &mut StrandContext<'_>) -> StrandStatus {
        let status = self.advance_transaction(context);
        if !matches!(status, StrandStatus::Ended) {
            return status;
        }
        let extent = self.plan.transactions[self.position.transaction].extent;
        self.ended_early |= matches!(extent, Extent::Iterations(rounds) if self.position.round < rounds);
        let now = clock::now();
        self.record_pending(self.position.end.map(|end| end.min(now)), context);
        for open in &self.open {
            let tally = &mut context.transactions[self.position.transaction].flowops[open.arrivals.flowop];
            tally.reordered += open.arrivals.counts.reordered;
            open.arrivals.jitter().into_iter().for_each(|jitter| tally.jitter.add(jitter));
        }
        if let Some(open) = self.open.back_mut() {
            // The other side waits for a cookie that no message has carried yet. Ignored: a connection that fails is
            // reported by its next use.
            let _: io::Result<()> = open.transport.flush();
        }
        status
    }

    fn advance_transaction(&mut self, context: &mut StrandContext<'_>) -> StrandStatus {
        self.now = clock::now();
        let plan = self.plan.clone();
        let transaction = &plan.transactions[self.position.transaction];
        let (mut executions_left, mut bytes_left) = PER_TURN;
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
            let is_between = flowop.period.is_some() && matches!(self.operation, StrandOperation::Idle);
            if matches!(flowop.flowop.action, FlowopAction::Skip)
                || (is_between && self.flowop_end(flowop).is_some_and(|end| self.now >= end))
            {
                self.next_flowop(transaction, context);
                continue;
            }
            let before = context.measure_cpu.then(clock::thread_cpu_time);
            if let Some(counters) = context.counters.as_deref_mut() {
                counters.start();
            }
            let result = self.execute(flowop, context);
            if let Some(before) = before {
                self.position.tally(context.transactions).cpu += clock::thread_cpu_time() - before;
            }
            if let Some(counters) = context.counters.as_deref_mut() {
                counters.add_to(&mut self.position.tally(context.transactions).counters);
            }
            match result {
                StepResult::Done { messages, began, intended, sent, received } => {
                    self.now = clock::now();
                    bytes_left = bytes_left.saturating_sub(sent + received);
                    if self.position.end.is_some_and(|end| self.now > end) {
                        return StrandStatus::Ended;
                    }
                    // The datagram that arrived may belong to another position than the expected one.
                    let flowop = &transaction.flowops[self.position.flowop];
                    self.record(flowop, messages, (began, intended), (sent, received), context);
                    self.next_execution(flowop, transaction, (messages, sent + received), context);
                }
                StepResult::Wait(wait) => {
                    let end = self.position.end.unwrap_or(Nanos::MAX);
                    let end = end.min(self.flowop_end(flowop).unwrap_or(Nanos::MAX));
                    return StrandStatus::Wait(if end == Nanos::MAX { wait } else { wait.or_until(end) });
                }
                StepResult::TimeUp => {
                    // The abandoned one had begun.
                    self.position.execution += 1;
                    self.next_flowop(transaction, context);
                }
                StepResult::TransactionOver => return StrandStatus::Ended,
                StepResult::Lost => {
                    self.position.round_failed = true;
                    self.position.tally(context.transactions).timeouts += 1;
                    self.next_execution(flowop, transaction, (1, 0), context);
                }
                StepResult::Failed(error) => {
                    if !flowop.flowop.can_fail {
                        return StrandStatus::Failed(self.engine_error(flowop, &error));
                    }
                    self.position.round_failed = true;
                    let number = failure_number(&error);
                    *self.position.tally(context.transactions).errors.entry(number).or_default() += 1;
                    self.now = clock::now();
                    self.next_execution(flowop, transaction, (1, 0), context);
                }
            }
            executions_left = executions_left.saturating_sub(1);
            if !self.own_thread && (executions_left == 0 || bytes_left == 0) {
                return StrandStatus::Yield;
            }
        }
    }

    /// Changes whenever connections are opened or closed, since descriptors may be reused.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.signals.stop.load(Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_stopped() || self.position.end.is_some_and(|end| self.now >= end)
    }

    /// Abandons the current operation; but a connection that is being established remains until the next transaction,
    /// when the other side no longer waits for it.
    fn abandon_operation(&mut self) {
        if !matches!(self.operation, StrandOperation::Connecting { .. } | StrandOperation::Completing { .. }) {
            self.operation = StrandOperation::Idle;
        }
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
        let tally = self.position.tally(context.transactions);
        tally.count += messages;
        tally.bytes += sent + received;
        context.live_counters.add(sent, received, messages);
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
        let kind = LatencyKind::Flowop { flowop: self.position.flowop as u32, messages: messages as u32 };
        context.latencies.push(
            LatencyEntry { transaction: self.position.transaction as u32, kind, nanos: service },
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
        if let Some(period) = transaction.flowops[self.position.flowop].period
            && let Some(schedule) = self.schedules.get_mut(self.position.flowop)
        {
            *schedule = self.position.flowop_intended + (self.position.execution as f64 * period) as Nanos;
            self.record_schedule(&transaction.flowops[self.position.flowop], None, context);
        }
        self.position.flowop += 1;
        self.position.execution = 0;
        self.position.piece_bytes = 0;
        self.position.flowop_began = self.now;
        if self.position.flowop == transaction.flowops.len() {
            self.end_round(transaction, context);
        }
    }

    fn engine_error(&self, flowop: &FlowopPlan, error: &io::Error) -> EngineError {
        self.locate_error(&self.plan.transactions[self.position.transaction].name, flowop, error)
    }

    fn locate_error(&self, transaction: &str, flowop: &FlowopPlan, error: &io::Error) -> EngineError {
        EngineError {
            location: Some(format!(
                "{}, {transaction}, {} with {}",
                self.plan.name,
                flowop.flowop.name,
                self.plan.host(flowop)
            )),
            message: descriptors::describe_error(error),
            kind: EngineErrorKind::new(error),
        }
    }
}

fn io_error(kind: io::ErrorKind, message: &str) -> io::Error {
    io::Error::new(kind, message)
}

//! Connections of a strand: opening, accepting and closing.

use std::collections::VecDeque;
use std::io::ErrorKind;

use super::arrivals::Arrivals;
use super::datagram_header::{self, DatagramHeader};
use super::{StepResult, Strand, StrandOperation, StrandPosition, io_error};
use crate::engine::clock::{self, Nanos};
use crate::engine::plan::{FlowopPlan, GroupPlan, TransactionPlan};
use crate::engine::protocol::{ConnectionTotals, Side};
use crate::transport::socket::CONNECT_TIMEOUT;
use crate::transport::{CloseMode, Intent, Transport, WaitCondition, is_pending};
use wb_net_profile::{Endpoint, Protocol};
use wb_results::net::ConnectionInfo;

pub(super) struct OpenConnection {
    pub(super) name: Option<u32>,
    pub(super) host: u32,
    pub(super) ordinal: u32,
    pub(super) transport: Box<dyn Transport>,
    pub(super) is_connector: bool,
    pub(super) datagrams: bool,
    pub(super) has_headers: bool,
    /// Bytes, or datagrams.
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) last_received: Nanos,
    /// The numbered datagrams that arrived in this transaction.
    pub(super) arrivals: Arrivals,
    /// Bytes of messages that were given up and have not arrived yet.
    pub(super) overdue: usize,
    /// Bytes of a message that was given up after a part of it had been sent.
    pub(super) unsent: usize,
}

impl OpenConnection {
    pub(super) fn totals(&self) -> ConnectionTotals {
        let &Self { host, ordinal, datagrams, sent, received, .. } = self;
        ConnectionTotals { host, ordinal, datagrams, sent, received }
    }

    /// Records the arrival of a numbered datagram at the `actual` position.
    #[inline]
    pub(super) fn record_arrival(
        &mut self,
        transaction: &TransactionPlan,
        expected: &StrandPosition,
        actual: DatagramHeader,
        (sent, arrived): (Option<Nanos>, Nanos),
    ) {
        if actual.transaction != expected.transaction as u8 {
            return;
        }
        if let Some(sent) = sent {
            self.arrivals.record_times(sent, arrived);
        }
        self.arrivals.flowop = expected.flowop;
        // Where several flowops take turns, a gap is not a number of datagrams.
        let [flowop] = &transaction.flowops[..] else { return };
        let executions = flowop.flowop.executions() as i64;
        let ahead = actual.rounds_ahead(expected.round) * executions + i64::from(actual.execution)
            - i64::from(expected.execution as u16);
        match u64::try_from(ahead) {
            Ok(gap) => self.arrivals.record_gap(gap),
            Err(_) => self.arrivals.record_reordered(),
        }
    }
}

impl Strand {
    /// Kernel statistics of all connections, including closed ones.
    pub(in crate::engine) fn info(&self) -> ConnectionInfo {
        self.open.iter().fold(self.closed_info, |mut sum, open| {
            sum.add(&open.transport.info());
            sum
        })
    }

    pub(super) fn connect(&mut self, flowop: &FlowopPlan, endpoint: &Endpoint) -> StepResult {
        let (began, mut transport) = match std::mem::replace(&mut self.operation, StrandOperation::Idle) {
            StrandOperation::Connecting { began, transport } => (began, transport),
            _ => {
                let began = self.now;
                let ordinal = self.opened[flowop.host as usize] + 1;
                let Some(end) = self.end_mut(flowop.id) else { return no_link_end() };
                match end.connect(ordinal) {
                    Ok(transport) => {
                        // Its descriptor may have belonged to an earlier attempt.
                        self.generation += 1;
                        (began, transport)
                    }
                    Err(error) => return StepResult::Failed(error),
                }
            }
        };
        match transport.establish() {
            Ok(()) => {
                self.add_connection(flowop, transport, true, None);
                StepResult::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
            }
            Err(error) if is_pending(&error) => {
                let deadline = began + clock::nanos(endpoint.timeout.unwrap_or(CONNECT_TIMEOUT));
                self.now = clock::now();
                if self.now >= deadline {
                    return StepResult::Failed(self::io_error(ErrorKind::TimedOut, describe_timeout(endpoint)));
                }
                let wait = transport.wait_condition(Intent::Send).or_until(deadline);
                // Also kept after the end of the window: the other side, which has another clock, must not see it fail.
                self.operation = StrandOperation::Connecting { began, transport };
                if self.is_over() { StepResult::TransactionOver } else { StepResult::Wait(wait) }
            }
            Err(error) => StepResult::Failed(error),
        }
    }

    pub(super) fn accept(&mut self, flowop: &FlowopPlan, endpoint: &Endpoint) -> StepResult {
        let (began, accepted) = match std::mem::replace(&mut self.operation, StrandOperation::Idle) {
            StrandOperation::Completing { began, transport, ordinal } => (began, Some((transport, ordinal))),
            StrandOperation::Accepting { began } => (began, None),
            _ => (self.now, None),
        };
        // A server waits as long as its client runs, and then for what the client reports to have opened.
        let limit = endpoint.timeout.unwrap_or(CONNECT_TIMEOUT);
        let began_to_wait = match self.side {
            Side::Client => Some(began),
            Side::Server => self.peer_finished_at,
        };
        let deadline = began_to_wait.map(|began| began + clock::nanos(limit));
        let Some(end) = self.end_mut(flowop.id) else { return no_link_end() };
        let is_new = accepted.is_none();
        let (mut transport, ordinal) = match accepted.map_or_else(|| end.accept(), Ok) {
            Ok(accepted) => {
                self.generation += u64::from(is_new);
                accepted
            }
            Err(error) if is_pending(&error) => {
                let wait = end.wait_condition();
                self.now = clock::now();
                if self.is_over() || self.is_connector_done(flowop) {
                    return StepResult::TransactionOver;
                }
                return self.wait_for_connector(flowop, StrandOperation::Accepting { began }, wait, deadline);
            }
            Err(error) => return StepResult::Failed(error),
        };
        match transport.establish() {
            Ok(()) => {
                self.add_connection(flowop, transport, false, ordinal);
                StepResult::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
            }
            Err(error) if is_pending(&error) => {
                self.now = clock::now();
                let wait = transport.wait_condition(Intent::Receive);
                let operation = StrandOperation::Completing { began, transport, ordinal };
                if self.is_over() || self.is_connector_done(flowop) {
                    self.operation = operation;
                    return StepResult::TransactionOver;
                }
                self.wait_for_connector(flowop, operation, wait, deadline)
            }
            Err(error) => StepResult::Failed(error),
        }
    }

    /// Waits for the other side to connect, or fails after the limit.
    fn wait_for_connector(
        &mut self,
        flowop: &FlowopPlan,
        operation: StrandOperation,
        wait: WaitCondition,
        deadline: Option<Nanos>,
    ) -> StepResult {
        if deadline.is_some_and(|deadline| self.now >= deadline) {
            let address = self.end_mut(flowop.id).map(|end| end.describe_peer()).unwrap_or_default();
            let message = format!("timed out waiting for a connection at {address}");
            return StepResult::Failed(io_error(ErrorKind::TimedOut, &message));
        }
        self.operation = operation;
        StepResult::Wait(deadline.map_or(wait, |deadline| wait.or_until(deadline)))
    }

    pub(super) fn disconnect(&mut self, flowop: &FlowopPlan) -> StepResult {
        let (began, mut open) = match std::mem::replace(&mut self.operation, StrandOperation::Idle) {
            StrandOperation::Closing { began, open } => (began, open),
            _ => {
                let position = self.open.iter().position(|open| open.name == flowop.flowop.connection);
                let Some(position) = position else { return self.connection_not_open(flowop) };
                let Some(open) = self.open.remove(position) else { return self.connection_not_open(flowop) };
                self.generation += 1;
                if let Some(watched) = &self.watched {
                    watched.release();
                }
                let first = self.closed_info.connections == 0;
                self.closed_info.add(&if first { open.transport.info() } else { open.transport.path_info() });
                if open.datagrams {
                    let closed = self.closed_datagrams[open.host as usize].get_or_insert_default();
                    *closed = (closed.0 + open.sent, closed.1 + open.received);
                }
                (self.now, open)
            }
        };
        let mode = match (open.is_connector, flowop.drains) {
            (true, _) => CloseMode::Connector,
            (false, true) => CloseMode::DrainingAcceptor,
            (false, false) => CloseMode::Acceptor,
        };
        match open.transport.close(mode) {
            Err(error) if is_pending(&error) => {
                self.now = clock::now();
                if self.is_over() || self.signals.finish.load(std::sync::atomic::Ordering::Relaxed) {
                    return StepResult::TransactionOver;
                }
                let wait = open.transport.wait_condition(Intent::Receive);
                self.operation = StrandOperation::Closing { began, open };
                StepResult::Wait(wait)
            }
            Ok(()) => {
                drop(open);
                StepResult::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
            }
            Err(error) => StepResult::Failed(error),
        }
    }

    /// Adds an open connection. The connecting side numbers the connections; `ordinal` is its number for an accepted one.
    fn add_connection(
        &mut self,
        flowop: &FlowopPlan,
        transport: Box<dyn Transport>,
        is_connector: bool,
        ordinal: Option<u32>,
    ) {
        let Some(endpoint) = flowop.flowop.endpoint() else { return };
        let datagrams = endpoint.protocol.is_datagram();
        let opened = &mut self.opened[flowop.host as usize];
        *opened += 1;
        let ordinal = ordinal.unwrap_or(*opened);
        self.generation += 1;
        if let Some(watched) = &self.watched {
            watched.watch(transport.socket(), transport.info_kind());
        }
        self.open.push_back(OpenConnection {
            name: flowop.flowop.connection,
            host: flowop.host,
            ordinal,
            transport,
            is_connector,
            datagrams,
            has_headers: datagrams && fits_header(&self.plan, flowop.flowop.connection),
            sent: 0,
            received: 0,
            last_received: 0,
            arrivals: Arrivals::default(),
            overdue: 0,
            unsent: 0,
        });
    }

    /// The result of a flowop whose connection is not open: an error, unless a time limit has cut the transaction that
    /// would have opened it.
    pub(super) fn connection_not_open(&self, flowop: &FlowopPlan) -> StepResult {
        if self.ended_early {
            return StepResult::TransactionOver;
        }
        let name = flowop.flowop.connection.map_or("without a name".to_owned(), |name| format!("conn={name}"));
        StepResult::Failed(io_error(ErrorKind::NotConnected, &format!("no connection {name} is open")))
    }

    /// Whether the other side has finished, and all the connections that it opened have been accepted.
    fn is_connector_done(&mut self, flowop: &FlowopPlan) -> bool {
        if !self.signals.finish.load(std::sync::atomic::Ordering::Relaxed) {
            return false;
        }
        self.peer_finished_at.get_or_insert(self.now);
        let totals = self.signals.peer_totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let host = flowop.host as usize;
        totals.as_ref().is_some_and(|peer| peer.opened.get(host).copied().unwrap_or(0) <= self.opened[host])
    }
}

/// Whether every message on a connection has room for a header; both sides compute the same.
fn fits_header(plan: &GroupPlan, name: Option<u32>) -> bool {
    let flowops = plan.transactions.iter().flat_map(|transaction| &transaction.flowops);
    let mut messages = flowops
        .filter(|flowop| flowop.flowop.connection == name)
        .filter_map(|flowop| crate::engine::plan::message(&flowop.flowop));
    messages.all(|message| min_size(message) as usize >= datagram_header::LENGTH)
}

fn min_size(message: &wb_net_profile::Message) -> u32 {
    let size = match message.size {
        wb_net_profile::MessageSize::Fixed(size) => size,
        wb_net_profile::MessageSize::Random { min, .. } => min,
    };
    size.min(message.remote_size.unwrap_or(size))
}

fn no_link_end() -> StepResult {
    StepResult::Failed(io_error(ErrorKind::NotConnected, "no address was exchanged for this connection"))
}

#[inline]
pub(super) fn find_connection<'a>(
    open: &'a mut VecDeque<OpenConnection>,
    flowop: &FlowopPlan,
) -> Option<&'a mut OpenConnection> {
    open.iter_mut().find(|open| open.name == flowop.flowop.connection)
}

fn describe_timeout(endpoint: &Endpoint) -> &'static str {
    match endpoint.protocol {
        Protocol::Quic => {
            "connection attempt timed out; QUIC needs packets of 1200 bytes (RFC 9000, section 14), and so a path with an \
             MTU of 1228, with IPv6 of 1248"
        }
        _ => "connection attempt timed out",
    }
}

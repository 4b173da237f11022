//! Connections of a strand: opening, accepting and closing.

use std::io::ErrorKind;

use super::{StepResult, Strand, StrandOperation, datagram_header, io_error};
use crate::engine::clock::{self, Nanos};
use crate::engine::plan::{FlowopPlan, GroupPlan};
use crate::engine::protocol::ConnectionTotals;
use crate::language::{Endpoint, FlowopAction};
use crate::transport::socket::CONNECT_TIMEOUT;
use crate::transport::{ConnectionInfo, Intent, Transport, is_pending};

/// An open connection.
pub(super) struct OpenConnection {
    pub(super) name: Option<u32>,
    pub(super) host: u32,
    pub(super) ordinal: u32,
    pub(super) transport: Box<dyn Transport>,
    pub(super) is_connector: bool,
    pub(super) datagrams: bool,
    /// Whether its datagrams carry a header with the sender's position.
    pub(super) has_headers: bool,
    /// Bytes, or datagrams.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// When the last datagram arrived.
    pub(super) last_received: Nanos,
}

impl OpenConnection {
    pub(super) fn totals(&self) -> ConnectionTotals {
        let &Self { host, ordinal, datagrams, sent, received, .. } = self;
        ConnectionTotals { host, ordinal, datagrams, sent, received }
    }
}

impl Strand {
    /// Kernel statistics of all connections.
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
                let Some(end) = self.end_mut(flowop.id) else { return no_link_end() };
                match end.connect() {
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
                self.add_connection(flowop, transport, true);
                StepResult::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
            }
            Err(error) if is_pending(&error) => {
                let deadline = began + clock::nanos(endpoint.timeout.unwrap_or(CONNECT_TIMEOUT));
                self.now = clock::now();
                if self.now >= deadline {
                    return StepResult::Failed(self::io_error(ErrorKind::TimedOut, "connection attempt timed out"));
                }
                let wait = transport.wait_condition(Intent::Send).or_until(deadline);
                // Also kept after the end of the window: the other side, which has another clock, must not see it fail.
                self.operation = StrandOperation::Connecting { began, transport };
                if self.is_over() { StepResult::TransactionOver } else { StepResult::Wait(wait) }
            }
            Err(error) => StepResult::Failed(error),
        }
    }

    pub(super) fn accept(&mut self, flowop: &FlowopPlan) -> StepResult {
        let (began, accepted) = match std::mem::replace(&mut self.operation, StrandOperation::Idle) {
            StrandOperation::Connecting { began, transport } => (began, Some(transport)),
            StrandOperation::Accepting { began } => (began, None),
            _ => (self.now, None),
        };
        let Some(end) = self.end_mut(flowop.id) else { return no_link_end() };
        let is_new = accepted.is_none();
        let mut transport = match accepted.map_or_else(|| end.accept(), Ok) {
            Ok(transport) => {
                self.generation += u64::from(is_new);
                transport
            }
            Err(error) if is_pending(&error) => {
                let wait = end.wait_condition();
                self.now = clock::now();
                if self.is_over() || self.is_connector_done(flowop) {
                    return StepResult::TransactionOver;
                }
                self.operation = StrandOperation::Accepting { began };
                return StepResult::Wait(wait);
            }
            Err(error) => return StepResult::Failed(error),
        };
        match transport.establish() {
            Ok(()) => {
                self.add_connection(flowop, transport, false);
                StepResult::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
            }
            Err(error) if is_pending(&error) => {
                self.now = clock::now();
                let wait = transport.wait_condition(Intent::Receive);
                self.operation = StrandOperation::Connecting { began, transport };
                if self.is_over() || self.is_connector_done(flowop) {
                    StepResult::TransactionOver
                } else {
                    StepResult::Wait(wait)
                }
            }
            Err(error) => StepResult::Failed(error),
        }
    }

    pub(super) fn disconnect(&mut self, flowop: &FlowopPlan) -> StepResult {
        let (began, mut open) = match std::mem::replace(&mut self.operation, StrandOperation::Idle) {
            StrandOperation::Closing { began, open } => (began, open),
            _ => {
                let position = self.open.iter().position(|open| open.name == flowop.flowop.connection);
                let Some(position) = position else { return not_connected(flowop) };
                let open = self.open.remove(position);
                self.generation += 1;
                let first = self.closed_info.connections == 0;
                self.closed_info.add(&if first { open.transport.info() } else { open.transport.path_info() });
                if open.datagrams {
                    let closed = &mut self.closed_datagrams[open.host as usize];
                    *closed = (closed.0 + open.sent, closed.1 + open.received);
                }
                (self.now, open)
            }
        };
        match open.transport.close(open.is_connector) {
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

    fn add_connection(&mut self, flowop: &FlowopPlan, transport: Box<dyn Transport>, is_connector: bool) {
        let (FlowopAction::Connect(endpoint) | FlowopAction::Accept(endpoint)) = &flowop.flowop.action else { return };
        let datagrams = endpoint.protocol.is_datagram();
        let ordinal = &mut self.opened[flowop.host as usize];
        *ordinal += 1;
        self.generation += 1;
        self.open.push(OpenConnection {
            name: flowop.flowop.connection,
            host: flowop.host,
            ordinal: *ordinal,
            transport,
            is_connector,
            datagrams,
            has_headers: datagrams && fits_header(&self.plan, flowop.flowop.connection),
            sent: 0,
            received: 0,
            last_received: 0,
        });
    }

    /// Whether the other side has finished, and all the connections that it opened have been accepted.
    fn is_connector_done(&self, flowop: &FlowopPlan) -> bool {
        if !self.signals.finish.load(std::sync::atomic::Ordering::Relaxed) {
            return false;
        }
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

fn min_size(message: &crate::language::Message) -> u32 {
    let size = match message.size {
        crate::language::MessageSize::Fixed(size) => size,
        crate::language::MessageSize::Random { min, .. } => min,
    };
    size.min(message.remote_size.unwrap_or(size))
}

fn no_link_end() -> StepResult {
    StepResult::Failed(io_error(ErrorKind::NotConnected, "no address was exchanged for this connection"))
}

/// The connection that a flowop uses.
#[inline]
pub(super) fn find_connection<'a>(
    open: &'a mut [OpenConnection],
    flowop: &FlowopPlan,
) -> Option<&'a mut OpenConnection> {
    open.iter_mut().find(|open| open.name == flowop.flowop.connection)
}

pub(super) fn not_connected(flowop: &FlowopPlan) -> StepResult {
    let name = flowop.flowop.connection.map_or("without a name".to_owned(), |name| format!("conn={name}"));
    StepResult::Failed(io_error(ErrorKind::NotConnected, &format!("no connection {name} is open")))
}

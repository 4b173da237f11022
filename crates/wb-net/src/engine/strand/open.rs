//! Connections: made, taken and closed.

use std::io::{self, ErrorKind};

use super::{Doing, Strand, Went, error, header, message};
use crate::engine::{
    clock::{self, Nanos},
    plan::{FlowopPlan, GroupPlan},
    work::ConnectionTotals,
};
use crate::language::{Action, Endpoint};
use crate::transport::{Info, Intent, Transport, socket::CONNECT};

/// A connection that is open.
pub(super) struct Open {
    pub(super) name: Option<u32>,
    pub(super) host: u32,
    pub(super) ordinal: u32,
    pub(super) transport: Box<dyn Transport>,
    pub(super) opener: bool,
    pub(super) datagrams: bool,
    /// Whether its datagrams say where their sender is.
    pub(super) numbered: bool,
    /// Bytes, or datagrams.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// When the last datagram came.
    pub(super) last_received: Nanos,
}

impl Open {
    pub(super) fn totals(&self) -> ConnectionTotals {
        let &Self { host, ordinal, datagrams, sent, received, .. } = self;
        ConnectionTotals { host, ordinal, datagrams, sent, received }
    }
}

impl Strand {
    /// What the kernel says of the connections that are open.
    pub(in crate::engine) fn info(&self) -> Info {
        self.open.iter().fold(self.closed, |mut sum, open| {
            sum.add(&open.transport.info());
            sum
        })
    }

    pub(super) fn connect(&mut self, flowop: &FlowopPlan, endpoint: &Endpoint) -> Went {
        let (began, mut transport) = match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Connecting { began, transport } => (began, transport),
            _ => {
                let began = self.now;
                let Some(end) = self.end_mut(flowop.place) else { return no_end() };
                match end.open() {
                    Ok(transport) => {
                        // Its descriptor may be one that an attempt before it had.
                        self.generation += 1;
                        (began, transport)
                    }
                    Err(error) => return Went::Failed(error),
                }
            }
        };
        match transport.establish() {
            Ok(()) => {
                self.add(flowop, transport, true);
                Went::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
            }
            Err(error) if is_not_yet(&error) => {
                let deadline = began + clock::nanos(endpoint.timeout.unwrap_or(CONNECT));
                self.now = clock::now();
                if self.now >= deadline {
                    return Went::Failed(self::error(ErrorKind::TimedOut, "no answer to the connection attempt"));
                }
                let wait = transport.waits(Intent::Send).or_until(deadline);
                // Kept also when the time is up: the other side, whose clock is another, must not see it fail.
                self.doing = Doing::Connecting { began, transport };
                if self.is_over() { Went::Over } else { Went::Waits(wait) }
            }
            Err(error) => Went::Failed(error),
        }
    }

    pub(super) fn accept(&mut self, flowop: &FlowopPlan) -> Went {
        let (began, taken) = match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Connecting { began, transport } => (began, Some(transport)),
            Doing::Accepting { began } => (began, None),
            _ => (self.now, None),
        };
        let Some(end) = self.end_mut(flowop.place) else { return no_end() };
        let is_new = taken.is_none();
        let mut transport = match taken.map_or_else(|| end.take(), Ok) {
            Ok(transport) => {
                self.generation += u64::from(is_new);
                transport
            }
            Err(error) if is_not_yet(&error) => {
                let wait = end.waits();
                self.now = clock::now();
                if self.is_over() || self.opener_is_done(flowop) {
                    return Went::Over;
                }
                self.doing = Doing::Accepting { began };
                return Went::Waits(wait);
            }
            Err(error) => return Went::Failed(error),
        };
        match transport.establish() {
            Ok(()) => {
                self.add(flowop, transport, false);
                Went::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
            }
            Err(error) if is_not_yet(&error) => {
                self.now = clock::now();
                let wait = transport.waits(Intent::Receive);
                self.doing = Doing::Connecting { began, transport };
                if self.is_over() || self.opener_is_done(flowop) { Went::Over } else { Went::Waits(wait) }
            }
            Err(error) => Went::Failed(error),
        }
    }

    pub(super) fn disconnect(&mut self, flowop: &FlowopPlan) -> Went {
        let (began, mut open) = match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Closing { began, open } => (began, open),
            _ => {
                let position = self.open.iter().position(|open| open.name == flowop.flowop.connection);
                let Some(position) = position else { return message::no_such(flowop) };
                let open = self.open.remove(position);
                self.generation += 1;
                let first = self.closed.connections == 0;
                self.closed.add(&if first { open.transport.info() } else { open.transport.path() });
                if open.datagrams {
                    let gone = &mut self.gone[open.host as usize];
                    *gone = (gone.0 + open.sent, gone.1 + open.received);
                }
                (self.now, open)
            }
        };
        match open.transport.close(open.opener) {
            Err(error) if is_not_yet(&error) => {
                self.now = clock::now();
                if self.is_over() || self.signals.finish.load(std::sync::atomic::Ordering::Relaxed) {
                    return Went::Over;
                }
                let wait = open.transport.waits(Intent::Receive);
                self.doing = Doing::Closing { began, open };
                Went::Waits(wait)
            }
            Ok(()) => {
                drop(open);
                Went::Done { messages: 1, began, intended: None, sent: 0, received: 0 }
            }
            Err(error) => Went::Failed(error),
        }
    }

    fn add(&mut self, flowop: &FlowopPlan, transport: Box<dyn Transport>, opener: bool) {
        let (Action::Connect(endpoint) | Action::Accept(endpoint)) = &flowop.flowop.action else { return };
        let datagrams = endpoint.protocol.is_datagram();
        let ordinal = &mut self.opened[flowop.host as usize];
        *ordinal += 1;
        self.generation += 1;
        self.open.push(Open {
            name: flowop.flowop.connection,
            host: flowop.host,
            ordinal: *ordinal,
            transport,
            opener,
            datagrams,
            numbered: datagrams && is_numbered(&self.plan, flowop.flowop.connection),
            sent: 0,
            received: 0,
            last_received: 0,
        });
    }

    /// Whether the other side, which is done, has opened no more connections than were taken.
    fn opener_is_done(&self, flowop: &FlowopPlan) -> bool {
        if !self.signals.finish.load(std::sync::atomic::Ordering::Relaxed) {
            return false;
        }
        let totals = self.signals.totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let host = flowop.host as usize;
        totals.as_ref().is_some_and(|theirs| theirs.opened.get(host).copied().unwrap_or(0) <= self.opened[host])
    }
}

/// Whether every message on a connection has room for a header; both sides come to the same answer.
fn is_numbered(plan: &GroupPlan, name: Option<u32>) -> bool {
    let flowops = plan.transactions.iter().flat_map(|transaction| &transaction.flowops);
    let mut messages = flowops
        .filter(|flowop| flowop.flowop.connection == name)
        .filter_map(|flowop| crate::engine::plan::message(&flowop.flowop));
    messages.all(|message| smallest(message) as usize >= header::LENGTH)
}

fn smallest(message: &crate::language::Message) -> u32 {
    let size = match message.size {
        crate::language::Size::Fixed(size) => size,
        crate::language::Size::Random { min, .. } => min,
    };
    size.min(message.remote_size.unwrap_or(size))
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        || matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EALREADY))
}

fn no_end() -> Went {
    Went::Failed(error(ErrorKind::NotConnected, "no address was agreed on for this connection"))
}

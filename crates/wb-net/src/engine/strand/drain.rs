//! Draining: after a transaction both sides receive what is still in flight.

use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;

use super::connections::OpenConnection;
use super::{DATAGRAM_GRACE, Strand, StrandStatus};
use crate::engine::clock::{self, Nanos};
use crate::engine::protocol::{ConnectionTotals, EngineError, StrandTotals};
use crate::transport::cookie::resembles_cookie;
use crate::transport::{Intent, WaitCondition};
use wb_net_profile::{Message, MessageSize, SyscallFamily};

/// A stream connection is given up after this long without progress, in nanoseconds.
const DRAIN_TIMEOUT: Nanos = 5_000_000_000;

const NON_BLOCKING_MESSAGE: Message =
    Message { non_blocking: true, ..Message::new(MessageSize::Fixed(1), SyscallFamily::SendRecv) };

#[derive(Debug, Default)]
pub(super) struct DrainState {
    /// The other side's totals, by host and ordinal.
    peer_totals: Vec<ConnectionTotals>,
    /// Connections before this one are drained.
    position: usize,
    /// When data last arrived on this connection.
    last_moved: Nanos,
}

impl Strand {
    pub(in crate::engine) fn totals(&self) -> StrandTotals {
        // Connections are numbered from 1; 0 stands for all closed ones together.
        let closed = self.closed_datagrams.iter().zip(0..).filter_map(|(moved, host)| {
            let (sent, received) = (*moved)?;
            Some(ConnectionTotals { host, ordinal: 0, datagrams: true, sent, received })
        });
        StrandTotals {
            strand: self.index,
            connections: self.open.iter().map(OpenConnection::totals).chain(closed).collect(),
            opened: self.opened.clone(),
        }
    }

    /// Begins to drain, up to the other side's totals.
    pub(in crate::engine) fn begin_drain(&mut self, mut peer_totals: Vec<ConnectionTotals>) {
        // Each side reports how much it sent on each connection, and the other receives that much before the next
        // transaction. The difference of datagrams is the loss.
        peer_totals.sort_unstable_by_key(|totals| (totals.host, totals.ordinal));
        self.drain = DrainState { peer_totals, position: 0, last_moved: clock::now() };
    }

    /// Flushes outgoing data and receives what the other side has sent, until it has to wait.
    pub(in crate::engine) fn drain(&mut self, buffer: &mut [u8]) -> StrandStatus {
        while let Some(open) = self.open.get(self.drain.position) {
            if self.signals.stop.load(Relaxed) {
                break;
            }
            let received_elsewhere = if open.datagrams { self.received_on_others(open) } else { 0 };
            let expected = self.drain.expected_bytes(open, received_elsewhere);
            let open = &mut self.open[self.drain.position];
            match self.drain.drain_connection(open, expected, buffer) {
                Ok(None) => {
                    self.drain.position += 1;
                    self.drain.last_moved = clock::now();
                }
                Ok(Some(wait)) => return StrandStatus::Wait(wait),
                Err(error) => return StrandStatus::Failed(error),
            }
        }
        StrandStatus::Ended
    }

    /// Datagrams received from the same host on other connections, including closed ones.
    fn received_on_others(&self, connection: &OpenConnection) -> u64 {
        let others = self.open.iter().filter(|open| open.host == connection.host && open.ordinal != connection.ordinal);
        let closed = self.closed_datagrams.get(connection.host as usize).copied().flatten();
        let closed = closed.map_or(0, |(_, received)| received);
        closed + others.map(|open| open.received).sum::<u64>()
    }
}

impl DrainState {
    /// The bytes that the other side has sent on a connection, if known. If the other side has closed it, a datagram
    /// connection expects the bytes that are missing in the sum, and any other connection expects nothing more.
    fn expected_bytes(&self, open: &OpenConnection, received_elsewhere: u64) -> Option<u64> {
        let of_host = || self.peer_totals.iter().filter(|totals| totals.host == open.host);
        let key = (open.host, open.ordinal);
        match self.peer_totals.binary_search_by_key(&key, |totals| (totals.host, totals.ordinal)) {
            Ok(index) => Some(self.peer_totals[index].sent),
            Err(_) if open.datagrams => {
                Some(of_host().map(|totals| totals.sent).sum::<u64>().saturating_sub(received_elsewhere))
            }
            Err(_) => None,
        }
    }

    /// Receives what has arrived on one connection; returns the condition to wait for if more is expected.
    fn drain_connection(
        &mut self,
        open: &mut OpenConnection,
        expected: Option<u64>,
        buffer: &mut [u8],
    ) -> Result<Option<WaitCondition>, EngineError> {
        let Some(expected) = expected else { return Ok(None) };
        let timeout = if open.datagrams { DATAGRAM_GRACE } else { DRAIN_TIMEOUT };
        loop {
            let flushed = !open.transport.flush().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            if flushed && open.received >= expected {
                return Ok(None);
            }
            match open.transport.receive(buffer, &NON_BLOCKING_MESSAGE) {
                Ok(0) if !open.datagrams => return Ok(None),
                Ok(moved) if open.datagrams && resembles_cookie(&buffer[..moved]) => {}
                Ok(moved) => {
                    open.received += if open.datagrams { 1 } else { moved as u64 };
                    self.last_moved = clock::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let until = self.last_moved + timeout;
                    return match (clock::now() < until, open.datagrams) {
                        (true, _) => {
                            let intent = if flushed { Intent::Receive } else { Intent::Send };
                            Ok(Some(open.transport.wait_condition(intent).or_until(until)))
                        }
                        (false, true) => Ok(None),
                        (false, false) => {
                            let missing = expected.saturating_sub(open.received);
                            Err(EngineError::new(format!("{missing} bytes not received: nothing arrived for 5 s")))
                        }
                    };
                }
                Err(error) => return Err(EngineError::new(format!("cannot drain connection: {error}"))),
            }
        }
    }
}

//! Draining: after a transaction both sides receive what is still in flight.

use std::{io::ErrorKind, sync::atomic::Ordering::Relaxed};

use super::{DATAGRAM_GRACE, Strand, StrandStatus, connections::OpenConnection};
use crate::engine::{
    clock::{self, Nanos},
    protocol::{ConnectionTotals, EngineError, StrandTotals},
};
use crate::language::{Message, MessageSize, SctpMessage, SyscallFamily};
use crate::transport::{Intent, WaitCondition};

/// A connection on which nothing moves for so long will not move any more.
const DRAIN_TIMEOUT: Nanos = 5_000_000_000;

/// How it is received.
const NON_BLOCKING_MESSAGE: Message = Message {
    size: MessageSize::Fixed(1),
    remote_size: None,
    call: SyscallFamily::SendRecv,
    timeout: None,
    non_blocking: true,
    sctp: SctpMessage { stream: None, unordered: false, partial: None },
};

/// How far it is.
#[derive(Debug, Default)]
pub(super) struct DrainState {
    peer_totals: Vec<ConnectionTotals>,
    /// Connections before this one are quiet.
    position: usize,
    /// When something moved on this one.
    last_moved: Nanos,
}

impl Strand {
    /// What this strand's connections have moved.
    pub(in crate::engine) fn totals(&self) -> StrandTotals {
        // Connections are numbered from 1; what closed ones moved together stands under 0.
        let gone =
            self.closed_datagrams.iter().zip(0..).filter(|(moved, _)| **moved != (0, 0)).map(
                |(&(sent, received), host)| ConnectionTotals { host, ordinal: 0, datagrams: true, sent, received },
            );
        StrandTotals {
            strand: self.index,
            connections: self.open.iter().map(OpenConnection::totals).chain(gone).collect(),
            opened: self.opened.clone(),
        }
    }

    /// Begins to settle with what the other side has sent.
    pub(in crate::engine) fn begin_drain(&mut self, theirs: Vec<ConnectionTotals>) {
        self.drain = DrainState { peer_totals: theirs, position: 0, last_moved: clock::now() };
    }

    /// Sends what is left here and takes in what the other side has sent, until it has to wait.
    pub(in crate::engine) fn drain(&mut self, buffer: &mut [u8]) -> StrandStatus {
        while let Some(open) = self.open.get(self.drain.position) {
            if self.signals.stop.load(Relaxed) {
                break;
            }
            let expected = self.drain.expected_bytes(open, self.received_on_others(open));
            let open = &mut self.open[self.drain.position];
            match self.drain.drain_connection(open, expected, buffer) {
                Ok(None) => {
                    self.drain.position += 1;
                    self.drain.last_moved = clock::now();
                }
                Ok(Some(wait)) => return StrandStatus::Wait(wait),
                Err(fault) => return StrandStatus::Failed(fault),
            }
        }
        StrandStatus::Ended
    }

    /// What came from the same host on other connections, closed ones included.
    fn received_on_others(&self, than: &OpenConnection) -> u64 {
        let others = self.open.iter().filter(|open| open.host == than.host && open.ordinal != than.ordinal);
        let gone = self.closed_datagrams.get(than.host as usize).map_or(0, |(_, received)| *received);
        gone + others.map(|open| open.received).sum::<u64>()
    }
}

impl DrainState {
    /// How much the other side has sent on a connection. Of datagrams on one that it has closed already, that is what
    /// is missing in sum; of other such connections nothing more is expected.
    fn expected_bytes(&self, open: &OpenConnection, received_elsewhere: u64) -> Option<u64> {
        let of_host = || self.peer_totals.iter().filter(|their| their.host == open.host);
        match of_host().find(|their| their.ordinal == open.ordinal) {
            Some(their) => Some(their.sent),
            None if open.datagrams => {
                Some(of_host().map(|their| their.sent).sum::<u64>().saturating_sub(received_elsewhere))
            }
            None => None,
        }
    }

    /// Takes in what has come on one connection; says what to wait for if that was not all.
    fn drain_connection(
        &mut self,
        open: &mut OpenConnection,
        expected: Option<u64>,
        buffer: &mut [u8],
    ) -> Result<Option<WaitCondition>, EngineError> {
        let Some(expected) = expected else { return Ok(None) };
        let patience = if open.datagrams { DATAGRAM_GRACE } else { DRAIN_TIMEOUT };
        loop {
            let flushed = !open.transport.flush().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            if flushed && open.received >= expected {
                return Ok(None);
            }
            match open.transport.receive(buffer, &NON_BLOCKING_MESSAGE) {
                Ok(0) if !open.datagrams => return Ok(None),
                Ok(moved) => {
                    open.received += if open.datagrams { 1 } else { moved as u64 };
                    self.last_moved = clock::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let until = self.last_moved + patience;
                    return match (clock::now() < until, open.datagrams) {
                        (true, _) => {
                            let intent = if flushed { Intent::Receive } else { Intent::Send };
                            Ok(Some(open.transport.wait_condition(intent).or_until(until)))
                        }
                        (false, true) => Ok(None),
                        (false, false) => {
                            let missing = expected.saturating_sub(open.received);
                            Err(EngineError::new(format!("{missing} bytes that were sent did not arrive")))
                        }
                    };
                }
                Err(error) => return Err(EngineError::new(format!("after the transaction: {error}"))),
            }
        }
    }
}

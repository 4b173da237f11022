//! After a transaction: both sides take in what is still on its way, so that the next begins on quiet connections.

use std::{io::ErrorKind, sync::atomic::Ordering::Relaxed};

use super::{QUIET, Step, Strand, open::Open};
use crate::engine::{
    clock::{self, Nanos},
    work::{ConnectionTotals, Fault, StrandTotals},
};
use crate::language::{Call, Message, SctpMessage, Size};
use crate::transport::{Intent, Wait};

/// A connection on which nothing moves for so long will not move any more.
const PATIENCE: Nanos = 5_000_000_000;

/// How it is received.
const WITHOUT_BLOCKING: Message = Message {
    size: Size::Fixed(1),
    remote_size: None,
    call: Call::SendRecv,
    timeout: None,
    non_blocking: true,
    sctp: SctpMessage { stream: None, unordered: false, partial: None },
};

/// How far it is.
#[derive(Debug, Default)]
pub(super) struct Settling {
    theirs: Vec<ConnectionTotals>,
    /// Connections before this one are quiet.
    position: usize,
    /// When something moved on this one.
    last: Nanos,
}

impl Strand {
    /// What this strand's connections have moved.
    pub(in crate::engine) fn totals(&self) -> StrandTotals {
        // Connections are numbered from 1; what closed ones moved together stands under 0.
        let gone =
            self.gone.iter().zip(0..).filter(|(moved, _)| **moved != (0, 0)).map(|(&(sent, received), host)| {
                ConnectionTotals { host, ordinal: 0, datagrams: true, sent, received }
            });
        StrandTotals {
            strand: self.index,
            connections: self.open.iter().map(Open::totals).chain(gone).collect(),
            opened: self.opened.clone(),
        }
    }

    /// Begins to settle with what the other side has sent.
    pub(in crate::engine) fn settles(&mut self, theirs: Vec<ConnectionTotals>) {
        self.settling = Settling { theirs, position: 0, last: clock::now() };
    }

    /// Sends what is left here and takes in what the other side has sent, until it has to wait.
    pub(in crate::engine) fn settle(&mut self, buffer: &mut [u8]) -> Step {
        while let Some(open) = self.open.get(self.settling.position) {
            if self.signals.stop.load(Relaxed) {
                break;
            }
            let expected = self.settling.expected(open, self.received_elsewhere(open));
            let open = &mut self.open[self.settling.position];
            match self.settling.go_on(open, expected, buffer) {
                Ok(None) => {
                    self.settling.position += 1;
                    self.settling.last = clock::now();
                }
                Ok(Some(wait)) => return Step::Wait(wait),
                Err(fault) => return Step::Failed(fault),
            }
        }
        Step::Ended
    }

    /// What came from the same host on other connections, closed ones included.
    fn received_elsewhere(&self, than: &Open) -> u64 {
        let others = self.open.iter().filter(|open| open.host == than.host && open.ordinal != than.ordinal);
        let gone = self.gone.get(than.host as usize).map_or(0, |(_, received)| *received);
        gone + others.map(|open| open.received).sum::<u64>()
    }
}

impl Settling {
    /// How much the other side has sent on a connection. Of datagrams on one that it has closed already, that is what
    /// is missing in sum; of other such connections nothing more is expected.
    fn expected(&self, open: &Open, received_elsewhere: u64) -> Option<u64> {
        let of_host = || self.theirs.iter().filter(|their| their.host == open.host);
        match of_host().find(|their| their.ordinal == open.ordinal) {
            Some(their) => Some(their.sent),
            None if open.datagrams => {
                Some(of_host().map(|their| their.sent).sum::<u64>().saturating_sub(received_elsewhere))
            }
            None => None,
        }
    }

    /// Takes in what has come on one connection; says what to wait for if that was not all.
    fn go_on(&mut self, open: &mut Open, expected: Option<u64>, buffer: &mut [u8]) -> Result<Option<Wait>, Fault> {
        let Some(expected) = expected else { return Ok(None) };
        let patience = if open.datagrams { QUIET } else { PATIENCE };
        loop {
            let flushed = !open.transport.flush().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            if flushed && open.received >= expected {
                return Ok(None);
            }
            match open.transport.receive(buffer, &WITHOUT_BLOCKING) {
                Ok(0) if !open.datagrams => return Ok(None),
                Ok(moved) => {
                    open.received += if open.datagrams { 1 } else { moved as u64 };
                    self.last = clock::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let until = self.last + patience;
                    return match (clock::now() < until, open.datagrams) {
                        (true, _) => {
                            let intent = if flushed { Intent::Receive } else { Intent::Send };
                            Ok(Some(open.transport.waits(intent).or_until(until)))
                        }
                        (false, true) => Ok(None),
                        (false, false) => {
                            let missing = expected.saturating_sub(open.received);
                            Err(Fault::new(format!("{missing} bytes that were sent did not arrive")))
                        }
                    };
                }
                Err(error) => return Err(Fault::new(format!("after the transaction: {error}"))),
            }
        }
    }
}

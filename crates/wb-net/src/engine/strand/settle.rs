//! After a transaction: both sides take in what is still on its way, so that the next begins on quiet connections.

use std::io::ErrorKind;

use super::Strand;
use crate::engine::{
    clock::{self, Nanos},
    work::{ConnectionTotals, Fault, StrandTotals},
};
use crate::language::{Call, Message, SctpMessage, Size};
use crate::transport::Intent;

/// A connection on which nothing moves for so long will not move any more.
const PATIENCE: Nanos = 5_000_000_000;

/// Datagrams that have not come after so long are lost.
const QUIET: Nanos = 50_000_000;

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
            connections: self.open.iter().map(super::open::Open::totals).chain(gone).collect(),
            opened: self.opened.clone(),
        }
    }

    /// Sends what is left here and takes in what the other side has sent.
    pub(in crate::engine) fn settle(&mut self, theirs: &[ConnectionTotals], buffer: &mut [u8]) -> Result<(), Fault> {
        let how = Message {
            size: Size::Fixed(1),
            remote_size: None,
            call: Call::SendRecv,
            timeout: None,
            non_blocking: true,
            sctp: SctpMessage::default(),
        };
        for open in &mut self.open {
            let their = theirs.iter().find(|their| (their.host, their.ordinal) == (open.host, open.ordinal));
            let Some(their) = their else { continue };
            let patience = if open.datagrams { QUIET } else { PATIENCE };
            let mut last = clock::now();
            loop {
                let flushed = !open.transport.flush().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
                if flushed && open.received >= their.sent {
                    break;
                }
                match open.transport.receive(buffer, &how) {
                    Ok(0) if !open.datagrams => break,
                    Ok(moved) => {
                        open.received += if open.datagrams { 1 } else { moved as u64 };
                        last = clock::now();
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if self.signals.stop.load(std::sync::atomic::Ordering::Relaxed) {
                            return Ok(());
                        }
                        if clock::now() >= last + patience {
                            if open.datagrams {
                                break;
                            }
                            let missing = their.sent - open.received;
                            return Err(Fault::new(format!("{missing} bytes that were sent did not arrive")));
                        }
                        let intent = if flushed { Intent::Receive } else { Intent::Send };
                        let wait = open.transport.waits(intent).or_until(last + patience);
                        super::super::wait::block(&wait, Some(clock::now() + QUIET));
                    }
                    Err(error) => return Err(Fault::new(format!("after the transaction: {error}"))),
                }
            }
        }
        Ok(())
    }
}

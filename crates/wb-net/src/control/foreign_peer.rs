//! Recognises a peer that speaks the protocol of another program, by the first bytes that it sends.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::error::Role;

/// A program whose protocol is recognised
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignProgram {
    /// iperf3: its client begins with a cookie of 36 letters and digits, its server with a state
    Iperf3,
    /// uperf: its master begins with a constant text, its slave answers that it does not see that
    Uperf,
}

impl fmt::Display for ForeignProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iperf3 => "iperf3",
            Self::Uperf => "uperf",
        })
    }
}

/// Length of iperf3's cookie without the terminating zero.
const IPERF3_COOKIE: usize = 36;

/// States that an iperf3 server sends first: it waits for parameters, or is busy, or fails.
const IPERF3_STATES: [u8; 3] = [9, 0xff, 0xfe];

const UPERF_MAGIC: &[u8] = b"0xbadcafedeadbeef";
const UPERF_REFUSAL: &[u8] = b"Not OK\0";

/// Upper bound of the length of uperf's first message: a slave answers once it has received as much.
pub(super) const UPERF_HELLO: usize = 512;

#[derive(Debug, Clone, Default)]
pub(super) struct FirstBytes(Arc<Mutex<Vec<u8>>>);

/// Bytes.
const KEPT: usize = 64;

impl FirstBytes {
    fn record(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT - kept.len();
        kept.extend(&bytes[..bytes.len().min(room)]);
    }

    pub(super) fn program(&self, peer: Role) -> Option<ForeignProgram> {
        recognise(&self.0.lock().unwrap_or_else(PoisonError::into_inner), peer)
    }
}

fn recognise(bytes: &[u8], peer: Role) -> Option<ForeignProgram> {
    let is_cookie = |cookie: &[u8]| cookie.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    match peer {
        Role::Client if bytes.starts_with(UPERF_MAGIC) => Some(ForeignProgram::Uperf),
        Role::Client if bytes.get(..IPERF3_COOKIE).is_some_and(is_cookie) => Some(ForeignProgram::Iperf3),
        Role::Server if bytes.starts_with(UPERF_REFUSAL) => Some(ForeignProgram::Uperf),
        Role::Server if bytes.first().is_some_and(|state| IPERF3_STATES.contains(state)) => {
            Some(ForeignProgram::Iperf3)
        }
        _ => None,
    }
}

/// The program that sent these first bytes, in either role
pub(crate) fn recognise_program(bytes: &[u8]) -> Option<ForeignProgram> {
    [Role::Client, Role::Server].into_iter().find_map(|peer| recognise(bytes, peer))
}

/// A connection that records the first bytes that it receives
#[derive(Debug)]
pub(super) struct RecordedStream {
    stream: TcpStream,
    first: FirstBytes,
}

impl RecordedStream {
    pub(super) fn new(stream: TcpStream, first: FirstBytes) -> Self {
        Self { stream, first }
    }
}

impl AsyncRead for RecordedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, into);
        self.first.record(&into.filled()[before..]);
        result
    }
}

impl AsyncWrite for RecordedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_recognised_by_their_first_bytes() {
        let first = |bytes: &[u8], peer| {
            let first = FirstBytes::default();
            bytes.chunks(7).for_each(|chunk| first.record(chunk));
            first.program(peer)
        };
        let iperf3 = b"tfh6mikoje2am4gty3tnjueplx5b3jx47yaj\0";
        assert_eq!(first(iperf3, Role::Client), Some(ForeignProgram::Iperf3));
        assert_eq!(first(b"0xbadcafedeadbeef\0", Role::Client), Some(ForeignProgram::Uperf));
        assert_eq!(first(&[9], Role::Server), Some(ForeignProgram::Iperf3));
        assert_eq!(first(b"Not OK\0\0Wrong magic", Role::Server), Some(ForeignProgram::Uperf));
        for (bytes, peer) in [(&iperf3[..20], Role::Client), (&[22, 3, 1][..], Role::Client), (&[22, 3], Role::Server)]
        {
            assert_eq!(first(bytes, peer), None);
        }
        assert_eq!(first(&[0; 500], Role::Client), None);
    }
}

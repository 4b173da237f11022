//! SCTP, one-to-one style (RFC 4960; its sockets: RFC 6458).
//!
//! A message of a profile is one message of SCTP, or several if it is large. What is given up under partial
//! reliability never comes, so that the other side must not wait for all of it.

mod sys;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::{Transport, stream};
use crate::language::{Message, PartialReliability, SctpEndpoint};

/// The largest message: larger ones would not fit into a send buffer, and the kernel takes a whole one or none.
const MAX_MESSAGE: usize = 1 << 16;

/// An association.
#[derive(Debug)]
pub struct Association {
    socket: Socket,
    graceful_close: stream::GracefulClose,
}

impl Association {
    /// Of a socket that is connected, or about to be.
    pub fn new(socket: Socket) -> Self {
        Self { socket, graceful_close: stream::GracefulClose::default() }
    }
}

/// Sets what a profile says of associations.
pub(super) fn configure(socket: &Socket, said: &SctpEndpoint, no_delay: bool) -> io::Result<()> {
    let socket = socket.as_fd();
    let or_same = |value: Option<u32>| value.unwrap_or(0);
    if said.rto_initial.is_some() || said.rto_min.is_some() || said.rto_max.is_some() {
        let (initial, max, min) = (or_same(said.rto_initial), or_same(said.rto_max), or_same(said.rto_min));
        name_option("sctp_rto", sys::RtoInfo { association: 0, initial, max, min }.set(socket))?;
    }
    if said.sack_delay.is_some() || said.sack_frequency.is_some() {
        let (delay, frequency) = (or_same(said.sack_delay), or_same(said.sack_frequency));
        name_option("sctp_sack", sys::SackInfo { association: 0, delay, frequency }.set(socket))?;
    }
    if let Some(burst) = said.max_burst {
        name_option("sctp_max_burst_size", sys::set_max_burst(socket, burst))?;
    }
    if let Some(size) = said.max_fragment {
        name_option("sctp_max_fragment_size", sys::set_max_fragment(socket, size))?;
    }
    if said.heartbeat.is_some() || said.path_mtu.is_some() {
        let path = sys::PathParameters::new(said.heartbeat, said.path_mtu);
        name_option("sctp_hb_interval or sctp_path_mtu", path.set(socket))?;
    }
    if said.in_streams.is_some() || said.out_streams.is_some() {
        let streams = sys::InitMessage::new(said.in_streams.unwrap_or(0), said.out_streams.unwrap_or(0));
        name_option("sctp_in_streams or sctp_out_streams", streams.set(socket))?;
    }
    if no_delay || said.no_delay {
        name_option("sctp_nodelay", sys::set_no_delay(socket))?;
    }
    if let Some(port) = said.encapsulation {
        name_option("encaps", sys::Encapsulation::new(port).set(socket))?;
    }
    Ok(())
}

/// Says which option the kernel did not take.
fn name_option(option: &str, set: Result<(), rustix::io::Errno>) -> io::Result<()> {
    set.map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{option}: the kernel does not take this value: {error}"))
    })
}

impl Transport for Association {
    fn send(&mut self, bytes: &[u8], how: &Message) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | if how.non_blocking { SendFlags::DONTWAIT } else { SendFlags::empty() };
        let part = &bytes[..bytes.len().min(MAX_MESSAGE)];
        let said = &how.sctp;
        if said.stream.is_none() && !said.unordered && said.partial.is_none() {
            return Ok(rustix::net::send(&self.socket, part, flags)?);
        }
        let (policy, value) = match said.partial {
            None | Some(PartialReliability::Never) => (sys::ReliabilityPolicy::Never, 0),
            Some(PartialReliability::Lifetime(milliseconds)) => (sys::ReliabilityPolicy::Lifetime, milliseconds),
            Some(PartialReliability::Retransmissions(count)) => (sys::ReliabilityPolicy::Retransmissions, count),
            Some(PartialReliability::Priority(priority)) => (sys::ReliabilityPolicy::Priority, priority),
        };
        let told = sys::ControlMessages::new(said.stream.unwrap_or(0), said.unordered, policy, value);
        sys::send(self.socket.as_fd(), part, told, flags)
    }

    fn receive(&mut self, into: &mut [u8], how: &Message) -> io::Result<usize> {
        let flags = if how.non_blocking { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        Ok(rustix::net::recv(&self.socket, into, flags)?.0)
    }

    fn establish(&mut self) -> io::Result<()> {
        stream::check_connected(&self.socket)
    }

    fn close(&mut self, opener: bool) -> io::Result<()> {
        if !opener {
            return Ok(());
        }
        match self.graceful_close.finish(&self.socket, stream::receive_raw) {
            // That it is gone is not told to who does not block.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !sys::is_associated(self.socket.as_fd()) => {
                Ok(())
            }
            ended => ended,
        }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn an_option_that_is_not_taken_is_named() {
        let tcp = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let said = SctpEndpoint { max_burst: Some(8), ..SctpEndpoint::default() };
        let error = configure(&tcp, &said, false).expect_err("it is not SCTP");
        assert!(error.to_string().starts_with("sctp_max_burst_size: "), "{error}");
    }
}

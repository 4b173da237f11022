//! SCTP, one-to-one style (RFC 4960; its sockets: RFC 6458).
//!
//! A message of a profile is one SCTP message, or several if it is large. Messages that are abandoned under partial
//! reliability never arrive, so the other side must not wait for them.

mod sys;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::SendFlags;
use socket2::Socket;

use super::{CloseMode, Transport, cookie, receive_flags, send_flags, sockopt, stream};
use wb_net_profile::{Message, PartialReliability, SctpEndpoint};

/// Maximum message size in bytes: larger ones do not fit into the send buffer, and the kernel takes only whole ones.
const MAX_MESSAGE: usize = 1 << 16;

/// An SCTP association.
#[derive(Debug)]
pub struct Association {
    socket: Socket,
    /// The cookie, a message of its own, until it has been sent.
    cookie: Option<stream::UnsentCookie>,
    graceful_close: stream::GracefulClose,
}

impl Association {
    /// Creates an association from a socket that is connected or connecting. The connecting side has a cookie.
    pub(super) fn new(socket: Socket, cookie: Option<[u8; cookie::LENGTH]>) -> Self {
        let cookie = cookie.map(stream::UnsentCookie::new);
        Self { socket, cookie, graceful_close: stream::GracefulClose::default() }
    }
}

pub(super) fn configure(socket: &Socket, options: &SctpEndpoint, no_delay: bool) -> io::Result<()> {
    let socket = socket.as_fd();
    let or_zero = |value: Option<u32>| value.unwrap_or(0);
    if options.rto_initial.is_some() || options.rto_min.is_some() || options.rto_max.is_some() {
        let (initial, max, min) = (or_zero(options.rto_initial), or_zero(options.rto_max), or_zero(options.rto_min));
        name_option("sctp_rto", sys::RtoInfo { association: 0, initial, max, min }.set(socket))?;
    }
    if options.sack_delay.is_some() || options.sack_frequency.is_some() {
        let (delay, frequency) = (or_zero(options.sack_delay), or_zero(options.sack_frequency));
        name_option("sctp_sack", sys::SackInfo { association: 0, delay, frequency }.set(socket))?;
    }
    if let Some(burst) = options.max_burst {
        name_option("sctp_max_burst_size", sys::set_max_burst(socket, burst))?;
    }
    if let Some(size) = options.max_fragment {
        name_option("sctp_max_fragment_size", sys::set_max_fragment(socket, size))?;
    }
    if options.heartbeat.is_some() || options.path_mtu.is_some() {
        let path = sys::PathParameters::new(options.heartbeat, options.path_mtu);
        name_option("sctp_hb_interval or sctp_path_mtu", path.set(socket))?;
    }
    if options.in_streams.is_some() || options.out_streams.is_some() {
        let streams = sys::InitMessage::new(options.in_streams.unwrap_or(0), options.out_streams.unwrap_or(0));
        name_option("sctp_in_streams or sctp_out_streams", streams.set(socket))?;
    }
    if no_delay || options.no_delay {
        name_option("sctp_nodelay", sys::set_no_delay(socket))?;
    }
    if let Some(port) = options.encapsulation {
        name_option("encaps", sys::Encapsulation::new(port).set(socket))?;
    }
    Ok(())
}

/// Adds the option's name to the error if the kernel rejects its value.
fn name_option(option: &str, result: Result<(), rustix::io::Errno>) -> io::Result<()> {
    result.map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{option}: the kernel rejects this value: {error}"))
    })
}

impl Transport for Association {
    fn send(&mut self, bytes: &[u8], message: &Message) -> io::Result<usize> {
        let flags = send_flags(message);
        let part = &bytes[..bytes.len().min(MAX_MESSAGE)];
        let options = &message.sctp;
        if options.stream.is_none() && !options.unordered && options.partial.is_none() {
            return Ok(rustix::net::send(&self.socket, part, flags)?);
        }
        let (policy, value) = match options.partial {
            None | Some(PartialReliability::Never) => (sys::ReliabilityPolicy::Never, 0),
            Some(PartialReliability::Lifetime(milliseconds)) => (sys::ReliabilityPolicy::Lifetime, milliseconds),
            Some(PartialReliability::Retransmissions(count)) => (sys::ReliabilityPolicy::Retransmissions, count),
            Some(PartialReliability::Priority(priority)) => (sys::ReliabilityPolicy::Priority, priority),
        };
        let control = sys::ControlMessages::new(options.stream.unwrap_or(0), options.unordered, policy, value);
        sockopt::send_with_control(self.socket.as_fd(), part, &control, size_of_val(&control), flags)
    }

    fn receive(&mut self, into: &mut [u8], message: &Message) -> io::Result<usize> {
        Ok(rustix::net::recv(&self.socket, into, receive_flags(message))?.0)
    }

    fn establish(&mut self) -> io::Result<()> {
        stream::check_connected(&self.socket)?;
        if let Some(cookie) = &mut self.cookie {
            cookie.send(&self.socket, SendFlags::DONTWAIT)?;
            self.cookie = None;
        }
        Ok(())
    }

    fn close(&mut self, mode: CloseMode) -> io::Result<()> {
        if mode == CloseMode::Acceptor {
            return Ok(());
        }
        match self.graceful_close.finish(&self.socket, stream::receive_raw) {
            // A non-blocking receive does not report the end of the association.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !sys::is_associated(self.socket.as_fd()) => {
                Ok(())
            }
            result => result,
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
    fn a_rejected_option_is_named() {
        let tcp = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let options = SctpEndpoint { max_burst: Some(8), ..SctpEndpoint::default() };
        let error = configure(&tcp, &options, false).expect_err("it is not SCTP");
        assert!(error.to_string().starts_with("sctp_max_burst_size: "), "{error}");
    }
}

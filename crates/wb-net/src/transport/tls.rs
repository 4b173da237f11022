//! TLS 1.3 over TCP, in this process or, from the end of the handshake on, in the kernel.
//!
//! Every connection is a full handshake, none is resumed, so that each costs the same; making a connection includes
//! it. The cipher is the first that rustls offers (AES-256-GCM) with X25519. What [`Transport::send`] takes is
//! encrypted at once; if the socket does not take all of it, the rest, of one call, stays here and goes first the
//! next time.

mod kernel;
mod records;

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    sync::Arc,
};

use rustix::net::{RecvFlags, SendFlags};
use rustls::{ClientConfig, ServerConfig};
use socket2::Socket;

use self::records::{Records, cut_short};
use super::{Intent, Interest, Known, Transport, Wait, certificate, stream};
use crate::language::Message;

pub(super) use kernel::require as require_kernel;

/// How connections of one end are made.
#[derive(Debug, Clone)]
pub(super) enum Role {
    /// By connecting.
    Opener(Arc<ClientConfig>),
    /// By accepting.
    Taker(Arc<ServerConfig>),
}

impl Role {
    /// Of a side that knows the other's certificate.
    pub(super) fn opener(fingerprint: certificate::Fingerprint, kernel: bool) -> io::Result<Self> {
        let mut config = certificate::connects(fingerprint)?;
        config.enable_secret_extraction = kernel;
        Ok(Self::Opener(Arc::new(config)))
    }

    /// Of a side that shows one.
    pub(super) fn taker(kernel: bool) -> io::Result<Self> {
        let mut config = certificate::identity()?.accepts()?;
        config.enable_secret_extraction = kernel;
        Ok(Self::Taker(Arc::new(config)))
    }
}

/// A connection.
pub(super) struct Tls {
    socket: Socket,
    carrier: Carrier,
    /// Whether the kernel takes over after the handshake.
    kernel: bool,
    connected: bool,
    made: bool,
    /// Whether we have said that we send no more.
    ended: bool,
    ending: stream::Ending,
}

/// Who encrypts.
enum Carrier {
    Here(Box<Records>),
    Kernel,
}

impl Tls {
    /// Over a socket that is connected, or about to be.
    pub(super) fn new(socket: Socket, role: &Role, kernel: bool) -> io::Result<Self> {
        let records = match role {
            Role::Opener(config) => Records::opener(config.clone())?,
            Role::Taker(config) => Records::taker(config.clone())?,
        };
        let carrier = Carrier::Here(Box::new(records));
        Ok(Self {
            socket,
            carrier,
            kernel,
            connected: false,
            made: false,
            ended: false,
            ending: stream::Ending::default(),
        })
    }

    /// Sends what is encrypted.
    fn push(&mut self, flags: SendFlags) -> io::Result<()> {
        let Carrier::Here(records) = &mut self.carrier else { return Ok(()) };
        while !records.outgoing.is_empty() {
            let sent = rustix::net::send(&self.socket, records.outgoing.filled(), flags | SendFlags::NOSIGNAL)?;
            records.outgoing.drop_front(sent);
        }
        Ok(())
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        loop {
            let Carrier::Here(records) = &mut self.carrier else { return Ok(()) };
            let done = match records.shake_hands() {
                Ok(done) => done,
                Err(error) => {
                    // The other side learns why, if it can be told at once.
                    let _: io::Result<()> = self.push(SendFlags::DONTWAIT);
                    return Err(error);
                }
            };
            self.push(SendFlags::DONTWAIT)?;
            if done {
                return Ok(());
            }
            let Carrier::Here(records) = &mut self.carrier else { return Ok(()) };
            // What follows the handshake is for the kernel.
            let limit = if self.kernel { records.left_of_record() } else { usize::MAX };
            let room = records.room();
            let length = room.len().min(limit);
            match rustix::net::recv(&self.socket, &mut room[..length], RecvFlags::DONTWAIT)?.0 {
                0 => return Err(cut_short()),
                count => records.came(count),
            }
        }
    }

    /// Gives the keys to the kernel.
    fn hand_over(&mut self) -> io::Result<()> {
        let Carrier::Here(records) = std::mem::replace(&mut self.carrier, Carrier::Kernel) else { return Ok(()) };
        let session = records.into_session();
        let session = session.ok_or_else(|| io::Error::other("bytes came before the kernel had the keys"))?;
        kernel::take_over(self.socket.as_fd(), session)
    }
}

impl Transport for Tls {
    fn send(&mut self, bytes: &[u8], how: &Message) -> io::Result<usize> {
        let flags = if how.non_blocking { SendFlags::DONTWAIT } else { SendFlags::empty() };
        if matches!(self.carrier, Carrier::Kernel) {
            return Ok(rustix::net::send(&self.socket, bytes, flags | SendFlags::NOSIGNAL)?);
        }
        self.push(flags)?;
        let Carrier::Here(records) = &mut self.carrier else { return Ok(0) };
        let taken = records.encrypt(bytes)?;
        match self.push(flags) {
            Err(error) if !is_not_yet(&error) => Err(error),
            _ => Ok(taken),
        }
    }

    fn receive(&mut self, into: &mut [u8], how: &Message) -> io::Result<usize> {
        if !self.made {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let (mut send, mut receive) = (SendFlags::empty(), RecvFlags::empty());
        if how.non_blocking {
            (send, receive) = (SendFlags::DONTWAIT, RecvFlags::DONTWAIT);
        }
        match self.push(send) {
            Err(error) if !is_not_yet(&error) => return Err(error),
            _ => {}
        }
        let Carrier::Here(records) = &mut self.carrier else { return kernel::receive(&self.socket, into, receive) };
        loop {
            let moved = records.decrypt(into)?;
            if moved > 0 || records.closed {
                return Ok(moved);
            }
            match rustix::net::recv(&self.socket, records.room(), receive)?.0 {
                0 => return Err(cut_short()),
                count => records.came(count),
            }
        }
    }

    /// Includes the handshake, and the kernel's taking over.
    fn establish(&mut self) -> io::Result<()> {
        if !self.connected {
            stream::connected(&self.socket)?;
            self.connected = true;
        }
        if !self.made {
            self.shake_hands()?;
            if self.kernel {
                self.hand_over()?;
            }
            self.made = true;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push(SendFlags::DONTWAIT)
    }

    fn tend(&mut self) -> bool {
        self.flush().is_err_and(|error| is_not_yet(&error))
    }

    fn send_file(&mut self, file: &File, offset: u64, length: usize, how: &Message) -> io::Result<usize> {
        match self.carrier {
            Carrier::Kernel => stream::send_file(&self.socket, file, offset, length),
            Carrier::Here(_) => self.send_part(file, offset, length, how),
        }
    }

    fn waits(&self, intent: Intent) -> Wait {
        let left = matches!(&self.carrier, Carrier::Here(records) if !records.outgoing.is_empty());
        let interest = match intent {
            _ if !self.connected => Interest::Writable,
            _ if !self.made && left => Interest::Writable,
            _ if !self.made => Interest::Readable,
            Intent::Send => Interest::Writable,
            Intent::Receive if left => Interest::Both,
            Intent::Receive => Interest::Readable,
        };
        Wait { fd: Some(self.socket.as_raw_fd()), interest, until: None }
    }

    fn close(&mut self, opener: bool) -> io::Result<()> {
        if !self.ended {
            match &mut self.carrier {
                Carrier::Here(records) => records.end()?,
                Carrier::Kernel => stream::unless_gone(kernel::end(self.socket.as_fd()))?,
            }
            self.ended = true;
        }
        stream::unless_gone(self.push(SendFlags::DONTWAIT))?;
        if !opener {
            return Ok(());
        }
        match self.carrier {
            Carrier::Here(_) => self.ending.wait(&self.socket, stream::receive_plain),
            Carrier::Kernel => {
                self.ending.wait(&self.socket, |socket, into| kernel::receive(socket, into, RecvFlags::empty()))
            }
        }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn known(&self) -> Known {
        Known::Tcp
    }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

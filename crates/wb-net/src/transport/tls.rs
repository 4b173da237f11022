//! TLS 1.3 over TCP, in this process or, after the handshake, in the kernel.
//!
//! Every connection performs a full handshake without resumption, so that each costs the same; establishing a
//! connection includes it. The cipher is rustls' first choice (AES-256-GCM) with X25519. [`Transport::send`] encrypts
//! immediately; if the socket does not accept everything, the rest, of at most one call, is buffered and sent first
//! next time.

mod ktls;
mod records;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use rustix::net::{RecvFlags, SendFlags};
use rustls::{ClientConfig, ServerConfig};
use socket2::Socket;

use self::records::{RecordLayer, truncated_error};
use super::{
    CloseMode, InfoKind, Intent, Interest, Transport, WaitCondition, certificate, cookie, receive_flags, send_flags,
    stream,
};
use wb_net_profile::Message;

pub(super) use ktls::check_support as require_kernel;

#[derive(Debug, Clone)]
pub(super) enum TlsConfig {
    Connector(Arc<ClientConfig>),
    Acceptor(Arc<ServerConfig>),
}

impl TlsConfig {
    pub(super) fn connector(fingerprint: certificate::CertificateFingerprint, kernel: bool) -> io::Result<Self> {
        let mut config = certificate::client_config(fingerprint)?;
        config.enable_secret_extraction = kernel;
        Ok(Self::Connector(Arc::new(config)))
    }

    pub(super) fn acceptor(kernel: bool) -> io::Result<Self> {
        let mut config = certificate::server_certificate()?.server_config()?;
        config.enable_secret_extraction = kernel;
        Ok(Self::Acceptor(Arc::new(config)))
    }
}

pub(super) struct Tls {
    socket: Socket,
    encryption: Encryption,
    /// Whether the kernel takes over after the handshake (kTLS).
    kernel: bool,
    connected: bool,
    handshake_done: bool,
    close_notify_sent: bool,
    graceful_close: stream::GracefulClose,
}

enum Encryption {
    Userspace(Box<RecordLayer>),
    Kernel,
}

impl Tls {
    /// Creates a connection over a connected or connecting socket. The connecting side's cookie precedes the handshake.
    pub(super) fn new(
        socket: Socket,
        role: &TlsConfig,
        kernel: bool,
        cookie: Option<[u8; cookie::LENGTH]>,
    ) -> io::Result<Self> {
        let mut records = match role {
            TlsConfig::Connector(config) => RecordLayer::connector(config.clone())?,
            TlsConfig::Acceptor(config) => RecordLayer::acceptor(config.clone())?,
        };
        if let Some(cookie) = cookie {
            records.outgoing.append(&cookie);
        }
        let encryption = Encryption::Userspace(Box::new(records));
        Ok(Self {
            socket,
            encryption,
            kernel,
            connected: false,
            handshake_done: false,
            close_notify_sent: false,
            graceful_close: stream::GracefulClose::default(),
        })
    }

    fn send_records(&mut self, flags: SendFlags) -> io::Result<()> {
        let Encryption::Userspace(records) = &mut self.encryption else { return Ok(()) };
        while !records.outgoing.is_empty() {
            let sent = rustix::net::send(&self.socket, records.outgoing.as_slice(), flags | SendFlags::NOSIGNAL)?;
            records.outgoing.consume(sent);
        }
        Ok(())
    }

    fn handshake(&mut self) -> io::Result<()> {
        loop {
            let Encryption::Userspace(records) = &mut self.encryption else { return Ok(()) };
            let done = match records.handshake() {
                Ok(done) => done,
                Err(error) => {
                    // Sends the alert, if that is possible without waiting.
                    let _: io::Result<()> = self.send_records(SendFlags::DONTWAIT);
                    return Err(error);
                }
            };
            self.send_records(SendFlags::DONTWAIT)?;
            if done {
                return Ok(());
            }
            let Encryption::Userspace(records) = &mut self.encryption else { return Ok(()) };
            // The kernel must receive everything after the handshake.
            let limit = if self.kernel { records.remaining_in_record() } else { usize::MAX };
            let room = records.receive_buffer();
            let length = room.len().min(limit);
            match rustix::net::recv(&self.socket, &mut room[..length], RecvFlags::DONTWAIT)?.0 {
                0 => return Err(truncated_error()),
                count => records.commit_received(count),
            }
        }
    }

    fn offload_to_kernel(&mut self) -> io::Result<()> {
        let Encryption::Userspace(records) = std::mem::replace(&mut self.encryption, Encryption::Kernel) else {
            return Ok(());
        };
        let session = records.into_session();
        let session =
            session.ok_or_else(|| io::Error::other("data arrived before the keys were installed in the kernel"))?;
        ktls::offload(self.socket.as_fd(), session)
    }
}

impl Transport for Tls {
    fn send(&mut self, bytes: &[u8], message: &Message) -> io::Result<usize> {
        let flags = send_flags(message);
        if matches!(self.encryption, Encryption::Kernel) {
            return Ok(rustix::net::send(&self.socket, bytes, flags)?);
        }
        self.send_records(flags)?;
        let Encryption::Userspace(records) = &mut self.encryption else { return Ok(0) };
        let accepted = records.encrypt(bytes)?;
        match self.send_records(flags) {
            Err(error) if !would_block(&error) => Err(error),
            _ => Ok(accepted),
        }
    }

    fn receive(&mut self, into: &mut [u8], message: &Message) -> io::Result<usize> {
        if !self.handshake_done {
            return Err(io::ErrorKind::NotConnected.into());
        }
        match self.send_records(send_flags(message)) {
            Err(error) if !would_block(&error) => return Err(error),
            _ => {}
        }
        let Encryption::Userspace(records) = &mut self.encryption else {
            return ktls::receive(&self.socket, into, receive_flags(message));
        };
        loop {
            let moved = records.decrypt(into)?;
            if moved > 0 || records.closed {
                return Ok(moved);
            }
            match rustix::net::recv(&self.socket, records.receive_buffer(), receive_flags(message))?.0 {
                0 => return Err(truncated_error()),
                count => records.commit_received(count),
            }
        }
    }

    /// Includes the handshake, and the installation of keys in the kernel.
    fn establish(&mut self) -> io::Result<()> {
        if !self.connected {
            stream::check_connected(&self.socket)?;
            self.connected = true;
        }
        if !self.handshake_done {
            self.handshake()?;
            if self.kernel {
                self.offload_to_kernel()?;
            }
            self.handshake_done = true;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_records(SendFlags::DONTWAIT)
    }

    fn maintain(&mut self) -> bool {
        self.flush().is_err_and(|error| would_block(&error))
    }

    fn send_file(&mut self, file: &File, offset: u64, length: usize, message: &Message) -> io::Result<usize> {
        match self.encryption {
            Encryption::Kernel => stream::send_file(&self.socket, file, offset, length),
            Encryption::Userspace(_) => self.send_file_by_copy(file, offset, length, message),
        }
    }

    fn wait_condition(&self, intent: Intent) -> WaitCondition {
        let unsent = matches!(&self.encryption, Encryption::Userspace(records) if !records.outgoing.is_empty());
        let interest = match intent {
            _ if !self.connected => Interest::Writable,
            _ if !self.handshake_done && unsent => Interest::Writable,
            _ if !self.handshake_done => Interest::Readable,
            Intent::Send => Interest::Writable,
            Intent::Receive if unsent => Interest::Both,
            Intent::Receive => Interest::Readable,
        };
        WaitCondition { fd: Some(self.socket.as_raw_fd()), interest, until: None }
    }

    /// Both sides wait for the other's end: each has sent alerts or session tickets that nobody reads, and a connection
    /// that is closed before they arrived is reset.
    fn close(&mut self, _: CloseMode) -> io::Result<()> {
        if !self.close_notify_sent {
            match &mut self.encryption {
                Encryption::Userspace(records) => records.queue_close_notify()?,
                Encryption::Kernel => stream::ignore_disconnect(ktls::send_close_notify(self.socket.as_fd()))?,
            }
            self.close_notify_sent = true;
        }
        stream::ignore_disconnect(self.send_records(SendFlags::DONTWAIT))?;
        match self.encryption {
            Encryption::Userspace(_) => self.graceful_close.finish(&self.socket, stream::receive_raw),
            Encryption::Kernel => {
                self.graceful_close.finish(&self.socket, |socket, into| ktls::receive(socket, into, RecvFlags::empty()))
            }
        }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn info_kind(&self) -> InfoKind {
        InfoKind::Tcp
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

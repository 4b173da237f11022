//! Handing over accepted connections from the process that owns a port to the process whose strand they belong to:
//! a UNIX socket carries lines of JSON, and with the line of a connection its descriptor (SCM_RIGHTS, unix(7)).

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::cookie::LinkKey;
use super::descriptors::receive_with_descriptors;
use super::listener::{AcceptedConnection, lock};

/// A verified connection whose descriptor accompanies its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    pub(super) session: u64,
    pub(super) link: LinkKey,
    /// Its number among the connections that the other side opened.
    pub(super) ordinal: u32,
}

#[derive(Debug, Serialize, Deserialize)]
enum Line<T> {
    /// Has no descriptor.
    Command(T),
    Connection(HandedOver),
}

/// What arrived.
#[derive(Debug)]
pub enum Handover<T> {
    Command(T),
    Connection(HandedOver, OwnedFd),
}

/// The sending end, which threads may share.
#[derive(Debug, Clone)]
pub struct HandoverSender(Arc<Mutex<UnixStream>>);

impl HandoverSender {
    pub fn new(socket: UnixStream) -> Self {
        Self(Arc::new(Mutex::new(socket)))
    }

    /// Sends a command; fails if the other process has ended.
    pub fn send(&self, command: &impl Serialize) -> io::Result<()> {
        self.send_line(&Line::Command(command), None)
    }

    /// Hands over a connection; this process's descriptor is closed.
    pub(super) fn hand_over(&self, handed: HandedOver, connection: &AcceptedConnection) -> io::Result<()> {
        self.send_line(&Line::<()>::Connection(handed), Some(connection.socket.as_fd()))
    }

    fn send_line(&self, line: &Line<impl Serialize>, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        let socket = lock(&self.0);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match sendmsg(&*socket, &[IoSlice::new(rest)], &mut ancillary, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    // The descriptor went with the first bytes.
                    ancillary.clear();
                    rest = &rest[sent..];
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
pub struct HandoverReceiver<S> {
    socket: S,
    bytes: VecDeque<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl<S: AsFd> HandoverReceiver<S> {
    pub fn new(socket: S) -> Self {
        Self { socket, bytes: VecDeque::new(), descriptors: VecDeque::new() }
    }

    /// The next line; `None` once the other process has closed the socket. Fails if it is not of this protocol.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<Handover<T>>> {
        let mut searched = 0;
        let length = loop {
            match self.bytes.range(searched..).position(|&byte| byte == b'\n') {
                Some(found) => break searched + found,
                None => searched = self.bytes.len(),
            }
            if !self.receive_bytes()? {
                return Ok(None);
            }
        };
        let line: Vec<u8> = self.bytes.drain(..=length).collect();
        Ok(Some(match serde_json::from_slice(&line)? {
            Line::Command(command) => Handover::Command(command),
            Line::Connection(handed) => {
                let missing = || io::Error::new(ErrorKind::InvalidData, "a connection without its descriptor");
                Handover::Connection(handed, self.descriptors.pop_front().ok_or_else(missing)?)
            }
        }))
    }

    fn receive_bytes(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 1 << 16];
        let (received, descriptors) = receive_with_descriptors(&self.socket, &mut chunk)?;
        self.descriptors.extend(descriptors);
        self.bytes.extend(&chunk[..received]);
        Ok(received > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_arrive_with_their_descriptors_among_commands() {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        let sender = HandoverSender::new(near);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let long = "x".repeat(200_000);
        let thread = std::thread::spawn(move || {
            let mut clients = Vec::new();
            for ordinal in 0..3 {
                clients.push(TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens"));
                let socket = listener.accept().expect("a connection").0.into();
                let link = LinkKey { group: 0, flowop: 1, strand: 2 };
                let handed = HandedOver { session: u64::MAX, link, ordinal };
                sender.hand_over(handed, &AcceptedConnection { socket, ordinal }).expect("sent");
                sender.send(&long).expect("sent");
            }
            clients
        });
        let mut receiver = HandoverReceiver::new(far);
        let mut servers = Vec::new();
        for expected in 0..3 {
            let Ok(Some(Handover::Connection(handed, descriptor))) = receiver.receive::<String>() else {
                panic!("no connection")
            };
            assert_eq!((handed.session, handed.ordinal), (u64::MAX, expected));
            servers.push(TcpStream::from(descriptor));
            let Ok(Some(Handover::Command(text))) = receiver.receive::<String>() else { panic!("no command") };
            assert_eq!(text.len(), 200_000);
        }
        let mut clients = thread.join().expect("sent all");
        assert!(receiver.receive::<String>().expect("the end").is_none());
        for (index, (client, server)) in clients.iter_mut().zip(&mut servers).enumerate() {
            client.write_all(&[index as u8]).expect("open");
            let mut byte = [9];
            server.read_exact(&mut byte).expect("open");
            assert_eq!(byte, [index as u8]);
        }
    }

    #[test]
    fn a_connection_without_a_descriptor_is_an_error() {
        let (mut near, far) = UnixStream::pair().expect("a pair of sockets");
        let line = r#"{"Connection":{"session":1,"link":{"group":0,"flowop":0,"strand":0},"ordinal":1}}"#;
        writeln!(near, "{line}").expect("open");
        let error = HandoverReceiver::new(far).receive::<String>().expect_err("nothing came with it");
        assert_eq!(error.to_string(), "a connection without its descriptor");
    }
}

//! The channel: messages both ways with a peer that has proven itself.

use std::net::SocketAddr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use super::error::ControlError;
use super::fingerprint::Fingerprint;
use super::frame::{FrameError, FrameReader, FrameWriter};
use super::hello::ControlHello;

/// Frames over TLS, whoever is at the other end
#[derive(Debug)]
pub(super) struct FramedTls<S> {
    stream: TlsStream<S>,
    reader: FrameReader,
    writer: FrameWriter,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FramedTls<S> {
    pub(super) fn new(stream: TlsStream<S>, most: usize) -> Self {
        Self { stream, reader: FrameReader::new(most), writer: FrameWriter::new(most) }
    }

    pub(super) async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), FrameError> {
        self.writer.write(&mut self.stream, message).await
    }

    pub(super) async fn recv<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        self.reader.read(&mut self.stream).await
    }

    /// A message where one is due
    pub(super) async fn expect<T: DeserializeOwned>(&mut self) -> Result<T, FrameError> {
        self.recv().await?.ok_or(FrameError::Closed)
    }

    pub(super) async fn close(&mut self) -> Result<(), FrameError> {
        self.writer.flush(&mut self.stream).await?;
        self.stream.shutdown().await.map_err(FrameError::from_io)
    }

    fn set_max_length(&mut self, most: usize) {
        self.reader.set_max_length(most);
        self.writer.set_max_length(most);
    }
}

/// The two ends of a channel and who is at the other one
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelInfo {
    /// Our address
    pub local: SocketAddr,
    /// The peer's address
    pub peer: SocketAddr,
    /// The fingerprint of the peer's key, which it holds for certain
    pub key: Fingerprint,
    /// What the peer says of itself
    pub hello: ControlHello,
}

/// An encrypted connection to a peer that is trusted and trusts us, as messages
#[derive(Debug)]
pub struct Channel<S = TcpStream> {
    frames: FramedTls<S>,
    info: ChannelInfo,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Channel<S> {
    pub(super) fn new(mut frames: FramedTls<S>, info: ChannelInfo, most: usize) -> Self {
        frames.set_max_length(most);
        Self { frames, info }
    }

    /// Send a message; cancelled, what is left of it goes out before the next
    pub async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), ControlError> {
        self.frames.send(message).await.map_err(|error| ControlError::connection_lost(self.info.peer, error))
    }

    /// The next message, or `None` once the peer has closed its end; safe to cancel
    ///
    /// A peer that vanishes without closing is an error: nobody can cut a conversation short unseen.
    pub async fn recv<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ControlError> {
        self.frames.recv().await.map_err(|error| ControlError::connection_lost(self.info.peer, error))
    }

    /// Tell the peer that nothing more comes
    pub async fn close(mut self) -> Result<(), ControlError> {
        self.frames.close().await.map_err(|error| ControlError::connection_lost(self.info.peer, error))
    }

    /// Halves that can live in different tasks
    pub fn split(self) -> (ChannelSender<S>, ChannelReceiver<S>) {
        let (read, write) = tokio::io::split(self.frames.stream);
        let peer = self.info.peer;
        (
            ChannelSender { half: write, writer: self.frames.writer, peer },
            ChannelReceiver { half: read, reader: self.frames.reader, peer },
        )
    }
}

impl<S> Channel<S> {
    /// Our address
    pub fn local_addr(&self) -> SocketAddr {
        self.info.local
    }

    /// The peer's address
    pub fn peer_addr(&self) -> SocketAddr {
        self.info.peer
    }

    /// Both ends, and who is at the other one
    pub fn info(&self) -> &ChannelInfo {
        &self.info
    }
}

/// The sending half of a channel
#[derive(Debug)]
pub struct ChannelSender<S = TcpStream> {
    half: WriteHalf<TlsStream<S>>,
    writer: FrameWriter,
    peer: SocketAddr,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ChannelSender<S> {
    /// Send a message; cancelled, what is left of it goes out before the next
    pub async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), ControlError> {
        let sent = self.writer.write(&mut self.half, message).await;
        sent.map_err(|error| ControlError::connection_lost(self.peer, error))
    }

    /// Tell the peer that nothing more comes; the other half goes on receiving
    pub async fn close(mut self) -> Result<(), ControlError> {
        let lost = |error| ControlError::connection_lost(self.peer, error);
        self.writer.flush(&mut self.half).await.map_err(lost)?;
        self.half.shutdown().await.map_err(|error| lost(FrameError::from_io(error)))
    }
}

/// The receiving half of a channel
#[derive(Debug)]
pub struct ChannelReceiver<S = TcpStream> {
    half: ReadHalf<TlsStream<S>>,
    reader: FrameReader,
    peer: SocketAddr,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ChannelReceiver<S> {
    /// The next message, or `None` once the peer has closed its end; safe to cancel
    pub async fn recv<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ControlError> {
        let received = self.reader.read(&mut self.half).await;
        received.map_err(|error| ControlError::connection_lost(self.peer, error))
    }
}

//! The channel: messages in both directions with an authenticated peer.

use std::net::SocketAddr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio_rustls::TlsStream;

use super::error::ControlError;
use super::fingerprint::Fingerprint;
use super::foreign_peer::RecordedStream;
use super::frame::{FrameError, FrameReader, FrameWriter};
use super::hello::ControlHello;

/// Frames over TLS, before or after the peer is authenticated
#[derive(Debug)]
pub(super) struct FramedTls {
    stream: TlsStream<RecordedStream>,
    reader: FrameReader,
    writer: FrameWriter,
}

impl FramedTls {
    pub(super) fn new(stream: TlsStream<RecordedStream>, max_length: usize) -> Self {
        Self { stream, reader: FrameReader::new(max_length), writer: FrameWriter::new(max_length) }
    }

    pub(super) async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), FrameError> {
        self.writer.write(&mut self.stream, message).await
    }

    pub(super) async fn recv<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        self.reader.read(&mut self.stream).await
    }

    /// Receives a message; the end of the stream is an error
    pub(super) async fn expect<T: DeserializeOwned>(&mut self) -> Result<T, FrameError> {
        self.recv().await?.ok_or(FrameError::Closed)
    }

    pub(super) async fn close(&mut self) -> Result<(), FrameError> {
        self.writer.flush(&mut self.stream).await?;
        self.stream.shutdown().await.map_err(FrameError::from_io)
    }

    fn set_max_length(&mut self, max_length: usize) {
        self.reader.set_max_length(max_length);
        self.writer.set_max_length(max_length);
    }
}

/// Both ends of a channel, and the peer's key and versions
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelInfo {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// The handshake proved that the peer holds this key
    pub key: Fingerprint,
    pub hello: ControlHello,
}

/// A message channel over an encrypted connection to a mutually authenticated peer
#[derive(Debug)]
pub struct Channel {
    frames: FramedTls,
    info: ChannelInfo,
}

impl Channel {
    pub(super) fn new(mut frames: FramedTls, info: ChannelInfo, max_length: usize) -> Self {
        frames.set_max_length(max_length);
        Self { frames, info }
    }

    /// Sends a message; if cancelled, the rest of it is sent before the next one
    pub async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), ControlError> {
        self.frames.send(message).await.map_err(|error| ControlError::connection_lost(self.info.peer, error))
    }

    /// Receives the next message, or `None` once the peer has closed its end; safe to cancel. A peer that vanishes
    /// without closing is an error: an attacker cannot truncate the conversation unnoticed.
    pub async fn recv<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ControlError> {
        self.frames.recv().await.map_err(|error| ControlError::connection_lost(self.info.peer, error))
    }

    /// Closes the sending direction, so that the peer sees the end of the stream
    pub async fn close(mut self) -> Result<(), ControlError> {
        self.frames.close().await.map_err(|error| ControlError::connection_lost(self.info.peer, error))
    }

    pub fn split(self) -> (ChannelSender, ChannelReceiver) {
        let (read, write) = tokio::io::split(self.frames.stream);
        let peer = self.info.peer;
        (
            ChannelSender { half: write, writer: self.frames.writer, peer },
            ChannelReceiver { half: read, reader: self.frames.reader, peer },
        )
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.info.local
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.info.peer
    }

    pub fn info(&self) -> &ChannelInfo {
        &self.info
    }
}

#[derive(Debug)]
pub struct ChannelSender {
    half: WriteHalf<TlsStream<RecordedStream>>,
    writer: FrameWriter,
    peer: SocketAddr,
}

impl ChannelSender {
    /// Like [`Channel::send`]
    pub async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), ControlError> {
        let sent = self.writer.write(&mut self.half, message).await;
        sent.map_err(|error| ControlError::connection_lost(self.peer, error))
    }

    /// Closes the sending direction; the other half continues to receive
    pub async fn close(mut self) -> Result<(), ControlError> {
        let lost = |error| ControlError::connection_lost(self.peer, error);
        self.writer.flush(&mut self.half).await.map_err(lost)?;
        self.half.shutdown().await.map_err(|error| lost(FrameError::from_io(error)))
    }
}

#[derive(Debug)]
pub struct ChannelReceiver {
    half: ReadHalf<TlsStream<RecordedStream>>,
    reader: FrameReader,
    peer: SocketAddr,
}

impl ChannelReceiver {
    /// Like [`Channel::recv`]
    pub async fn recv<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ControlError> {
        let received = self.reader.read(&mut self.half).await;
        received.map_err(|error| ControlError::connection_lost(self.peer, error))
    }
}

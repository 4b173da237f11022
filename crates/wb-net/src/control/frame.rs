//! Frames: a length of four bytes in big-endian order, then that many bytes of JSON.
//!
//! Input is hostile until the peer is authenticated: a length beyond the limit is rejected before any of its bytes are
//! read, and memory grows with the bytes that have arrived, never with the announced length.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::display::excerpt;

const HEADER: usize = 4;
/// Bytes that a reader requests at once until more than that has arrived
const READ_CHUNK: usize = 16 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("message too long: {length} bytes, expected at most {max_length} bytes")]
    TooLong {
        /// Bytes, as announced by the peer or as serialized by the sender
        length: usize,
        max_length: usize,
    },
    #[error("connection closed inside a message, after {arrived} bytes of it")]
    Truncated {
        /// Bytes of the frame that arrived, including its length
        arrived: usize,
    },
    #[error("message starting with {start} is not JSON: {reason}")]
    NotJson {
        /// The start of the frame, escaped
        start: String,
        reason: String,
    },
    /// A frame contains JSON, but not of the expected message
    #[error("unexpected message: {reason}")]
    Unexpected { reason: String },
    #[error("cannot serialize message as JSON: {reason}")]
    Unserializable { reason: String },
    /// The connection was lost, or closed where a message was expected
    #[error("connection closed: the peer exited or the network failed")]
    Closed,
    #[error("connection failed: {0}")]
    Io(io::Error),
}

impl FrameError {
    /// Converts an I/O error; a peer that vanishes counts as a closed connection
    pub(super) fn from_io(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// Reads frames; a partly received frame survives the cancellation of a read
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    max_length: usize,
}

impl FrameReader {
    /// A reader of frames of at most `max_length` bytes
    pub fn new(max_length: usize) -> Self {
        Self { buffer: Vec::new(), max_length }
    }

    pub fn set_max_length(&mut self, max_length: usize) {
        self.max_length = max_length;
    }

    /// Reads the message of the next frame, or `None` when the stream ends between two frames
    ///
    /// Safe to cancel: the next call continues where a cancelled one stopped. It must read from the same stream.
    pub async fn read<R, T>(&mut self, from: &mut R) -> Result<Option<T>, FrameError>
    where
        R: AsyncRead + Unpin,
        T: DeserializeOwned,
    {
        loop {
            let missing = self.missing_bytes()?;
            if missing == 0 {
                break;
            }
            // At most twice what has arrived: a sender cannot make us allocate more than it sends.
            let chunk = missing.min(self.buffer.len().max(READ_CHUNK));
            self.buffer.reserve_exact(chunk);
            if (&mut *from).take(chunk as u64).read_buf(&mut self.buffer).await.map_err(FrameError::from_io)? == 0 {
                return match self.buffer.len() {
                    0 => Ok(None),
                    arrived => Err(FrameError::Truncated { arrived }),
                };
            }
        }
        // Also frees the memory of a long frame.
        let frame = std::mem::take(&mut self.buffer);
        decode(&frame[HEADER..]).map(Some)
    }

    /// Bytes to read before the next step: the rest of the length, then the rest of the body
    fn missing_bytes(&self) -> Result<usize, FrameError> {
        let Some(header) = self.buffer.first_chunk::<HEADER>() else { return Ok(HEADER - self.buffer.len()) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > self.max_length {
            return Err(FrameError::TooLong { length, max_length: self.max_length });
        }
        Ok(HEADER + length - self.buffer.len())
    }

    #[cfg(test)]
    pub(super) fn allocated(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Writes frames; a partly sent frame survives the cancellation of a write
#[derive(Debug)]
pub struct FrameWriter {
    buffer: Vec<u8>,
    sent: usize,
    max_length: usize,
}

impl FrameWriter {
    /// A writer of frames of at most `max_length` bytes
    pub fn new(max_length: usize) -> Self {
        Self { buffer: Vec::new(), sent: 0, max_length }
    }

    pub fn set_max_length(&mut self, max_length: usize) {
        self.max_length = max_length;
    }

    /// Sends a message and flushes the stream; the rest of a cancelled frame is sent before the next one
    pub async fn write<W, T>(&mut self, to: &mut W, message: &T) -> Result<(), FrameError>
    where
        W: AsyncWrite + Unpin,
        T: Serialize + ?Sized,
    {
        self.enqueue(message)?;
        self.flush(to).await
    }

    /// Sends what a cancelled write left in the buffer, and flushes the stream
    pub async fn flush<W: AsyncWrite + Unpin>(&mut self, to: &mut W) -> Result<(), FrameError> {
        while self.sent < self.buffer.len() {
            match to.write(&self.buffer[self.sent..]).await.map_err(FrameError::from_io)? {
                0 => return Err(FrameError::Closed),
                sent => self.sent += sent,
            }
        }
        self.buffer = Vec::new();
        self.sent = 0;
        to.flush().await.map_err(FrameError::from_io)
    }

    fn enqueue<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), FrameError> {
        let body =
            serde_json::to_vec(message).map_err(|error| FrameError::Unserializable { reason: error.to_string() })?;
        let header = u32::try_from(body.len()).ok().filter(|_| body.len() <= self.max_length);
        let header = header.ok_or(FrameError::TooLong { length: body.len(), max_length: self.max_length })?;
        self.buffer.extend_from_slice(&header.to_be_bytes());
        self.buffer.extend_from_slice(&body);
        Ok(())
    }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|error| {
        // The parser's message can quote the peer's input, at any length.
        let reason = excerpt(&error.to_string());
        match error.classify() {
            serde_json::error::Category::Data => FrameError::Unexpected { reason },
            _ => FrameError::NotJson { start: format!("`{}`", excerpt(&String::from_utf8_lossy(body))), reason },
        }
    })
}

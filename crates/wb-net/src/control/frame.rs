//! Frames: four bytes of length, most significant first, then that many bytes of JSON.
//!
//! What arrives is hostile until proven otherwise: a length beyond the limit is refused before any of its bytes are
//! read, and memory grows with what has arrived, never with what was announced.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::display::excerpt;

const HEADER: usize = 4;
/// What a reader asks for at once until more than that has arrived
const READ_CHUNK: usize = 16 * 1024;

/// Why a frame was not read or written
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// A frame is longer than is allowed here
    #[error("a message of {length} bytes is longer than the {most} bytes allowed")]
    TooLong {
        /// Bytes of the message, as announced by the peer or as wanted by the sender
        length: usize,
        /// Bytes allowed
        most: usize,
    },
    /// The stream ended inside a frame
    #[error("the connection ended inside a message, after {arrived} bytes of it")]
    Truncated {
        /// Bytes of the frame that arrived, its length included
        arrived: usize,
    },
    /// A frame holds no JSON
    #[error("a message that starts with {start} is not JSON: {reason}")]
    NotJson {
        /// How the frame starts, escaped
        start: String,
        /// What the parser says
        reason: String,
    },
    /// A frame holds JSON, but not the message that belongs here
    #[error("a message is not one that belongs here: {reason}")]
    Unexpected {
        /// What does not fit
        reason: String,
    },
    /// What is to be sent has no JSON form
    #[error("a message cannot be written as JSON: {reason}")]
    Unserializable {
        /// What has none
        reason: String,
    },
    /// The connection broke off, or ended where a message was due
    #[error("the connection broke off: the other side ended or the network between was cut")]
    Closed,
    /// The stream failed in another way
    #[error("the connection broke: {0}")]
    Io(io::Error),
}

impl FrameError {
    /// A peer that vanishes is not a failure of the stream
    pub(super) fn from_io(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// Reads frames, and keeps what has arrived of one when its reading is cancelled
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    max_length: usize,
}

impl FrameReader {
    /// A reader of frames of at most `most` bytes
    pub fn new(max_length: usize) -> Self {
        Self { buffer: Vec::new(), max_length }
    }

    /// Allow frames of at most `most` bytes from now on
    pub fn set_max_length(&mut self, most: usize) {
        self.max_length = most;
    }

    /// The next frame's message, or `None` when the stream ends between two frames
    ///
    /// Safe to cancel: the next call goes on where a cancelled one stopped. It must read from the same stream.
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
            // Twice what has arrived at most: a sender pays for our memory with bytes of its own.
            let piece = missing.min(self.buffer.len().max(READ_CHUNK));
            self.buffer.reserve_exact(piece);
            if (&mut *from).take(piece as u64).read_buf(&mut self.buffer).await.map_err(FrameError::from_io)? == 0 {
                return match self.buffer.len() {
                    0 => Ok(None),
                    arrived => Err(FrameError::Truncated { arrived }),
                };
            }
        }
        // The memory of a long frame goes with it.
        let frame = std::mem::take(&mut self.buffer);
        decode(&frame[HEADER..]).map(Some)
    }

    /// Bytes to read before anything can be decided: the rest of the length, then the rest of the body
    fn missing_bytes(&self) -> Result<usize, FrameError> {
        let Some(header) = self.buffer.first_chunk::<HEADER>() else { return Ok(HEADER - self.buffer.len()) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > self.max_length {
            return Err(FrameError::TooLong { length, most: self.max_length });
        }
        Ok(HEADER + length - self.buffer.len())
    }

    #[cfg(test)]
    pub(super) fn allocated(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Writes frames, and keeps what was not sent of one when its writing is cancelled
#[derive(Debug)]
pub struct FrameWriter {
    buffer: Vec<u8>,
    sent: usize,
    max_length: usize,
}

impl FrameWriter {
    /// A writer of frames of at most `most` bytes
    pub fn new(max_length: usize) -> Self {
        Self { buffer: Vec::new(), sent: 0, max_length }
    }

    /// Allow frames of at most `most` bytes from now on
    pub fn set_max_length(&mut self, most: usize) {
        self.max_length = most;
    }

    /// Send a message and flush the stream
    ///
    /// Cancelling it tears no frame: what is left of it goes out before the next one.
    pub async fn write<W, T>(&mut self, to: &mut W, message: &T) -> Result<(), FrameError>
    where
        W: AsyncWrite + Unpin,
        T: Serialize + ?Sized,
    {
        self.enqueue(message)?;
        self.flush(to).await
    }

    /// Send what a cancelled write left behind, and flush the stream
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
        let header = header.ok_or(FrameError::TooLong { length: body.len(), most: self.max_length })?;
        self.buffer.extend_from_slice(&header.to_be_bytes());
        self.buffer.extend_from_slice(&body);
        Ok(())
    }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|error| {
        // The parser's words can repeat the peer's, at any length.
        let reason = excerpt(&error.to_string());
        match error.classify() {
            serde_json::error::Category::Data => FrameError::Unexpected { reason },
            _ => FrameError::NotJson { start: format!("`{}`", excerpt(&String::from_utf8_lossy(body))), reason },
        }
    })
}

//! What a process writes: read from its pipe as it comes, and kept in memory that belongs to no filesystem, or hashed.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};
use sha2::{Digest, Sha256 as Hasher};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;
use wb_model::Sha256;

use super::files::{CHUNK, read_at_most};
use crate::protocol::{Capture, CapturedOutput, OutputDigest};

/// What is read at once, in bytes: what a pipe holds.
const READ_BUFFER_SIZE: usize = 64 << 10;
/// How much is kept of the end of what is hashed, in bytes: the last words of a process that failed.
const TAIL_SIZE: usize = 16 << 10;

/// One stream of one process.
pub(super) struct Output {
    /// None where the process writes to `/dev/null`.
    pipe: Option<Receiver>,
    content: RefCell<Content>,
    length: Cell<u64>,
    open: Cell<bool>,
    exceeded: Cell<bool>,
    pub(super) changed: Notify,
    buffer: RefCell<Vec<u8>>,
}

/// What there is of the bytes that were written.
enum Content {
    /// All of them, up to a limit.
    Kept { memory: File, limit: u64 },
    /// Their hash, and at least the last of them.
    Hashed { hasher: Hasher, end: Vec<u8> },
    /// None.
    Discarded,
}

impl Output {
    /// A stream that is captured so, of which `limit` bytes are kept; and the end that the process writes to.
    pub(super) fn new(capture: Capture, limit: u64) -> io::Result<(Self, OwnedFd)> {
        let content = match capture {
            Capture::Keep => Content::Kept { memory: create_memfd()?, limit },
            Capture::Hash => Content::Hashed { hasher: Hasher::new(), end: Vec::new() },
            Capture::Discard => Content::Discarded,
        };
        let (pipe, end) = match content {
            Content::Discarded => (None, File::options().write(true).open("/dev/null")?.into()),
            Content::Kept { .. } | Content::Hashed { .. } => {
                let (pipe, end) = pipe_with(PipeFlags::CLOEXEC)?;
                (Some(Receiver::from_owned_fd(pipe)?), end)
            }
        };
        let output = Self {
            open: Cell::new(pipe.is_some()),
            pipe,
            content: RefCell::new(content),
            length: Cell::new(0),
            exceeded: Cell::new(false),
            changed: Notify::new(),
            buffer: RefCell::new(vec![0; READ_BUFFER_SIZE]),
        };
        Ok((output, end))
    }

    /// Takes what comes until the last writer is gone, or more came than the limit; whether it did.
    pub(super) async fn pump(&self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        while self.open.get() && !self.exceeded.get() && pipe.readable().await.is_ok() {
            self.read_available(|buffer| pipe.try_read(buffer));
            // A process that never stops writing must not keep us from all else.
            tokio::task::yield_now().await;
        }
        self.exceeded.get()
    }

    /// Takes what is there now, whether the runtime knows of it yet or not; false when there may be more.
    pub(super) fn drain(&self) -> bool {
        self.pipe.as_ref().is_none_or(|pipe| self.read_available(|buffer| Ok(rustix::io::read(pipe, buffer)?)))
    }

    /// Reads until nothing is there, but not for ever; false when there may be more.
    fn read_available(&self, read: impl Fn(&mut [u8]) -> io::Result<usize>) -> bool {
        let mut buffer = self.buffer.borrow_mut();
        for _ in 0..16 {
            match read(&mut buffer) {
                Ok(0) => {
                    self.open.set(false);
                    self.changed.notify_waiters();
                    return true;
                }
                Ok(length) => self.add(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        false
    }

    /// Whether more was written than is kept.
    pub(super) fn has_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    /// Whether someone may still write.
    pub(super) fn is_open(&self) -> bool {
        self.open.get()
    }

    /// How much was taken, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length.get()
    }

    /// A part of what is kept; nothing of what is hashed.
    pub(super) fn chunk_at(&self, offset: u64) -> Vec<u8> {
        let Content::Kept { memory, .. } = &*self.content.borrow() else { return Vec::new() };
        let there = self.length.get().saturating_sub(offset);
        read_at_most(memory, offset, CHUNK.min(usize::try_from(there).unwrap_or(CHUNK))).unwrap_or_default()
    }

    /// What became of it, and the end of what was hashed.
    pub(super) fn capture_result(&self) -> (CapturedOutput, Vec<u8>) {
        match &*self.content.borrow() {
            Content::Kept { .. } => (CapturedOutput::Kept, Vec::new()),
            Content::Hashed { hasher, end } => {
                let digest = OutputDigest { bytes: self.length.get(), sha256: Sha256::from_hasher(hasher.clone()) };
                (CapturedOutput::Hashed(digest), end[end.len().saturating_sub(TAIL_SIZE)..].to_vec())
            }
            Content::Discarded => (CapturedOutput::Discarded, Vec::new()),
        }
    }

    fn add(&self, bytes: &[u8]) {
        let length = self.length.get();
        let added = match &mut *self.content.borrow_mut() {
            Content::Kept { memory, limit } => {
                let room = usize::try_from(*limit - length).unwrap_or(usize::MAX);
                let fits = &bytes[..bytes.len().min(room)];
                let written = memory.write_all_at(fits, length).is_ok();
                if !written || fits.len() < bytes.len() {
                    self.exceeded.set(true);
                }
                fits.len()
            }
            Content::Hashed { hasher, end } => {
                hasher.update(bytes);
                end.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_SIZE)..]);
                // Not each time: moving the rest costs more than keeping it twice.
                if end.len() > 2 * TAIL_SIZE {
                    end.drain(..end.len() - TAIL_SIZE);
                }
                bytes.len()
            }
            Content::Discarded => 0,
        };
        self.length.set(length + added as u64);
        self.changed.notify_waiters();
    }
}

/// A file in memory.
pub(super) fn create_memfd() -> io::Result<File> {
    Ok(memfd_create(c"weighbridge", MemfdFlags::CLOEXEC)?.into())
}

//! What a process writes: read from its pipe as it comes, kept in memory that belongs to no filesystem.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;

use super::files::{CHUNK, chunk};

/// What is read at once, in bytes: what a pipe holds.
const AT_ONCE: usize = 64 << 10;

/// One stream of one process.
pub(super) struct Output {
    pipe: Receiver,
    kept: File,
    limit: u64,
    length: Cell<u64>,
    open: Cell<bool>,
    exceeded: Cell<bool>,
    pub(super) changed: Notify,
    buffer: RefCell<Vec<u8>>,
}

impl Output {
    /// A stream that keeps `limit` bytes, and the end that the process writes to.
    pub(super) fn new(limit: u64) -> io::Result<(Self, OwnedFd)> {
        let (pipe, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let output = Self {
            pipe: Receiver::from_owned_fd(pipe)?,
            kept: memory()?,
            limit,
            length: Cell::new(0),
            open: Cell::new(true),
            exceeded: Cell::new(false),
            changed: Notify::new(),
            buffer: RefCell::new(vec![0; AT_ONCE]),
        };
        Ok((output, end))
    }

    /// Keeps what comes until the last writer is gone, or more came than the limit; whether it did.
    pub(super) async fn pump(&self) -> bool {
        while self.open.get() && !self.exceeded.get() && self.pipe.readable().await.is_ok() {
            self.take(|buffer| self.pipe.try_read(buffer));
            // A process that never stops writing must not keep us from all else.
            tokio::task::yield_now().await;
        }
        self.exceeded.get()
    }

    /// Keeps what is there now, whether the runtime knows of it yet or not; false when there may be more.
    pub(super) fn drain(&self) -> bool {
        self.take(|buffer| Ok(rustix::io::read(&self.pipe, buffer)?))
    }

    /// Reads until nothing is there, but not for ever; false when there may be more.
    fn take(&self, read: impl Fn(&mut [u8]) -> io::Result<usize>) -> bool {
        let mut buffer = self.buffer.borrow_mut();
        for _ in 0..16 {
            match read(&mut buffer) {
                Ok(0) => {
                    self.open.set(false);
                    self.changed.notify_waiters();
                    return true;
                }
                Ok(length) => self.keep(&buffer[..length]),
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

    /// How much is kept, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length.get()
    }

    /// A part of what is kept.
    pub(super) fn part(&self, offset: u64) -> Vec<u8> {
        let there = self.length.get().saturating_sub(offset);
        chunk(&self.kept, offset, CHUNK.min(usize::try_from(there).unwrap_or(CHUNK))).unwrap_or_default()
    }

    fn keep(&self, bytes: &[u8]) {
        let length = self.length.get();
        let room = usize::try_from(self.limit - length).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        let kept = self.kept.write_all_at(fits, length).is_ok();
        if !kept || fits.len() < bytes.len() {
            self.exceeded.set(true);
        }
        self.length.set(length + fits.len() as u64);
        self.changed.notify_waiters();
    }
}

/// A file in memory.
pub(super) fn memory() -> io::Result<File> {
    Ok(memfd_create(c"weighbridge", MemfdFlags::CLOEXEC)?.into())
}

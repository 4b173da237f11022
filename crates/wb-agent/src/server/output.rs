//! Capture of a process's output: bytes are read from a pipe as they arrive, and kept in a memfd or hashed.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use sha2::{Digest, Sha256 as Hasher};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;
use tokio::time::sleep;
use wb_model::Sha256;

use super::files::read_at_most;
use crate::protocol::{CHUNK, Capture, CapturedOutput, OutputDigest};

/// Size of one read, in bytes: the capacity of a pipe by default.
const READ_BUFFER_SIZE: usize = 64 << 10;
/// Capacity of a pipe, in bytes: more than a process usually writes while its pipe is left alone.
const PIPE_SIZE: usize = 256 << 10;
/// How long the pipe of a process that prints more often is left alone after a read, so that neither the process nor what
/// is measured beside it is disturbed by a wake-up of the agent for every line.
const READ_PAUSE: Duration = Duration::from_millis(10);
/// Number of bytes in a pause from which the pipe of a process is read without pauses.
const BURST: u64 = 32 << 10;
/// Maximum number of reads before other tasks may run.
const MAX_READS: usize = 16;
/// Size of the tail kept of hashed output, in bytes: the last messages of a process that failed.
const TAIL_SIZE: usize = 16 << 10;

/// The captured standard output or standard error of a process.
pub(super) struct Output {
    /// None if the process writes to `/dev/null`.
    pipe: Option<OwnedFd>,
    content: RefCell<Content>,
    /// Number of bytes kept or hashed so far.
    length: Cell<u64>,
    /// Whether the end of the pipe has not been read: a writer may still exist.
    open: Cell<bool>,
    /// Whether bytes were dropped: beyond the limit, or because they could not be kept.
    limit_exceeded: Cell<bool>,
    /// Wakes tasks that wait for more bytes or the end of the pipe.
    pub(super) changed: Notify,
    /// Buffer of all reads, shared by the outputs of an agent.
    buffer: ReadBuffer,
}

/// A buffer for reads from pipes.
#[derive(Clone)]
pub(super) struct ReadBuffer(Rc<RefCell<Vec<u8>>>);

impl Default for ReadBuffer {
    fn default() -> Self {
        Self(Rc::new(RefCell::new(vec![0; READ_BUFFER_SIZE])))
    }
}

/// Captured content of a stream.
enum Content {
    /// All bytes in memory, up to a limit.
    Kept { memory: File, limit: u64 },
    /// The hash of all bytes, and at least the last [`TAIL_SIZE`] of them.
    Hashed { hasher: Hasher, tail: Vec<u8> },
    /// Nothing.
    Discarded,
}

impl Output {
    /// Creates a stream, and the write end of its pipe for the process. `limit` is the maximum number of bytes for
    /// [`Capture::Keep`]; the others have none.
    pub(super) fn new(capture: Capture, limit: u64, buffer: ReadBuffer) -> io::Result<(Self, OwnedFd)> {
        let content = match capture {
            Capture::Keep => Content::Kept { memory: create_memfd()?, limit },
            Capture::Hash => Content::Hashed { hasher: Hasher::new(), tail: Vec::new() },
            Capture::Discard => Content::Discarded,
        };
        let (pipe, write_end) = match content {
            Content::Discarded => (None, File::options().write(true).open("/dev/null")?.into()),
            Content::Kept { .. } | Content::Hashed { .. } => {
                let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
                ioctl_fionbio(&read_end, true)?;
                // A user with many pipes may not enlarge them; a process then waits for a pause after 64 KiB.
                let _ = fcntl_setpipe_size(&read_end, PIPE_SIZE);
                (Some(read_end), write_end)
            }
        };
        let output = Self {
            open: Cell::new(pipe.is_some()),
            pipe,
            content: RefCell::new(content),
            length: Cell::new(0),
            limit_exceeded: Cell::new(false),
            changed: Notify::new(),
            buffer,
        };
        Ok((output, write_end))
    }

    /// Reads until the last writer has closed the pipe or the limit is exceeded; returns whether it is exceeded.
    pub(super) async fn pump(&self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let is_pending = || self.open.get() && !self.limit_exceeded.get();
        let (mut is_burst, mut previous) = (false, None);
        while is_pending() {
            // Only while it is registered does each write to the pipe wake up the agent.
            let Ok(registered) = pipe.try_clone().and_then(Receiver::from_owned_fd_unchecked) else {
                // Without a descriptor for it, it is looked at from time to time.
                sleep(READ_PAUSE).await;
                self.drain();
                continue;
            };
            loop {
                if registered.readable().await.is_err() {
                    return self.limit_exceeded.get();
                }
                self.read_available(|buffer| registered.try_read(buffer));
                // A process that never stops writing must not starve the other tasks.
                tokio::task::yield_now().await;
                let elapsed = previous.replace(Instant::now()).map_or(READ_PAUSE, |at| at.elapsed());
                if !is_pending() || elapsed < READ_PAUSE && !is_burst {
                    break;
                }
            }
            drop(registered);
            while is_pending() && !is_burst {
                let before = self.length.get();
                sleep(READ_PAUSE).await;
                self.drain();
                match self.length.get() - before {
                    0 => break,
                    added => is_burst = added >= BURST,
                }
            }
        }
        self.limit_exceeded.get()
    }

    /// Reads what is available now, even if the runtime has not reported the pipe as readable yet; returns whether
    /// nothing more was available.
    pub(super) fn drain(&self) -> bool {
        self.pipe.as_ref().is_none_or(|pipe| self.read_available(|buffer| Ok(rustix::io::read(pipe, buffer)?)))
    }

    /// Reads until nothing is available, but at most [`MAX_READS`] times; returns whether nothing more was available.
    fn read_available(&self, read: impl Fn(&mut [u8]) -> io::Result<usize>) -> bool {
        let mut buffer = self.buffer.0.borrow_mut();
        for _ in 0..MAX_READS {
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

    /// Whether the process has written more than the limit, or its output could not be kept.
    pub(super) fn has_exceeded_limit(&self) -> bool {
        self.limit_exceeded.get()
    }

    /// Whether more may be written: the end of the pipe has not been read.
    pub(super) fn is_open(&self) -> bool {
        self.open.get()
    }

    /// Number of bytes kept or hashed so far.
    pub(super) fn length(&self) -> u64 {
        self.length.get()
    }

    /// Returns the chunk of kept output at an offset; empty at the end, and for output that is not kept.
    pub(super) fn chunk_at(&self, offset: u64) -> Vec<u8> {
        let Content::Kept { memory, .. } = &*self.content.borrow() else { return Vec::new() };
        let available = self.length.get().saturating_sub(offset);
        read_at_most(memory, offset, CHUNK.min(usize::try_from(available).unwrap_or(CHUNK))).unwrap_or_default()
    }

    /// Returns the result of the capture, with the tail of hashed output (otherwise empty).
    pub(super) fn capture_result(&self) -> (CapturedOutput, Vec<u8>) {
        match &*self.content.borrow() {
            Content::Kept { .. } => (CapturedOutput::Kept, Vec::new()),
            Content::Hashed { hasher, tail } => {
                let digest = OutputDigest { bytes: self.length.get(), sha256: Sha256::from_hasher(hasher.clone()) };
                (CapturedOutput::Hashed(digest), tail[tail.len().saturating_sub(TAIL_SIZE)..].to_vec())
            }
            Content::Discarded => (CapturedOutput::Discarded, Vec::new()),
        }
    }

    /// Keeps or hashes bytes that were read.
    fn add(&self, bytes: &[u8]) {
        let length = self.length.get();
        let added = match &mut *self.content.borrow_mut() {
            Content::Kept { memory, limit } => {
                let room = usize::try_from(*limit - length).unwrap_or(usize::MAX);
                let prefix = &bytes[..bytes.len().min(room)];
                let write_succeeded = memory.write_all_at(prefix, length).is_ok();
                if !write_succeeded || prefix.len() < bytes.len() {
                    self.limit_exceeded.set(true);
                }
                prefix.len()
            }
            Content::Hashed { hasher, tail } => {
                hasher.update(bytes);
                tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_SIZE)..]);
                // Trim rarely: moving the tail costs more than keeping up to twice its size.
                if tail.len() > 2 * TAIL_SIZE {
                    tail.drain(..tail.len() - TAIL_SIZE);
                }
                bytes.len()
            }
            Content::Discarded => 0,
        };
        self.length.set(length + added as u64);
        self.changed.notify_waiters();
    }
}

/// Creates an anonymous file in memory.
pub(super) fn create_memfd() -> io::Result<File> {
    Ok(memfd_create(c"weighbridge", MemfdFlags::CLOEXEC)?.into())
}

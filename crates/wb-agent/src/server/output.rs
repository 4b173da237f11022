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
use crate::clock::monotonic_ns;
use crate::protocol::{Arrival, CHUNK, Capture, CapturedOutput, OutputDigest, Overflow};

/// Size of one read, in bytes: the capacity of a pipe by default.
const READ_BUFFER_SIZE: usize = 64 << 10;
/// Capacity of a pipe, in bytes: more than a process usually writes while its pipe is left alone.
const PIPE_SIZE: usize = 256 << 10;
/// Pause after a read from the pipe of a process that prints often, so that neither the process nor the measurement is
/// disturbed by a wake-up of the agent for every line.
const READ_PAUSE: Duration = Duration::from_millis(10);
/// Number of bytes in a pause from which the pipe of a process is read without pauses.
const BURST: u64 = 32 << 10;
/// Maximum number of reads before other tasks may run.
const MAX_READS: usize = 16;
/// Number of arrivals that are kept of a stream: without thinning, of 160 s if it is read after each pause.
const MAX_ARRIVALS: usize = 16 << 10;
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
    /// When bytes arrived, if this is to be noted.
    arrivals: Option<RefCell<Vec<Arrival>>>,
}

/// What a process wrote during a burst, since the burst was last seen to go on.
struct BurstWindow {
    start: Instant,
    bytes: u64,
}

impl Default for BurstWindow {
    fn default() -> Self {
        Self { start: Instant::now(), bytes: 0 }
    }
}

impl BurstWindow {
    /// Adds a read; returns whether the burst goes on: over every pause's time, as much arrives as began it.
    fn continues(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        let pauses = self.start.elapsed().as_secs_f64() / READ_PAUSE.as_secs_f64();
        if pauses < 1.0 {
            return true;
        }
        let continues = self.bytes as f64 >= pauses * BURST as f64;
        *self = Self::default();
        continues
    }
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
    Kept {
        memory: File,
        limit: u64,
    },
    /// The first and the last bytes in memory.
    Ends(Ends),
    /// The hash of all bytes, and at least the last [`TAIL_SIZE`] of them.
    Hashed {
        hasher: Hasher,
        tail: Vec<u8>,
    },
    Discarded,
}

impl Output {
    /// Creates a stream, and the write end of its pipe for the process. `limit` is the maximum number of bytes for
    /// [`Capture::Keep`], and `overflow` what happens to more; the others have none.
    pub(super) fn new(
        capture: Capture,
        limit: u64,
        overflow: Overflow,
        buffer: ReadBuffer,
    ) -> io::Result<(Self, OwnedFd)> {
        let content = match (capture, overflow) {
            (Capture::Keep, Overflow::Kill) => Content::Kept { memory: create_memfd()?, limit },
            (Capture::Keep, Overflow::CutMiddle) => Content::Ends(Ends { memory: create_memfd()?, limit }),
            (Capture::Hash, _) => Content::Hashed { hasher: Hasher::new(), tail: Vec::new() },
            (Capture::Discard, _) => Content::Discarded,
        };
        let (pipe, write_end) = match content {
            Content::Discarded => (None, File::options().write(true).open("/dev/null")?.into()),
            Content::Kept { .. } | Content::Ends(_) | Content::Hashed { .. } => {
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
            arrivals: None,
        };
        Ok((output, write_end))
    }

    /// Notes from now on when bytes arrive.
    pub(super) fn note_arrivals(&mut self) {
        self.arrivals = Some(RefCell::default());
    }

    /// When bytes arrived, as far as this was noted.
    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.as_ref().map(|arrivals| arrivals.borrow().clone()).unwrap_or_default()
    }

    /// Reads until the last writer has closed the pipe or the limit is exceeded; returns whether it is exceeded.
    pub(super) async fn pump(&self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let is_pending = || self.open.get() && !self.limit_exceeded.get();
        // Only of the moment: a process that prints a lot at its start may print a line now and then afterwards.
        let (mut is_burst, mut previous): (bool, Option<Instant>) = (false, None);
        let mut window = BurstWindow::default();
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
                let before = self.length.get();
                self.read_available(|buffer| registered.try_read(buffer));
                // A process that never stops writing must not starve the other tasks.
                tokio::task::yield_now().await;
                let elapsed = previous.replace(Instant::now()).map_or(READ_PAUSE, |last_read| last_read.elapsed());
                is_burst = is_burst && window.continues(self.length.get() - before);
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
                    added if added >= BURST => (is_burst, window) = (true, BurstWindow::default()),
                    _ => {}
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

    /// Whether bytes in its middle are not kept.
    pub(super) fn is_cut(&self) -> bool {
        matches!(&*self.content.borrow(), Content::Ends(ends) if self.length.get() > ends.limit)
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
        let content = self.content.borrow();
        let memory = match &*content {
            Content::Ends(ends) => return ends.chunk_at(offset, self.length.get()),
            Content::Kept { memory, .. } => memory,
            Content::Hashed { .. } | Content::Discarded => return Vec::new(),
        };
        let available = self.length.get().saturating_sub(offset);
        read_at_most(memory, offset, CHUNK.min(usize::try_from(available).unwrap_or(CHUNK))).unwrap_or_default()
    }

    /// Returns the result of the capture, with the tail of hashed output (otherwise empty).
    pub(super) fn capture_result(&self) -> (CapturedOutput, Vec<u8>) {
        match &*self.content.borrow() {
            Content::Kept { .. } | Content::Ends(_) => (CapturedOutput::Kept, Vec::new()),
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
            Content::Ends(ends) => {
                if ends.write(bytes, length).is_err() {
                    self.limit_exceeded.set(true);
                }
                bytes.len()
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
        if let Some(arrivals) = &self.arrivals {
            let mut arrivals = arrivals.borrow_mut();
            if arrivals.len() >= MAX_ARRIVALS {
                // Every second one: what remains is coarser, and of the whole stream.
                let mut is_kept = false;
                arrivals.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
            }
            arrivals.push(Arrival { bytes: self.length.get(), at_ns: monotonic_ns() });
        }
        self.changed.notify_waiters();
    }
}

/// The first and the last bytes of a stream: half of the limit each.
struct Ends {
    /// The first bytes, then a ring of the last ones.
    memory: File,
    limit: u64,
}

impl Ends {
    /// Number of the first bytes.
    fn head(&self) -> u64 {
        self.limit / 2
    }

    /// Size of the ring.
    fn ring(&self) -> u64 {
        (self.limit - self.head()).max(1)
    }

    /// Position in memory of the byte at an offset of the stream.
    fn position(&self, offset: u64) -> u64 {
        match offset.checked_sub(self.head()) {
            Some(beyond) => self.head() + beyond % self.ring(),
            None => offset,
        }
    }

    /// Writes bytes of the stream that begin at an offset.
    fn write(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let position = self.position(offset);
            let end = if position < self.head() { self.head() } else { self.head() + self.ring() };
            let length = bytes.len().min(usize::try_from(end - position).unwrap_or(usize::MAX));
            self.memory.write_all_at(&bytes[..length], position)?;
            bytes = &bytes[length..];
            offset += length as u64;
        }
        Ok(())
    }

    /// Returns a chunk of what is kept of a stream of a length: its first bytes, a line that says how much was cut, and
    /// its last bytes.
    fn chunk_at(&self, offset: u64, length: u64) -> Vec<u8> {
        let read = |stream_offset: u64, end: u64| {
            let position = self.position(stream_offset);
            let boundary = if position < self.head() { self.head() } else { self.head() + self.ring() };
            let available = (end.saturating_sub(stream_offset)).min(boundary - position);
            read_at_most(&self.memory, position, CHUNK.min(usize::try_from(available).unwrap_or(CHUNK)))
                .unwrap_or_default()
        };
        let kept = self.head() + self.ring();
        let Some(cut) = length.checked_sub(kept).filter(|cut| *cut > 0) else { return read(offset, length) };
        if offset < self.head() {
            return read(offset, self.head());
        }
        let notice = format!("\n[{cut} bytes of output were cut here]\n");
        let beyond = offset - self.head();
        match usize::try_from(beyond).ok().and_then(|beyond| notice.as_bytes().get(beyond..)) {
            Some(rest) if !rest.is_empty() => rest.to_vec(),
            _ => read(self.head() + cut + (beyond - notice.len() as u64), length),
        }
    }
}

/// Creates an anonymous file in memory.
pub(super) fn create_memfd() -> io::Result<File> {
    Ok(memfd_create(c"weighbridge", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// What is kept of a stream that is written in parts.
    fn kept(parts: &[Vec<u8>], limit: u64) -> Vec<u8> {
        let ends = Ends { memory: create_memfd().unwrap(), limit };
        let mut length = 0;
        for part in parts {
            ends.write(part, length).unwrap();
            length += part.len() as u64;
        }
        let mut all = Vec::new();
        loop {
            match ends.chunk_at(all.len() as u64, length) {
                chunk if chunk.is_empty() => return all,
                chunk => all.extend(chunk),
            }
        }
    }

    /// Number of times that something is added to an output while `lines` lines are written, one per millisecond, and
    /// the time that this takes.
    async fn count_reads(output: &Output, writer: &mut File, lines: u32) -> (u32, Duration) {
        let start = Instant::now();
        let write = async {
            for _ in 0..lines {
                writer.write_all(b"line\n").unwrap();
                sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::pin!(write);
        let mut reads = 0;
        loop {
            tokio::select! {
                () = &mut write => return (reads, start.elapsed()),
                () = output.changed.notified() => reads += 1,
            }
        }
    }

    #[test]
    fn after_a_burst_the_pipe_is_left_alone_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let (output, end) = Output::new(Capture::Hash, 0, Overflow::Kill, ReadBuffer::default()).unwrap();
            let (output, mut writer) = (Rc::new(output), File::from(end));
            let pump = tokio::task::spawn_local({
                let output = output.clone();
                async move { output.pump().await }
            });
            let burst = std::thread::spawn(move || {
                (0..400).for_each(|_| writer.write_all(&[b'x'; BURST as usize]).unwrap());
                writer
            });
            while !burst.is_finished() {
                sleep(Duration::from_millis(1)).await;
            }
            let mut writer = burst.join().unwrap();
            // This thread is the one that reads: a write to a pipe that is still full would never return.
            while output.length() < 400 * BURST {
                sleep(Duration::from_millis(1)).await;
            }
            let (reads, elapsed) = count_reads(&output, &mut writer, 300).await;
            // Around each pause there is a read or two; without pauses there is one per line.
            let pauses = elapsed.as_secs_f64() / READ_PAUSE.as_secs_f64();
            assert!(f64::from(reads) <= 3.0 * pauses + 16.0, "{reads} reads in {elapsed:?}");
            drop(writer);
            assert!(!pump.await.unwrap());
        });
    }

    #[test]
    fn the_middle_of_a_long_stream_is_replaced_by_its_length() {
        let parts = [b"0123456789".to_vec(), b"abcdefghij".to_vec()];
        assert_eq!(kept(&parts, 20), parts.concat());
        assert_eq!(kept(&parts, 8), b"0123\n[12 bytes of output were cut here]\nghij");
    }

    proptest! {
        #[test]
        fn both_ends_of_any_stream_are_kept(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            limit in 2u64..64,
        ) {
            let (all, half) = (parts.concat(), (limit / 2) as usize);
            let kept = kept(&parts, limit);
            if all.len() as u64 <= limit {
                prop_assert_eq!(kept, all);
            } else {
                let tail = limit as usize - half;
                let notice = format!("\n[{} bytes of output were cut here]\n", all.len() as u64 - limit);
                prop_assert_eq!(kept, [&all[..half], notice.as_bytes(), &all[all.len() - tail..]].concat());
            }
        }
    }
}

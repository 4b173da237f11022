//! The log of requests: one padded line each, in files of bounded total size.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::HashdError;
use crate::request::RequestDigest;
use crate::window::thread_cpu_nanos;
use crate::work_folder::WorkFolder;

/// The oldest file is emptied when the current one is full.
const FILES: usize = 4;
const FILE_BYTES: u64 = 32 << 20;
/// Entries that wait for the log thread. A worker waits, after its latency was taken, when there are as many.
const QUEUE: usize = 8192;
/// The log thread looks for entries at this interval; to be woken by a worker would cost more than the entry.
const INTERVAL: Duration = Duration::from_millis(100);
/// Interval after many entries, so that the queue does not fill up.
const SHORT_INTERVAL: Duration = Duration::from_millis(10);
const MANY: usize = QUEUE / 64;
/// Lines are written at the end of an interval, or when they have as many bytes.
const BATCH_BYTES: usize = 256 << 10;
/// Number of hexadecimal digits to pad lines with.
const PADDING: usize = 64 << 10;
const MAX_LINE: usize = 16 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LogEntry {
    /// Time of its end since the start.
    pub(crate) time: Duration,
    pub(crate) latency: Duration,
    pub(crate) digest: RequestDigest,
}

#[derive(Debug, Default)]
pub(crate) struct LogState {
    /// Minimum length of a line.
    pub(crate) line_bytes: AtomicUsize,
    /// CPU time of the log thread.
    pub(crate) cpu_nanos: AtomicU64,
}

/// Starts the log thread, which ends when all senders are gone. `on_error` gets the first error, after which nothing is
/// written.
pub(crate) fn start_log(
    folder: &WorkFolder,
    state: Arc<LogState>,
    on_error: impl FnOnce(&io::Error) + Send + 'static,
) -> Result<(SyncSender<LogEntry>, JoinHandle<()>), HashdError> {
    let open = |index: usize| Ok(folder.open_file(&format!("hashd-log-{index}"), None)?.0);
    let files = (0..FILES).map(open).collect::<Result<Vec<_>, HashdError>>()?;
    let (sender, entries) = sync_channel(QUEUE);
    let write = move || {
        let mut writer = LogWriter::new(files, FILE_BYTES);
        if let Err(error) = writer.write_all(&entries, &state) {
            on_error(&error);
            // Whoever logs does not wait for a log that is broken.
            entries.iter().for_each(drop);
        }
    };
    let thread = thread::Builder::new().name("hashd-log".to_owned()).spawn(write);
    Ok((sender, thread.map_err(|source| HashdError::Thread { source })?))
}

fn hex_digit(number: u8) -> u8 {
    b"0123456789abcdef"[usize::from(number % 16)]
}

struct LogWriter {
    files: Vec<File>,
    file_bytes: u64,
    current: usize,
    /// Bytes of the current file, with the lines that are not yet written to it.
    written: u64,
    lines: Vec<u8>,
    padding: Vec<u8>,
}

impl LogWriter {
    fn new(files: Vec<File>, file_bytes: u64) -> Self {
        let mut random = vec![0; PADDING];
        ChaCha8Rng::seed_from_u64(0).fill_bytes(&mut random);
        let padding = random.iter().map(|byte| hex_digit(byte % 16)).collect();
        Self { files, file_bytes, current: 0, written: 0, lines: Vec::new(), padding }
    }

    fn write_all(&mut self, entries: &Receiver<LogEntry>, state: &LogState) -> io::Result<()> {
        loop {
            let mut count = 0;
            let is_over = loop {
                match entries.try_recv() {
                    Ok(entry) => self.write(&entry, state.line_bytes.load(Ordering::Relaxed))?,
                    Err(error) => break error == TryRecvError::Disconnected,
                }
                count += 1;
            };
            self.flush()?;
            state.cpu_nanos.store(thread_cpu_nanos(), Ordering::Relaxed);
            if is_over {
                return Ok(());
            }
            thread::sleep(if count < MANY { INTERVAL } else { SHORT_INTERVAL });
        }
    }

    /// Extends the lines to `length` bytes, from another place of the padding for each line.
    fn pad(&mut self, length: usize) {
        let mut start = self.written as usize % self.padding.len();
        while self.lines.len() < length {
            let part = &self.padding[start..];
            self.lines.extend_from_slice(&part[..part.len().min(length - self.lines.len())]);
            start = 0;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.files[self.current].write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    fn write(&mut self, entry: &LogEntry, min_bytes: usize) -> io::Result<()> {
        if self.written >= self.file_bytes {
            self.flush()?;
            self.current = (self.current + 1) % self.files.len();
            let file = &mut self.files[self.current];
            file.set_len(0)?;
            io::Seek::rewind(file)?;
            self.written = 0;
        }
        let start = self.lines.len();
        write!(self.lines, "{:.6} ", entry.time.as_secs_f64())?;
        self.lines.extend(entry.digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit));
        write!(self.lines, " {:.3}ms", entry.latency.as_secs_f64() * 1e3)?;
        let end = start + min_bytes.min(MAX_LINE);
        if self.lines.len() + 2 < end {
            self.lines.push(b' ');
            self.pad(end - 1);
        }
        self.lines.push(b'\n');
        self.written += (self.lines.len() - start) as u64;
        if self.lines.len() >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    const ENTRY: LogEntry =
        LogEntry { time: Duration::from_millis(1500), latency: Duration::from_micros(31_250), digest: [0xab; 20] };

    fn files(folder: &tempfile::TempDir, count: usize) -> Vec<File> {
        (0..count).map(|index| File::create(folder.path().join(index.to_string())).unwrap()).collect()
    }

    fn read(folder: &tempfile::TempDir, index: usize) -> String {
        std::fs::read_to_string(folder.path().join(index.to_string())).unwrap()
    }

    #[test]
    fn lines_are_padded_to_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::new(files(&folder, 1), 1 << 20);
        for bytes in [0, 100, 200_000] {
            writer.write(&ENTRY, bytes).unwrap();
        }
        writer.flush().unwrap();
        let text = read(&folder, 0);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let digest = "ab".repeat(20);
        assert_eq!(lines[0], format!("1.500000 {digest} 31.250ms\n"));
        assert!(lines[1].starts_with(lines[0].trim_end()));
        assert_eq!(lines.iter().map(|line| line.len()).collect::<Vec<_>>(), [lines[0].len(), 100, 200_000]);
    }

    #[test]
    fn total_size_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::new(files(&folder, 2), 1000);
        for _ in 0..35 {
            writer.write(&ENTRY, 100).unwrap();
        }
        writer.flush().unwrap();
        // Ten lines in a file: the fourth file of ten is half full, and the third one whole.
        assert_eq!([read(&folder, 0).len(), read(&folder, 1).len()], [1000, 500]);
    }

    #[test]
    fn broken_log_reports_once_and_blocks_nobody() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("read-only");
        std::fs::write(&path, "").unwrap();
        let (sender, entries) = sync_channel(1);
        let mut writer = LogWriter::new(vec![File::open(&path).unwrap()], 1000);
        sender.send(ENTRY).unwrap();
        assert!(writer.write_all(&entries, &LogState::default()).is_err());
    }
}

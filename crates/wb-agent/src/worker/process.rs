//! A process on a worker.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos, Quantity};
use wb_sys::process::ResourceUsage;

use crate::protocol::{CapturedOutput, ExitReport, OutputDigest, PlacementReport, ProcessHandle, Request, Stream};

use super::{Worker, WorkerError};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum ExitReason {
    /// By itself, with this status.
    Exited {
        /// The status.
        status: i32,
    },
    /// By this signal.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// It was ended at its limit: asked to, and killed when it did not.
    TimedOut {
        /// The limit.
        limit: Nanos,
    },
    /// It was killed because it wrote more than is kept.
    TooMuchOutput {
        /// To which stream.
        stream: Stream,
        /// What it was allowed.
        limit: Bytes,
    },
}

impl ExitReason {
    /// Whether it ended by itself and said that all went well.
    pub fn is_success(self) -> bool {
        self == Self::Exited { status: 0 }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { status } => write!(f, "exit status {status}"),
            Self::Signalled { signal } => write!(f, "killed by signal {signal}"),
            Self::TimedOut { limit: after } => write!(f, "timeout after {after}"),
            Self::TooMuchOutput { stream, limit } => {
                let stream = match stream {
                    Stream::Stdout => "standard output",
                    Stream::Stderr => "standard error",
                };
                let limit = Quantity { value: limit.0 as f64, unit: "B" };
                write!(f, "killed for writing more than {limit} to {stream}")
            }
        }
    }
}

/// A process that has ended, and all that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessOutput {
    /// How it ended.
    pub ending: ExitReason,
    /// What it wrote to standard output: all of it where it was kept, the last of it where it was hashed.
    pub stdout: Vec<u8>,
    /// Length and hash of its standard output; none where it was discarded.
    pub stdout_digest: Option<OutputDigest>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
    /// When nothing was left between it and its program (in its cgroup, placed, released), by the worker's
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub started_ns: u64,
    /// When it ended, by the same clock.
    pub ended_ns: u64,
    /// What it and the children that it waited for used.
    pub usage: ResourceUsage,
    /// How it really ran.
    pub placement: PlacementReport,
}

impl ProcessOutput {
    /// How long it ran.
    pub fn elapsed(&self) -> Nanos {
        Nanos(self.ended_ns.saturating_sub(self.started_ns))
    }
}

/// A process on a worker. It lives on when this is dropped: its group ends it.
#[derive(Debug)]
pub struct Process {
    pub(super) worker: Worker,
    id: u32,
    pid: u32,
}

impl Process {
    pub(super) fn new(worker: Worker, ProcessHandle { id, pid }: ProcessHandle) -> Self {
        Self { worker, id, pid }
    }

    /// The system's id of it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it start, if it was held.
    pub async fn release(&self) -> Result<(), WorkerError> {
        self.worker.call(Request::Release { process: self.id }).await
    }

    /// The same at a time, by its worker's CLOCK_MONOTONIC in nanoseconds ([`crate::ClockOffset::theirs`]); how much later
    /// it was. The answer comes when it has started. It needs neither this handle nor its lifetime.
    pub fn release_at(&self, at_ns: u64) -> impl Future<Output = Result<Nanos, WorkerError>> + Send + use<> {
        let (worker, process) = (self.worker.clone(), self.id);
        async move {
            let released_ns: u64 = worker.call(Request::ReleaseAt { process, at_ns }).await?;
            Ok(Nanos(released_ns.saturating_sub(at_ns)))
        }
    }

    /// Waits for its end and fetches what it wrote. After the limit, counted from now, it and its
    /// process group get SIGTERM, and SIGKILL two seconds later.
    pub async fn wait(&self, limit: Option<Nanos>) -> Result<ProcessOutput, WorkerError> {
        let request = Request::Wait { process: self.id, limit };
        let (ended, end_of_output): (ExitReport, _) = self.worker.call_with_payload(request, Vec::new()).await?;
        let ExitReport { ending, started_ns, ended_ns, usage, stdout, placement: ran } = ended;
        let (stdout, stdout_digest) = match stdout {
            CapturedOutput::Kept => {
                let stdout = self.read_output(Stream::Stdout).await?;
                let digest = OutputDigest::of(&stdout);
                (stdout, Some(digest))
            }
            CapturedOutput::Hashed(digest) => (end_of_output, Some(digest)),
            CapturedOutput::Discarded => (Vec::new(), None),
        };
        let stderr = self.read_output(Stream::Stderr).await?;
        Ok(ProcessOutput { ending, stdout, stdout_digest, stderr, started_ns, ended_ns, usage, placement: ran })
    }

    /// How it and those that it started really run, now.
    pub async fn inspect(&self) -> Result<PlacementReport, WorkerError> {
        self.worker.call(Request::Inspect { process: self.id }).await
    }

    /// Sends a signal, by number, to it and its process group.
    pub async fn signal(&self, signal: i32) -> Result<(), WorkerError> {
        self.worker.call(Request::Signal { process: self.id, signal }).await
    }

    /// What it has written to a stream until now.
    pub async fn read_output(&self, stream: Stream) -> Result<Vec<u8>, WorkerError> {
        let mut bytes = Vec::new();
        loop {
            let (part, _) = self.read_chunk(stream, bytes.len(), false).await?;
            if part.is_empty() {
                return Ok(bytes);
            }
            bytes.extend(part);
        }
    }

    /// Waits until it has written a line that `is_it`; that line. None when it ended, or the limit
    /// passed, without one.
    pub async fn wait_for_line(
        &self,
        stream: Stream,
        limit: Nanos,
        is_it: impl Fn(&str) -> bool,
    ) -> Result<Option<String>, WorkerError> {
        let search = async {
            let (mut offset, mut rest) = (0, Vec::new());
            loop {
                let (part, more) = self.read_chunk(stream, offset, true).await?;
                offset += part.len();
                rest.extend(part);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line);
                    if is_it(line.trim_end()) {
                        return Ok(Some(line.trim_end().to_owned()));
                    }
                }
                if !more {
                    let line = String::from_utf8_lossy(&rest);
                    return Ok((!rest.is_empty() && is_it(&line)).then(|| line.into_owned()));
                }
            }
        };
        tokio::time::timeout(limit.into(), search).await.unwrap_or(Ok(None))
    }

    async fn read_chunk(&self, stream: Stream, offset: usize, follow: bool) -> Result<(Vec<u8>, bool), WorkerError> {
        let request = Request::Output { process: self.id, stream, offset: offset as u64, follow };
        let (more, part) = self.worker.call_with_payload(request, Vec::new()).await?;
        Ok((part, more))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.worker.notify(Request::Forget { process: self.id });
    }
}

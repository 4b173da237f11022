//! Handle of a process on a worker, and its result.

use wb_model::Nanos;
use wb_sys::process::ResourceUsage;

use crate::protocol::{
    Arrival, CapturedOutput, ExitReason, ExitReport, OutputDigest, OutputStream, PlacementReport, ProcessHandle,
    WithBytes, call,
};

use super::{Worker, WorkerError};

/// Result of a process that has exited.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessOutput {
    pub exit_reason: ExitReason,
    /// Its standard output: all of it if it was kept, its tail if it was hashed.
    pub stdout: Vec<u8>,
    /// Length and hash of its standard output; none if it was discarded.
    pub stdout_digest: Option<OutputDigest>,
    /// When its standard output arrived, if the command requested this.
    pub arrivals: Vec<Arrival>,
    pub stderr: Vec<u8>,
    /// Time right before exec (in its cgroup, placed and released), by the worker's CLOCK_MONOTONIC, in nanoseconds.
    pub started_ns: u64,
    /// Time of its exit, by the same clock.
    pub ended_ns: u64,
    /// Resources used by it and the children that it waited for.
    pub usage: ResourceUsage,
    /// Names of its descendants that were still running, sorted; known only where it had a cgroup of its own.
    pub outlived_by: Vec<String>,
    pub placement: PlacementReport,
}

impl ProcessOutput {
    pub fn elapsed(&self) -> Nanos {
        Nanos(self.ended_ns.saturating_sub(self.started_ns))
    }
}

/// Handle of a process on a worker. Dropping it does not end the process; its group does.
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

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub async fn release(&self) -> Result<(), WorkerError> {
        self.worker.call(call::Release { process: self.id }).await
    }

    /// Lets a suspended process start at a time of its worker's CLOCK_MONOTONIC in nanoseconds
    /// ([`crate::ClockOffset::to_remote_ns`]); completes when it has started and returns the delay. The future does not
    /// borrow this handle.
    pub fn release_at(&self, at_ns: u64) -> impl Future<Output = Result<Nanos, WorkerError>> + Send + use<> {
        let (worker, process) = (self.worker.clone(), self.id);
        async move {
            let released_ns = worker.call(call::ReleaseAt { process, at_ns }).await?;
            Ok(Nanos(released_ns.saturating_sub(at_ns)))
        }
    }

    /// Waits for its exit and fetches its output. After the limit, counted from now, it and its process group get
    /// SIGTERM, and SIGKILL two seconds later.
    pub async fn wait(&self, limit: Option<Nanos>) -> Result<ProcessOutput, WorkerError> {
        let WithBytes { value: report, bytes: tail } = self.worker.call(call::Wait { process: self.id, limit }).await?;
        let ExitReport { exit_reason, started_ns, ended_ns, usage, outlived_by, stdout, arrivals, placement } = report;
        let (stdout, stdout_digest) = match stdout {
            CapturedOutput::Kept => {
                let stdout = self.read_output(OutputStream::Stdout).await?;
                let digest = OutputDigest::digest(&stdout);
                (stdout, Some(digest))
            }
            CapturedOutput::Hashed(digest) => (tail, Some(digest)),
            CapturedOutput::Discarded => (Vec::new(), None),
        };
        let stderr = self.read_output(OutputStream::Stderr).await?;
        Ok(ProcessOutput {
            exit_reason,
            stdout,
            stdout_digest,
            arrivals,
            stderr,
            started_ns,
            ended_ns,
            usage,
            outlived_by,
            placement,
        })
    }

    /// Inspects the effective placement of the process and its descendants.
    pub async fn inspect(&self) -> Result<PlacementReport, WorkerError> {
        self.worker.call(call::Inspect { process: self.id }).await
    }

    /// Sends a signal, by number, to the process and its process group.
    pub async fn signal(&self, signal: i32) -> Result<(), WorkerError> {
        self.worker.call(call::Signal { process: self.id, signal }).await
    }

    /// Reads the output written to a stream so far.
    pub async fn read_output(&self, stream: OutputStream) -> Result<Vec<u8>, WorkerError> {
        self.read_output_from(stream, 0).await
    }

    /// Reads the output written to a stream so far, from an offset in bytes on.
    pub async fn read_output_from(&self, stream: OutputStream, offset: usize) -> Result<Vec<u8>, WorkerError> {
        let mut bytes = Vec::new();
        loop {
            let (chunk, _) = self.read_chunk(stream, offset + bytes.len(), false).await?;
            if chunk.is_empty() {
                return Ok(bytes);
            }
            bytes.extend(chunk);
        }
    }

    /// Waits for an output line that satisfies `matches` and returns it; none if the process exited or the limit passed
    /// first.
    pub async fn wait_for_line(
        &self,
        stream: OutputStream,
        limit: Nanos,
        matches: impl Fn(&str) -> bool,
    ) -> Result<Option<String>, WorkerError> {
        let search = async {
            let (mut offset, mut rest) = (0, Vec::new());
            loop {
                let (chunk, more) = self.read_chunk(stream, offset, true).await?;
                offset += chunk.len();
                rest.extend(chunk);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line);
                    if matches(line.trim_end()) {
                        return Ok(Some(line.trim_end().to_owned()));
                    }
                }
                if !more {
                    let line = String::from_utf8_lossy(&rest);
                    return Ok((!rest.is_empty() && matches(&line)).then(|| line.into_owned()));
                }
            }
        };
        tokio::time::timeout(limit.into(), search).await.unwrap_or(Ok(None))
    }

    async fn read_chunk(
        &self,
        stream: OutputStream,
        offset: usize,
        follow: bool,
    ) -> Result<(Vec<u8>, bool), WorkerError> {
        let output = call::Output { process: self.id, stream, offset: offset as u64, follow };
        let WithBytes { value: more, bytes } = self.worker.call(output).await?;
        Ok((bytes, more))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.worker.notify(call::Forget { process: self.id });
    }
}

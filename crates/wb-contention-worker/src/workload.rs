//! The latency-sensitive workload and its neighbours, as processes in control groups of a bench.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};
use wb_agent::signal::{SIGKILL, SIGTERM};
use wb_agent::{Command, ExitReason, OutputStream, Process, ProcessOutput};
use wb_hashd::{HashdConfig, HashdReport};
use wb_kernels::memory_hog::{MemoryHogConfig, MemoryHogReport};
use wb_model::{Bytes, Nanos};

use super::files::read;
use super::fio_load::failure;
use super::prepared_worker::{PreparedWorker, Slice};
use super::{ContentionError, report_lines};

/// How often a running process is checked.
pub(super) const POLL: Duration = Duration::from_secs(1);
/// A process that is to end may first have to read its memory from swap.
const END_LIMIT: Nanos = Nanos(60_000_000_000);

/// A process that prints a report each period.
#[derive(Debug)]
pub(super) struct Reporter {
    process: Process,
    program: &'static str,
    slice: Slice,
    /// Bytes of its output that [`Reporter::new_reports`] has read.
    consumed: usize,
}

pub(super) type Hashd = Reporter;

impl Reporter {
    /// Starts `weighbridge-agent exec PROGRAM CONFIG` in a control group.
    pub(super) async fn start(
        prepared: &PreparedWorker,
        slice: Slice,
        program: &'static str,
        config: &impl serde::Serialize,
    ) -> Result<Self, ContentionError> {
        let json = serde_json::to_string(config).map_err(|error| ContentionError::output(program, error))?;
        let command = Command::new([prepared.worker().program(), "exec", program, &json]);
        Ok(Self { process: prepared.spawn(slice, command).await?, program, slice, consumed: 0 })
    }

    pub(super) async fn hashd(prepared: &PreparedWorker, config: &HashdConfig) -> Result<Self, ContentionError> {
        Self::start(prepared, Slice::Workload, "hashd", config).await
    }

    pub(super) async fn memory_hog(
        prepared: &PreparedWorker,
        slice: Slice,
        config: &MemoryHogConfig,
    ) -> Result<Self, ContentionError> {
        Self::start(prepared, slice, "memory-hog", config).await
    }

    /// Does not move the position of [`Self::new_reports`].
    pub(super) async fn reports<R: DeserializeOwned>(&self) -> Result<Vec<R>, ContentionError> {
        let output = self.process.read_output(OutputStream::Stdout).await?;
        report_lines::parse(self.program, &output)
    }

    /// The reports since the last call.
    pub(super) async fn new_reports<R: DeserializeOwned>(&mut self) -> Result<Vec<R>, ContentionError> {
        report_lines::read_new(self.program, &self.process, &mut self.consumed).await
    }

    pub(super) async fn is_running(&self, prepared: &PreparedWorker) -> Result<bool, ContentionError> {
        let stat = read(prepared.worker(), &format!("/proc/{}/stat", self.process.pid())).await?;
        // Between its end and its reaping it is a zombie.
        Ok(stat.is_some_and(|stat| !stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('Z'))))
    }

    pub(super) async fn require_running(&self, prepared: &PreparedWorker) -> Result<(), ContentionError> {
        if self.is_running(prepared).await? { Ok(()) } else { Err(self.end_reason(prepared).await?) }
    }

    async fn end_reason(&self, prepared: &PreparedWorker) -> Result<ContentionError, ContentionError> {
        let output = self.process.wait(Some(END_LIMIT)).await?;
        self.failure(prepared, &output).await
    }

    async fn failure(
        &self,
        prepared: &PreparedWorker,
        output: &ProcessOutput,
    ) -> Result<ContentionError, ContentionError> {
        let was_killed = output.exit_reason == ExitReason::Signalled { signal: SIGKILL };
        if was_killed && prepared.oom_kills(self.slice).await? > 0 {
            let group = prepared.slice_path(self.slice);
            return Ok(ContentionError::OutOfMemory { program: self.program.to_owned(), group });
        }
        Ok(failure(self.program, output, prepared.folder(), Bytes(0)))
    }

    /// Waits for the process, which must succeed, and returns all its reports.
    pub(super) async fn wait<R: DeserializeOwned>(self, prepared: &PreparedWorker) -> Result<Vec<R>, ContentionError> {
        let output = self.process.wait(None).await?;
        if !output.exit_reason.is_success() {
            return Err(self.failure(prepared, &output).await?);
        }
        report_lines::parse(self.program, &output.stdout)
    }

    /// Ends the process, which may have ended by itself, and returns all its reports.
    pub(super) async fn finish<R: DeserializeOwned>(self) -> Result<Vec<R>, ContentionError> {
        self.process.signal(SIGTERM).await?;
        let output = self.process.wait(Some(END_LIMIT)).await?;
        report_lines::parse(self.program, &output.stdout)
    }

    pub(super) async fn kill(self) -> Result<(), ContentionError> {
        self.process.signal(SIGKILL).await?;
        self.process.wait(Some(END_LIMIT)).await?;
        Ok(())
    }
}

/// Number of reports over which a rate is compared with its target.
const STABLE_REPORTS: usize = 5;
/// Relative deviation from the target up to which hashd is stable.
const STABLE_DEVIATION: f64 = 0.1;

/// Waits until the rate of hashd has been at its target over the last reports.
pub(super) async fn stabilize(
    prepared: &PreparedWorker,
    hashd: &Hashd,
    target: f64,
    limit: Nanos,
) -> Result<(), ContentionError> {
    let start = Instant::now();
    loop {
        let reports: Vec<HashdReport> = hashd.reports().await?;
        let last = &reports[reports.len().saturating_sub(STABLE_REPORTS)..];
        let reached = rate(last);
        if last.len() == STABLE_REPORTS && (reached / target - 1.0).abs() <= STABLE_DEVIATION {
            return Ok(());
        }
        if start.elapsed() > Duration::from(limit) {
            return Err(ContentionError::Unstable { reached, target, seconds: limit.0 / 1_000_000_000 });
        }
        hashd.require_running(prepared).await?;
        sleep(POLL).await;
    }
}

/// Requests per second over several reports; 0 without any.
pub(super) fn rate(reports: &[HashdReport]) -> f64 {
    let time: f64 = reports.iter().map(|report| report.period).sum();
    let completed: u64 = reports.iter().map(|report| report.completed).sum();
    if time > 0.0 { completed as f64 / time } else { 0.0 }
}

/// Memory that is taken away from everything else, protected by its group.
#[derive(Debug)]
pub struct Balloon(Option<Reporter>);

impl Balloon {
    /// Memory of a hog besides what it writes.
    pub(super) const OVERHEAD: u64 = 32 << 20;

    /// Starts a balloon, and waits until it has its size. [`super::storage::balloon_slice`] must exist.
    pub async fn inflate(prepared: &PreparedWorker, size: Bytes) -> Result<Self, ContentionError> {
        if size.0 <= Self::OVERHEAD {
            return Ok(Self(None));
        }
        let max_bytes = size.0 - Self::OVERHEAD;
        let config = MemoryHogConfig { max_bytes, growth: None, read: false };
        let hog = Reporter::memory_hog(prepared, Slice::Balloon, &config).await?;
        loop {
            let reports: Vec<MemoryHogReport> = hog.reports().await?;
            if reports.last().is_some_and(|report| report.bytes >= max_bytes) {
                return Ok(Self(Some(hog)));
            }
            hog.require_running(prepared).await?;
            sleep(POLL).await;
        }
    }

    pub async fn deflate(self) -> Result<(), ContentionError> {
        match self.0 {
            Some(hog) => hog.kill().await,
            None => Ok(()),
        }
    }
}

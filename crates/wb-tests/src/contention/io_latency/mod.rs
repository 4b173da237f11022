//! Latencies of a block device per second, from the tracepoints of the block layer.
//!
//! Histogram triggers of tracefs ([`tracing`]) count them in the kernel, from the issue of a request to its completion.
//! `weighbridge exec io-latency` ([`watch`]) reads them on the worker once a second. [`IoLatencySeries`] has the result.

mod histogram;
pub mod tracing;
pub mod watch;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_agent::{Command, Process, Stream};
use wb_model::Nanos;

pub use histogram::LatencyHistogram;
pub use watch::{CostReport, LatencyReport, WatchConfig};

use super::ContentionError;
use super::prepared_worker::PreparedWorker;

/// Latencies of each second of a measurement
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct IoLatencySeries {
    /// The seconds with reads
    pub reads: Vec<LatencyHistogram>,
    /// The seconds with writes
    pub writes: Vec<LatencyHistogram>,
    /// Number of seconds without reads, which have no latencies
    pub seconds_without_reads: u64,
    /// Number of seconds without writes
    pub seconds_without_writes: u64,
    /// Requests whose latency is unknown: they were in flight when the kernel's table of them was cleared, or too many
    pub missing: u64,
}

impl IoLatencySeries {
    /// Collects reports of seconds.
    pub fn new(reports: impl IntoIterator<Item = LatencyReport>) -> Self {
        let mut series = Self::default();
        for LatencyReport { reads, writes, missing, .. } in reports {
            series.missing += missing;
            match reads.is_empty() {
                true => series.seconds_without_reads += 1,
                false => series.reads.push(reads),
            }
            match writes.is_empty() {
                true => series.seconds_without_writes += 1,
                false => series.writes.push(writes),
            }
        }
        series
    }

    /// Adds another measurement of the same device.
    pub fn extend(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.seconds_without_reads += other.seconds_without_reads;
        self.seconds_without_writes += other.seconds_without_writes;
        self.missing += other.missing;
    }
}

/// A measurement that is running.
#[derive(Debug)]
pub struct LatencyWatch {
    process: Process,
    /// Bytes of its output that [`LatencyWatch::new_reports`] has read.
    consumed: usize,
}

/// How long its start and its end may take on a machine without free memory.
const PATIENCE: Nanos = Nanos(60_000_000_000);
/// SIGTERM.
const TERMINATE: i32 = 15;

impl LatencyWatch {
    /// Starts to watch the device of a bench, until [`LatencyWatch::finish`]. The triggers are removed with the group.
    ///
    /// # Errors
    /// If the kernel has no histogram triggers, or tracefs is not mounted.
    pub async fn start(prepared: &PreparedWorker) -> Result<Self, ContentionError> {
        let worker = prepared.worker();
        let tracefs = tracing::find_mount(worker).await?;
        let io_stat = prepared.root_io_stat();
        let config = WatchConfig::new(&tracefs, prepared.device(), io_stat);
        let step = tracing::step(&config);
        prepared.group().apply_change(step, Some(tracing::ON.to_owned())).await?;
        let json = serde_json::to_string(&config).map_err(|error| ContentionError::output("io-latency", error))?;
        let process = prepared.group().spawn(Command::new([worker.program(), "exec", "io-latency", &json])).await?;
        Ok(Self { process, consumed: 0 })
    }

    /// The seconds measured since the last call.
    ///
    /// # Errors
    /// If the worker is lost, or a line of the output is invalid.
    pub async fn new_reports(&mut self) -> Result<Vec<LatencyReport>, ContentionError> {
        let output = self.process.read_output_from(Stream::Stdout, self.consumed).await?;
        let complete = output.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.consumed += complete;
        super::report_lines::parse("io-latency", &output[..complete]).map(|lines| lines.reports)
    }

    /// Ends the measurement.
    ///
    /// # Errors
    /// If it has failed, or the worker is lost.
    pub async fn finish(self) -> Result<Vec<LatencyReport>, ContentionError> {
        self.process.signal(TERMINATE).await?;
        let output = self.process.wait(Some(PATIENCE)).await?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        if !stderr.trim().is_empty() {
            let reason = format!("{}: {}", output.exit_reason, stderr.trim());
            return Err(ContentionError::Process { program: "io-latency".to_owned(), reason });
        }
        super::report_lines::parse("io-latency", &output.stdout).map(|lines| lines.reports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_seconds_are_counted_and_have_no_latencies() {
        let histogram = |counts: &[(u64, u64)]| LatencyHistogram::from_iter(counts.iter().copied());
        let report = |reads, writes| LatencyReport { reads, writes, missing: 2, ..LatencyReport::default() };
        let busy = histogram(&[(5, 1)]);
        let series = IoLatencySeries::new([
            report(busy.clone(), LatencyHistogram::default()),
            report(LatencyHistogram::default(), LatencyHistogram::default()),
            report(busy.clone(), busy.clone()),
        ]);
        assert_eq!((series.reads.len(), series.writes.len()), (2, 1));
        assert_eq!((series.seconds_without_reads, series.seconds_without_writes, series.missing), (1, 2, 6));
    }
}

//! Latencies of a block device per second, from the tracepoints of the block layer.
//!
//! Histogram triggers of tracefs ([`tracing`]) count them in the kernel, from the issue of a request to its completion;
//! `weighbridge-agent exec io-latency` ([`watch`]) reads them on the worker once a second.

mod histogram;
mod resources;
pub mod tracing;
pub mod watch;

use wb_agent::signal::SIGTERM;
use wb_agent::{Command, Process};
use wb_model::Nanos;

pub use histogram::LatencyHistogram;
pub use watch::{CostReport, LatencyReport, WatchConfig};

use super::prepared_worker::PreparedWorker;
use super::{ContentionError, report_lines};

#[derive(Debug)]
pub struct LatencyWatch {
    process: Process,
    /// Bytes of its output that [`LatencyWatch::new_reports`] has read.
    consumed: usize,
}

const PROGRAM: &str = "io-latency";
/// The start and the end may take so long on a machine without free memory.
const PATIENCE: Nanos = Nanos(60_000_000_000);

impl LatencyWatch {
    /// Watches the device of a bench until [`LatencyWatch::finish`]. The triggers are removed with the group. Fails if
    /// the kernel has no histogram triggers, or tracefs is not mounted.
    pub async fn start(prepared: &PreparedWorker) -> Result<Self, ContentionError> {
        let worker = prepared.worker();
        let tracefs = tracing::find_mount(worker).await?;
        let io_stat = prepared.root_io_stat();
        let config = WatchConfig::new(&tracefs, prepared.device(), io_stat);
        let resource = tracing::resource(&config);
        prepared.group().apply_change(resource, Some(tracing::ON.to_owned())).await?;
        let json = serde_json::to_string(&config).map_err(|error| ContentionError::output(PROGRAM, error))?;
        let process = prepared.group().spawn(Command::new([worker.program(), "exec", PROGRAM, &json])).await?;
        Ok(Self { process, consumed: 0 })
    }

    /// The seconds measured since the last call.
    pub async fn new_reports(&mut self) -> Result<Vec<LatencyReport>, ContentionError> {
        report_lines::read_new(PROGRAM, &self.process, &mut self.consumed).await
    }

    pub async fn finish(self) -> Result<Vec<LatencyReport>, ContentionError> {
        self.process.signal(SIGTERM).await?;
        let output = self.process.wait(Some(PATIENCE)).await?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        if !stderr.trim().is_empty() {
            let reason = format!("{}: {}", output.exit_reason, stderr.trim());
            return Err(ContentionError::Process { program: PROGRAM.to_owned(), reason });
        }
        report_lines::parse(PROGRAM, &output.stdout)
    }
}

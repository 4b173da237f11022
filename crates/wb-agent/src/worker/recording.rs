//! Telemetry recordings on a worker.

use wb_sys::telemetry::Telemetry;

use crate::protocol::{AgentSession, call};

use super::{Worker, WorkerError};

/// An active telemetry recording. Dropping it ends the recording and discards its data.
#[derive(Debug)]
pub struct Recording {
    worker: Worker,
    id: u32,
    open: bool,
}

#[derive(Debug)]
pub struct TelemetryRecord {
    /// Telemetry of the whole machine and of the workload.
    pub telemetry: Telemetry,
    /// Runs of other controllers that were active meanwhile; empty unless this worker's own run is announced.
    pub other_runs: Vec<AgentSession>,
}

impl Recording {
    pub(super) fn new(worker: Worker, id: u32) -> Self {
        Self { worker, id, open: true }
    }

    /// Takes the last reading and ends the recording. Call it before the group is torn down, so that the reading
    /// includes the workload.
    pub async fn finish(mut self) -> Result<TelemetryRecord, WorkerError> {
        self.open = false;
        let (telemetry, other_runs) = self.worker.call(call::FinishRecording { recording: self.id }).await?;
        Ok(TelemetryRecord { telemetry, other_runs })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(call::FinishRecording { recording: self.id });
        }
    }
}

//! Telemetry of a worker while a group runs on it.

use wb_sys::telemetry::Telemetry;

use crate::protocol::Request;
use crate::session::AgentSession;

use super::{Worker, WorkerError};

/// A recording under way on a worker. It ends, unread, when it is dropped.
#[derive(Debug)]
pub struct Recording {
    worker: Worker,
    id: u32,
    open: bool,
}

/// What was recorded.
#[derive(Debug)]
pub struct TelemetryRecord {
    /// What the system did.
    pub telemetry: Telemetry,
    /// The runs of other controllers that were under way meanwhile, where the worker's own is announced.
    pub other_runs: Vec<AgentSession>,
}

impl Recording {
    pub(super) fn new(worker: Worker, id: u32) -> Self {
        Self { worker, id, open: true }
    }

    /// Takes the last reading and ends it. To be done before the group is torn down, so that the
    /// workload's part of that reading is known.
    pub async fn finish(mut self) -> Result<TelemetryRecord, WorkerError> {
        self.open = false;
        let (other_runs, telemetry) =
            self.worker.call_for_value_and_payload(Request::FinishRecording { recording: self.id }).await?;
        Ok(TelemetryRecord { telemetry, other_runs })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(Request::FinishRecording { recording: self.id });
        }
    }
}

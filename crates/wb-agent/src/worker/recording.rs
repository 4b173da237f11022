//! Telemetry of a worker while a group runs on it.

use wb_sys::telemetry::Telemetry;

use crate::protocol::Request;
use crate::terms::Holder;

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
pub struct Recorded {
    /// What the system did.
    pub telemetry: Telemetry,
    /// The runs of other controllers that were under way meanwhile, where the worker's own is announced.
    pub other_runs: Vec<Holder>,
}

impl Recording {
    pub(super) fn new(worker: Worker, id: u32) -> Self {
        Self { worker, id, open: true }
    }

    /// Takes the last reading and ends it. To be done before the group is torn down, so that the
    /// workload's part of that reading is known.
    pub async fn finish(mut self) -> Result<Recorded, WorkerError> {
        self.open = false;
        let (other_runs, telemetry) = self.worker.ask_beside(Request::FinishRecording { recording: self.id }).await?;
        Ok(Recorded { telemetry, other_runs })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.open {
            self.worker.tell(Request::FinishRecording { recording: self.id });
        }
    }
}

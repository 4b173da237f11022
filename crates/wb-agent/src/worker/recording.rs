//! Telemetry of a worker while a group runs on it.

use wb_sys::telemetry::Telemetry;

use crate::protocol::Request;

use super::{Worker, WorkerError};

/// A recording under way on a worker. It ends, unread, when it is dropped.
#[derive(Debug)]
pub struct Recording {
    worker: Worker,
    id: u32,
    open: bool,
}

impl Recording {
    pub(super) fn new(worker: Worker, id: u32) -> Self {
        Self { worker, id, open: true }
    }

    /// Takes the last reading and ends it. To be done before the group is torn down, so that the
    /// workload's part of that reading is known.
    pub async fn finish(mut self) -> Result<Telemetry, WorkerError> {
        self.open = false;
        self.worker.ask_long(Request::FinishRecording { recording: self.id }).await
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.open {
            self.worker.tell(Request::FinishRecording { recording: self.id });
        }
    }
}

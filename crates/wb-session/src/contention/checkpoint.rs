//! Checkpoints of a stage, which its runner writes and reads.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_contention::runner::{Checkpoint, StageContext, StageError, StageFailure};
use wb_sys::clock::suspended_time;

/// The checkpoint of earlier attempts; `None` if there is none. Fails if it is of another kind of stage.
pub(super) fn read<C: DeserializeOwned>(context: &StageContext<'_>) -> Result<Option<C>, StageFailure> {
    let Some(Checkpoint(value)) = context.resume_from() else { return Ok(None) };
    let invalid = |error| StageFailure::Machine { reason: format!("invalid checkpoint: {error}") };
    serde_json::from_value(value.clone()).map(Some).map_err(invalid)
}

/// Writes checkpoints. A function that measures cannot fail by writing one, so the first error is kept.
pub(super) struct CheckpointWriter<'a, 'b> {
    context: &'a mut StageContext<'b>,
    suspended: Duration,
    failed: Option<StageError>,
}

impl<'a, 'b> CheckpointWriter<'a, 'b> {
    pub(super) fn new(context: &'a mut StageContext<'b>) -> Self {
        Self { context, suspended: suspended_time(), failed: None }
    }

    /// Writes a checkpoint, unless the machine was suspended meanwhile: what was measured then does not count.
    pub(super) fn write(&mut self, progress: &impl Serialize) {
        let is_suspended = suspended_time().saturating_sub(self.suspended).as_secs() > 0;
        if self.failed.is_some() || is_suspended {
            return;
        }
        let written = match serde_json::to_value(progress) {
            Ok(value) => self.context.checkpoint(Checkpoint(value)),
            Err(error) => Err(StageFailure::Machine { reason: error.to_string() }.into()),
        };
        self.failed = written.err();
    }

    pub(super) fn finish(self) -> Result<(), StageError> {
        self.failed.map_or(Ok(()), Err)
    }
}

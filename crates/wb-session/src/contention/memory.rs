//! The memory of a stage: what there is, and what a memory profile leaves of it.

use wb_contention::runner::{StageError, StageFailure};
use wb_contention_worker::{MemoryProfile, MemoryShare, PreparedWorker, storage};
use wb_model::Bytes;

use super::ContentionSession;

impl ContentionSession {
    /// The share of a memory profile. What is available is determined once per session, unless the user knows it.
    pub(super) async fn memory_share(
        &self,
        prepared: &PreparedWorker,
        profile: Option<u32>,
    ) -> Result<MemoryShare, StageError> {
        let avail = match self.available_memory() {
            Some(avail) => avail,
            None => storage::probe_available_memory(prepared).await.map_err(|error| self.failure(error))?,
        };
        self.mem_avail.set(Some(avail));
        self.share_of(avail, profile)
    }

    /// Available memory, if it is determined or given.
    pub(super) fn available_memory(&self) -> Option<Bytes> {
        self.mem_avail.get().or(self.options.mem_avail)
    }

    pub(super) fn share_of(&self, avail: Bytes, profile: Option<u32>) -> Result<MemoryShare, StageError> {
        let profile = profile.map(MemoryProfile::try_from).transpose();
        let profile = profile.map_err(|error| StageFailure::Machine { reason: error.to_string() })?;
        MemoryShare::new(profile, avail).map_err(|error| self.failure(error))
    }
}

/// A share, as results record it.
pub(super) fn recorded(share: MemoryShare) -> wb_results::contention::MemoryProfile {
    let MemoryShare { profile, avail, share, target } = share;
    wb_results::contention::MemoryProfile { profile: profile.map(u32::from), avail, share, target }
}

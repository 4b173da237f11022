//! Files of a worker that may be missing.

use wb_agent::{Fault, Worker, WorkerError};
use wb_model::Bytes;
use wb_sys::proc::meminfo;

/// Maximum size of a file of the kernel.
const MAX_SIZE: Bytes = Bytes(16 << 20);

/// Reads a file without surrounding white space; `None` if it does not exist.
pub(super) async fn read(worker: &Worker, path: &str) -> Result<Option<String>, WorkerError> {
    match worker.get(path, MAX_SIZE).await {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
        Err(WorkerError::Fault { fault: Fault::File { missing: true, .. }, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a file; empty if it does not exist, or the kernel refuses to read it, as for a setting that the device lacks.
pub(super) async fn read_or_empty(worker: &Worker, path: &str) -> Result<String, WorkerError> {
    match worker.get(path, MAX_SIZE).await {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
        Err(WorkerError::Fault { fault: Fault::File { .. }, .. }) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// A size of `/proc/meminfo`, in bytes; 0 if it is missing.
pub(super) fn meminfo_bytes(text: &str, name: &str) -> u64 {
    meminfo::size(text, name).map_or(0, |size| size.0)
}

/// The names in a folder, sorted; none if it does not exist.
pub(super) async fn names(worker: &Worker, path: &str) -> Result<Vec<String>, WorkerError> {
    match worker.list(path).await {
        Ok(entries) => Ok(entries.into_iter().map(|entry| entry.name).collect()),
        Err(WorkerError::Fault { fault: Fault::File { missing: true, .. }, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

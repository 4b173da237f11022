//! Synchronised start of processes on several workers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use wb_model::{Nanos, WorkerName};

use crate::clock::{ClockOffset, monotonic_ns};

use super::{Process, Worker, WorkerError};

/// Lead time before the common start on top of the network delay: once, and per process.
const START_LEAD: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(1));

/// Start of one process in a synchronised start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStart {
    /// Its worker.
    pub worker: WorkerName,
    /// Delay of its release after the common start time, as measured by its agent.
    pub delay: Nanos,
    /// Offset of its worker's clock from ours, used to convert the common start time.
    pub clock: ClockOffset,
}

/// Result of a synchronised start, in the order of the processes given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SynchronizedStart {
    /// The start of each process.
    pub starts: Vec<ProcessStart>,
}

impl SynchronizedStart {
    /// Time between the first and the last start, up to the errors of the clock offsets.
    pub fn skew(&self) -> Nanos {
        let late = || self.starts.iter().map(|start| start.delay.0);
        Nanos(late().max().unwrap_or(0) - late().min().unwrap_or(0))
    }
}

/// Lets suspended processes on any number of workers start at one time. The clock offsets are measured first; each
/// agent then gets the start time by its own clock and waits for it locally, so no network delay is part of the start.
/// After an error, some of the processes may have started.
pub async fn start_synchronized(processes: &[&Process]) -> Result<SynchronizedStart, WorkerError> {
    let workers = processes.iter().map(|process| process.worker.clone());
    let clocks = join_ordered(workers.map(|worker: Worker| async move { worker.clock_offset().await })).await?;
    let longest = clocks.iter().map(|clock| clock.rtt).max().unwrap_or_default();
    let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    let lead = 4 * Duration::from(longest) + START_LEAD.0 + START_LEAD.1.saturating_mul(count);
    let start_ns = monotonic_ns() + u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX);
    let releases =
        processes.iter().zip(&clocks).map(|(process, clock)| process.release_at(clock.to_remote_ns(start_ns)));
    let delays = join_ordered(releases).await?;
    let to_start = |((process, clock), delay): ((&&Process, ClockOffset), Nanos)| ProcessStart {
        worker: process.worker.name().clone(),
        delay,
        clock,
    };
    Ok(SynchronizedStart { starts: processes.iter().zip(clocks).zip(delays).map(to_start).collect() })
}

/// Runs futures concurrently; returns their results in order, or the first error.
async fn join_ordered<T: Send + 'static>(
    futures: impl Iterator<Item = impl Future<Output = Result<T, WorkerError>> + Send + 'static>,
) -> Result<Vec<T>, WorkerError> {
    let mut tasks = JoinSet::new();
    for (index, future) in futures.enumerate() {
        tasks.spawn(async move { Ok((index, future.await?)) });
    }
    let mut results = tasks.join_all().await.into_iter().collect::<Result<Vec<(usize, T)>, WorkerError>>()?;
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

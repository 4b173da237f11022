//! Processes of several workers that start at the same time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use wb_model::{Nanos, WorkerName};

use crate::clock::{ClockOffset, monotonic_ns};

use super::{Process, Worker, WorkerError};

/// What the messages that name the time may take beside the ways: the first of it for all, the second for each process.
const START_LEAD: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(1));

/// How one process started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStart {
    /// The worker it is on.
    pub worker: WorkerName,
    /// How much later than the common time it was let go, as its agent measured it.
    pub delay: Nanos,
    /// How far its worker's clock is ahead of ours, by which the common time was told to it.
    pub clock: ClockOffset,
}

/// How processes started together, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SynchronizedStart {
    /// Each of them.
    pub starts: Vec<ProcessStart>,
}

impl SynchronizedStart {
    /// The time between the first and the last start; each may be off by its clock's error.
    pub fn spread(&self) -> Nanos {
        let late = || self.starts.iter().map(|start| start.delay.0);
        Nanos(late().max().unwrap_or(0) - late().min().unwrap_or(0))
    }
}

/// Lets held processes start at one time, on however many workers. The clocks of the workers are compared first; then
/// each agent is told when, by its own clock, and waits for it by itself.
///
/// # Errors
/// When a worker is lost, or a process cannot start any more. Others may have started then.
pub async fn start_synchronized(processes: &[&Process]) -> Result<SynchronizedStart, WorkerError> {
    let workers = processes.iter().map(|process| process.worker.clone());
    let clocks = join_ordered(workers.map(|worker: Worker| async move { worker.clock_offset().await })).await?;
    let longest = clocks.iter().map(|clock| clock.rtt).max().unwrap_or_default();
    let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    let lead = 4 * Duration::from(longest) + START_LEAD.0 + START_LEAD.1.saturating_mul(count);
    let start_ns = monotonic_ns() + u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX);
    let releases =
        processes.iter().zip(&clocks).map(|(process, clock)| process.release_at(clock.to_remote_ns(start_ns)));
    let late = join_ordered(releases).await?;
    let of = |((process, clock), late): ((&&Process, ClockOffset), Nanos)| ProcessStart {
        worker: process.worker.name().clone(),
        delay: late,
        clock,
    };
    Ok(SynchronizedStart { starts: processes.iter().zip(clocks).zip(late).map(of).collect() })
}

/// Does all at once; the results in order, or the first error.
async fn join_ordered<T: Send + 'static>(
    futures: impl Iterator<Item = impl Future<Output = Result<T, WorkerError>> + Send + 'static>,
) -> Result<Vec<T>, WorkerError> {
    let mut tasks = JoinSet::new();
    for (place, future) in futures.enumerate() {
        tasks.spawn(async move { Ok((place, future.await?)) });
    }
    let mut done = tasks.join_all().await.into_iter().collect::<Result<Vec<(usize, T)>, WorkerError>>()?;
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

//! Barrier that lets processes on several workers start at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use wb_agent::{Process, ProcessStart, start_synchronized};

use crate::Failure;
use crate::attempt::worker_failure;

/// A participant's slot in a start barrier; dropping it reduces the number of participants.
#[derive(Debug)]
pub struct BarrierSlot(Arc<Mutex<StartBarrier>>);

#[derive(Debug)]
struct StartBarrier {
    slots: usize,
    arrived: Vec<Arrival>,
}

/// A process that waits to be started, and whoever waits for that.
#[derive(Debug)]
struct Arrival {
    process: Arc<Process>,
    reply: oneshot::Sender<Result<ProcessStart, Failure>>,
}

impl BarrierSlot {
    /// The seats of a meeting of so many.
    pub fn new_group(seats: usize) -> Vec<Self> {
        let meeting = Arc::new(Mutex::new(StartBarrier { slots: seats, arrived: Vec::new() }));
        (0..seats).map(|_| Self(meeting.clone())).collect()
    }

    /// Has a held process started together with those of all that have a seat, once these are here; how it started.
    ///
    /// # Errors
    /// When one of the workers is lost, or a process cannot start any more.
    pub(crate) async fn start(&self, process: Arc<Process>) -> Result<ProcessStart, Failure> {
        let (told, start) = oneshot::channel();
        {
            let mut meeting = lock(&self.0);
            meeting.arrived.push(Arrival { process, reply: told });
            meeting.release_if_full();
        }
        start.await.unwrap_or_else(|_| Err(Failure::crashed("nobody started the process")))
    }
}

impl Drop for BarrierSlot {
    fn drop(&mut self) {
        let mut meeting = lock(&self.0);
        meeting.slots -= 1;
        meeting.release_if_full();
    }
}

impl StartBarrier {
    fn release_if_full(&mut self) {
        if !self.arrived.is_empty() && self.arrived.len() >= self.slots {
            tokio::spawn(start_all(std::mem::take(&mut self.arrived)));
        }
    }
}

async fn start_all(arrived: Vec<Arrival>) {
    let (processes, told): (Vec<_>, Vec<_>) = arrived.into_iter().map(|one| (one.process, one.reply)).unzip();
    let started = start_synchronized(&processes.iter().map(AsRef::as_ref).collect::<Vec<_>>()).await;
    let starts: Vec<Result<ProcessStart, Failure>> = match started {
        Ok(together) => together.starts.into_iter().map(Ok).collect(),
        Err(error) => {
            let failure = worker_failure(error);
            processes.iter().map(|_| Err(failure.clone())).collect()
        }
    };
    for (told, start) in told.into_iter().zip(starts) {
        // One that was cancelled meanwhile does not wait any more.
        let _ = told.send(start);
    }
}

fn lock(meeting: &Mutex<StartBarrier>) -> MutexGuard<'_, StartBarrier> {
    meeting.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Where attempts on several workers wait for each other, so that what they measure starts at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use wb_agent::{Process, Start, start_together};

use crate::Failure;
use crate::attempt::lost;

/// A place in a meeting: whoever has one is waited for until it is dropped.
#[derive(Debug)]
pub struct Seat(Arc<Mutex<Meeting>>);

#[derive(Debug)]
struct Meeting {
    seats: usize,
    arrived: Vec<Arrival>,
}

/// A process that waits to be started, and whoever waits for that.
#[derive(Debug)]
struct Arrival {
    process: Arc<Process>,
    told: oneshot::Sender<Result<Start, Failure>>,
}

impl Seat {
    /// The seats of a meeting of so many.
    pub fn several(seats: usize) -> Vec<Self> {
        let meeting = Arc::new(Mutex::new(Meeting { seats, arrived: Vec::new() }));
        (0..seats).map(|_| Self(meeting.clone())).collect()
    }

    /// Has a held process started together with those of all that have a seat, once these are here; how it started.
    ///
    /// # Errors
    /// When one of the workers is lost, or a process cannot start any more.
    pub(crate) async fn start(&self, process: Arc<Process>) -> Result<Start, Failure> {
        let (told, start) = oneshot::channel();
        {
            let mut meeting = lock(&self.0);
            meeting.arrived.push(Arrival { process, told });
            meeting.open_if_all();
        }
        start.await.unwrap_or_else(|_| Err(Failure::crashed("nobody started the process")))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut meeting = lock(&self.0);
        meeting.seats -= 1;
        meeting.open_if_all();
    }
}

impl Meeting {
    fn open_if_all(&mut self) {
        if !self.arrived.is_empty() && self.arrived.len() >= self.seats {
            tokio::spawn(start(std::mem::take(&mut self.arrived)));
        }
    }
}

async fn start(arrived: Vec<Arrival>) {
    let (processes, told): (Vec<_>, Vec<_>) = arrived.into_iter().map(|one| (one.process, one.told)).unzip();
    let started = start_together(&processes.iter().map(AsRef::as_ref).collect::<Vec<_>>()).await;
    let starts: Vec<Result<Start, Failure>> = match started {
        Ok(together) => together.starts.into_iter().map(Ok).collect(),
        Err(error) => {
            let failure = lost(error);
            processes.iter().map(|_| Err(failure.clone())).collect()
        }
    };
    for (told, start) in told.into_iter().zip(starts) {
        // One that was cancelled meanwhile does not wait any more.
        let _ = told.send(start);
    }
}

fn lock(meeting: &Mutex<Meeting>) -> MutexGuard<'_, Meeting> {
    meeting.lock().unwrap_or_else(PoisonError::into_inner)
}

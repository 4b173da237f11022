//! Barrier that lets processes on several workers start at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use wb_agent::{Process, ProcessStart, start_synchronized};

use crate::Failure;

/// A participant's slot in a start barrier; dropping it reduces the number of participants.
#[derive(Debug)]
pub struct BarrierSlot {
    barrier: Arc<Mutex<StartBarrier<Arc<Process>>>>,
    number: usize,
}

#[derive(Debug)]
struct StartBarrier<P> {
    /// Including those that have arrived.
    participants: usize,
    arrived: Vec<Arrival<P>>,
}

/// A process that is ready to start, and the channel to report its start on.
#[derive(Debug)]
struct Arrival<P> {
    process: P,
    reply: oneshot::Sender<Result<ProcessStart, Failure>>,
}

impl BarrierSlot {
    /// Creates a barrier; returns the slot of each participant.
    pub fn new_barrier(participants: usize) -> Vec<Self> {
        let barrier = Arc::new(Mutex::new(StartBarrier { participants, arrived: Vec::new() }));
        (0..participants).map(|number| Self { barrier: barrier.clone(), number }).collect()
    }

    /// Position of the participant, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Starts a suspended process once all participants have arrived, together with theirs. Fails if the connection to
    /// one of the workers is lost, or a process can no longer be started.
    pub async fn start(&self, process: Arc<Process>) -> Result<ProcessStart, Failure> {
        let (sender, start) = oneshot::channel();
        {
            let mut barrier = lock(&self.barrier);
            barrier.arrived.push(Arrival { process, reply: sender });
            barrier.release_if_all_arrived();
        }
        start
            .await
            .unwrap_or_else(|_| Err(Failure::crashed("the start of the processes ended before this one started")))
    }
}

impl Drop for BarrierSlot {
    fn drop(&mut self) {
        let mut barrier = lock(&self.barrier);
        barrier.participants -= 1;
        barrier.release_if_all_arrived();
    }
}

impl StartBarrier<Arc<Process>> {
    fn release_if_all_arrived(&mut self) {
        if let Some(arrived) = self.take_if_all_arrived() {
            tokio::spawn(start_all(arrived));
        }
    }
}

impl<P> StartBarrier<P> {
    /// The arrivals, once there is one of each participant.
    fn take_if_all_arrived(&mut self) -> Option<Vec<Arrival<P>>> {
        // A participant that was cancelled after its arrival no longer waits.
        self.arrived.retain(|arrival| !arrival.reply.is_closed());
        (!self.arrived.is_empty() && self.arrived.len() >= self.participants).then(|| std::mem::take(&mut self.arrived))
    }
}

async fn start_all(arrived: Vec<Arrival<Arc<Process>>>) {
    let (processes, replies): (Vec<_>, Vec<_>) =
        arrived.into_iter().map(|arrival| (arrival.process, arrival.reply)).unzip();
    let started = start_synchronized(&processes.iter().map(AsRef::as_ref).collect::<Vec<_>>()).await;
    let starts: Vec<Result<ProcessStart, Failure>> = match started {
        Ok(together) => together.starts.into_iter().map(Ok).collect(),
        Err(error) => {
            let failure = Failure::from(error);
            processes.iter().map(|_| Err(failure.clone())).collect()
        }
    };
    for (reply, start) in replies.into_iter().zip(starts) {
        // A participant that was cancelled in the meantime no longer waits.
        let _ = reply.send(start);
    }
}

fn lock<P>(barrier: &Mutex<StartBarrier<P>>) -> MutexGuard<'_, StartBarrier<P>> {
    barrier.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participant_that_was_cancelled_after_its_arrival_is_not_counted() {
        let mut barrier = StartBarrier { participants: 3, arrived: Vec::new() };
        let arrive = |barrier: &mut StartBarrier<char>, process| {
            let (reply, start) = oneshot::channel();
            barrier.arrived.push(Arrival { process, reply });
            start
        };
        let cancelled = arrive(&mut barrier, 'a');
        drop(cancelled);
        barrier.participants -= 1;
        let _waiting = arrive(&mut barrier, 'b');
        assert!(barrier.take_if_all_arrived().is_none(), "c has not arrived");
        let _last = arrive(&mut barrier, 'c');
        let started = barrier.take_if_all_arrived().map(|all| all.into_iter().map(|arrival| arrival.process).collect());
        assert_eq!(started, Some(vec!['b', 'c']));
    }
}

//! Messages between the driver of an engine and its executors.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::clock::Nanos;
use super::interrupt::InterruptHandle;
use super::protocol::{EngineCommand, EngineError, StrandTotals};
use super::tally::{StrandTally, TransactionTally};
use wb_results::net::ConnectionInfo;
use wb_results::net::Usage;

/// An input of an engine's driver: from the run's coordinator, or from the engine's own threads.
#[derive(Debug)]
pub(super) enum EngineInput {
    Command(EngineCommand),
    Executor(ExecutorEvent),
    Quit,
}

#[derive(Debug)]
pub(super) enum ExecutorCommand {
    Run {
        group: usize,
        transaction: usize,
        began: Nanos,
        end: Option<Nanos>,
    },
    /// Poll the waiting strands of a group for progress.
    Poll {
        group: usize,
    },
    /// Receive what the other side sent to these strands and is still in flight.
    Drain {
        group: usize,
        totals: Vec<StrandTotals>,
    },
    /// Report the metrics and end.
    Report,
}

#[derive(Debug)]
pub(super) enum ExecutorEvent {
    Ready { executor: usize, waker: Waker },
    Ended { group: usize, totals: StrandTotals },
    Drained { group: usize, totals: StrandTotals },
    Failed(EngineError),
    Report(Box<ExecutorReport>),
}

#[derive(Debug, Clone)]
pub(super) enum Waker {
    Thread(InterruptHandle),
    Eventfd(Arc<OwnedFd>),
}

impl Waker {
    pub(super) fn wake(&self) {
        match self {
            Self::Thread(thread) => thread.interrupt(),
            Self::Eventfd(fd) => {
                // Ignored: a saturated counter wakes the reader too.
                let _: rustix::io::Result<usize> = rustix::io::write(&**fd, &1_u64.to_ne_bytes());
            }
        }
    }
}

/// Metrics of one group, as one executor measured them.
#[derive(Debug)]
pub(super) struct ExecutorReport {
    pub(super) group: usize,
    pub(super) transactions: Vec<TransactionTally>,
    pub(super) strands: Vec<StrandTally>,
    pub(super) connections: ConnectionInfo,
    pub(super) usage: Usage,
    pub(super) refused: u64,
}

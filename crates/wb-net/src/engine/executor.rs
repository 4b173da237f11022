//! Executors: threads that run one blocking strand each, or many by an event loop.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::Duration,
};

use super::{
    clock::{self, Nanos},
    interrupt::InterruptHandle,
    latencies::LatencyBuffer,
    latency::LatencyHistogram,
    perf_counters::PerfCounters,
    plan::GroupPlan,
    protocol::{EngineError, Settings, StrandTotals},
    raw_log::RawLog,
    strand::{Strand, StrandContext, StrandStatus},
    tally::{FlowopTally, Intervals, LiveCounters, StrandTally, TransactionTally},
    usage::Usage,
    wait,
};
use crate::transport::ConnectionInfo;

/// Told to a hand.
#[derive(Debug)]
pub(super) enum ExecutorCommand {
    /// Carry out a transaction of a group.
    Run { group: usize, transaction: usize, began: Nanos, end: Option<Nanos> },
    /// Look again whether waiting strands of a group can go on.
    Poll { group: usize },
    /// Take in what the other side sent to these strands.
    Drain { group: usize, totals: Vec<StrandTotals> },
    /// Tell what was measured and end.
    Report,
}

/// Heard from a hand.
#[derive(Debug)]
pub(super) enum ExecutorEvent {
    /// It runs and can be reached.
    Ready { hand: usize, reach: Waker },
    /// A strand is done with a transaction.
    Ended { group: usize, totals: StrandTotals },
    /// A strand has taken in what was sent to it.
    Drained { group: usize, totals: StrandTotals },
    /// A strand cannot go on.
    Failed(EngineError),
    /// What was measured.
    Report(Box<ExecutorReport>),
}

/// Wakes an executor that is blocked.
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
                // A counter that is full wakes as well.
                let _: rustix::io::Result<usize> = rustix::io::write(&**fd, &1_u64.to_ne_bytes());
            }
        }
    }
}

/// What a hand measured of one group.
#[derive(Debug)]
pub(super) struct ExecutorReport {
    pub(super) group: usize,
    pub(super) transactions: Vec<TransactionTally>,
    pub(super) strands: Vec<StrandTally>,
    pub(super) connections: ConnectionInfo,
    pub(super) usage: Usage,
    pub(super) refused: u64,
}

/// Metrics that one executor records for one group.
pub(super) struct GroupMetrics {
    pub(super) group: usize,
    pub(super) plan: Arc<GroupPlan>,
    pub(super) transactions: Vec<TransactionTally>,
    pub(super) usage: Usage,
    pub(super) published: Arc<LiveCounters>,
    jots: LatencyBuffer,
    pub(super) raw: Option<RawLog>,
    pub(super) counters: Option<PerfCounters>,
    measure_cpu: bool,
    record: bool,
}

impl GroupMetrics {
    pub(super) fn new(
        group: usize,
        plan: Arc<GroupPlan>,
        digits: u8,
        settings: &Settings,
        published: Arc<LiveCounters>,
        raw: Option<RawLog>,
    ) -> Self {
        let transactions = plan
            .transactions
            .iter()
            .map(|transaction| {
                let paced = || transaction.period.map(|_| LatencyHistogram::new(digits));
                TransactionTally {
                    began: Nanos::MAX,
                    ended: 0,
                    rounds: LatencyHistogram::new(digits),
                    response: paced(),
                    lag: paced(),
                    flowops: transaction
                        .flowops
                        .iter()
                        .map(|flowop| FlowopTally::new(digits, flowop.period.is_some(), settings.counters.len()))
                        .collect(),
                    intervals: Intervals::new(settings.progress_interval),
                }
            })
            .collect();
        let (measure_cpu, record) = (settings.flowop_cpu, !settings.totals_only);
        let (jots, usage) = (LatencyBuffer::new(), Usage::default());
        Self { group, plan, transactions, usage, published, jots, raw, counters: None, measure_cpu, record }
    }

    /// Opens what counts for the thread that calls.
    pub(super) fn open_counters(&mut self, settings: &Settings) -> Result<(), EngineError> {
        if !settings.counters.is_empty() {
            let counters = PerfCounters::open(&settings.counters);
            self.counters = Some(counters.map_err(|what| EngineError { unsupported: true, ..EngineError::new(what) })?);
        }
        Ok(())
    }

    pub(super) fn begin_transaction(&mut self, transaction: usize, began: Nanos, end: Option<Nanos>) {
        self.jots.flush(&mut self.transactions);
        let tally = &mut self.transactions[transaction];
        tally.began = tally.began.min(began);
        if self.record {
            tally.intervals.begin(began, end.map(|end| end - began));
        }
    }

    pub(super) fn end_transaction(&mut self, transaction: usize, end: Option<Nanos>) {
        let tally = &mut self.transactions[transaction];
        // Iterations may be done before they would be cut.
        let now = clock::now();
        tally.ended = tally.ended.max(end.map_or(now, |end| end.min(now)));
    }

    pub(super) fn context<'a>(&'a mut self, buffer: &'a mut [u8]) -> StrandContext<'a> {
        StrandContext {
            buffer,
            transactions: &mut self.transactions,
            published: &self.published,
            latencies: &mut self.jots,
            raw: self.raw.as_mut(),
            counters: self.counters.as_mut(),
            measure_cpu: self.measure_cpu,
            record: self.record,
        }
    }

    pub(super) fn into_report(mut self, strands: &[Strand]) -> ExecutorReport {
        self.jots.flush(&mut self.transactions);
        if let Some(raw) = &mut self.raw {
            raw.flush();
        }
        let mut connections = ConnectionInfo::default();
        strands.iter().for_each(|strand| connections.add(&strand.info()));
        ExecutorReport {
            group: self.group,
            transactions: self.transactions,
            strands: strands.iter().map(|strand| strand.tally).collect(),
            connections,
            usage: self.usage,
            refused: strands.iter().map(Strand::take_refused).sum(),
        }
    }
}

/// Carries out one strand on this thread.
pub(super) fn run_blocking(
    executor: usize,
    mut strand: Strand,
    mut notes: GroupMetrics,
    settings: &Settings,
    told: &Receiver<ExecutorCommand>,
    site: &Sender<super::local::EngineInput>,
) {
    let tell = |heard| site.send(super::local::EngineInput::Executor(heard)).is_ok();
    prepare_thread(settings, executor);
    if let Err(fault) = notes.open_counters(settings) {
        tell(ExecutorEvent::Failed(fault));
    }
    let group = notes.group;
    let mut buffer = incompressible_buffer(notes.plan.buffer);
    if !tell(ExecutorEvent::Ready { hand: executor, reach: Waker::Thread(InterruptHandle::current_thread()) }) {
        return;
    }
    while let Ok(told) = next_command(told, &mut strand) {
        let went_on = match told {
            ExecutorCommand::Run { transaction, began, end, .. } => {
                let before = Usage::current_thread();
                notes.begin_transaction(transaction, began, end);
                strand.begin_transaction(transaction, began, end);
                let failed = run_to_completion(|| strand.advance(&mut notes.context(&mut buffer)));
                notes.end_transaction(transaction, end);
                if notes.plan.is_data_phase(transaction) {
                    notes.usage.add(Usage::current_thread().since(before));
                }
                match failed {
                    Some(fault) => tell(ExecutorEvent::Failed(fault)),
                    None => tell(ExecutorEvent::Ended { group, totals: strand.totals() }),
                }
            }
            ExecutorCommand::Poll { .. } => true,
            ExecutorCommand::Drain { totals, .. } => {
                strand.begin_drain(totals.into_iter().next().map(|totals| totals.connections).unwrap_or_default());
                match run_to_completion(|| strand.drain(&mut buffer)) {
                    None => tell(ExecutorEvent::Drained { group, totals: strand.totals() }),
                    Some(fault) => tell(ExecutorEvent::Failed(fault)),
                }
            }
            ExecutorCommand::Report => {
                tell(ExecutorEvent::Report(Box::new(notes.into_report(&[strand]))));
                return;
            }
        };
        if !went_on {
            return;
        }
    }
}

/// Between two looks at connections that nobody uses.
pub(super) const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(1);

/// What is told next; until then the strand's connections are tended.
fn next_command(told: &Receiver<ExecutorCommand>, strand: &mut Strand) -> Result<ExecutorCommand, RecvTimeoutError> {
    while strand.maintain() {
        match told.recv_timeout(MAINTENANCE_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            told => return told,
        }
    }
    told.recv().map_err(|_| RecvTimeoutError::Disconnected)
}

/// Goes on, and waits where that is to be done; says what failed.
fn run_to_completion(mut go_on: impl FnMut() -> StrandStatus) -> Option<EngineError> {
    loop {
        match go_on() {
            StrandStatus::Wait(wait) => wait::block_until_ready(&wait, None),
            StrandStatus::Yield => {}
            StrandStatus::Ended => return None,
            StrandStatus::Failed(fault) => return Some(fault),
        }
    }
}

/// Where the thread runs, and how exactly it is woken.
pub(super) fn prepare_thread(settings: &Settings, hand: usize) {
    if !settings.cpus.is_empty() {
        let mut set = rustix::thread::CpuSet::new();
        set.set(settings.cpus[hand % settings.cpus.len()]);
        // The CPUs were checked when the settings were; a thread elsewhere is still a thread.
        let _: rustix::io::Result<()> = rustix::thread::sched_setaffinity(None, &set);
    }
    // Sleeps end when they are asked to, not up to 50 microseconds later.
    let _: rustix::io::Result<()> = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Fills a send buffer with pseudo-random, incompressible bytes.
pub(super) fn incompressible_buffer(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = vec![0; length];
    for chunk in bytes.chunks_mut(8) {
        // Marsaglia's xorshift (2003) is random enough for a compressor.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_ne_bytes()[..chunk.len()]);
    }
    bytes
}

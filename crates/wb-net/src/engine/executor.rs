//! Executors: threads that run one blocking strand each, or many by an event loop.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::clock::{self, Nanos};
use super::executor_message::{EngineInput, ExecutorCommand, ExecutorEvent, ExecutorReport, Waker};
use super::interrupt::InterruptHandle;
use super::latencies::LatencyBuffer;
use super::latency::LatencyHistogram;
use super::perf_counters::PerfCounters;
use super::plan::GroupPlan;
use super::protocol::{EngineError, EngineErrorKind, Settings};
use super::raw_log::RawLog;
use super::strand::{Strand, StrandContext, StrandStatus};
use super::tally::{FlowopTally, Intervals, LiveCounters, PendingRounds, TransactionTally};
use super::usage::current_thread_usage;
use super::wait;
use wb_net_profile::Extent;
use wb_results::net::ConnectionInfo;
use wb_results::net::Usage;

pub(super) struct GroupMetrics {
    pub(super) group: usize,
    pub(super) plan: Arc<GroupPlan>,
    pub(super) transactions: Vec<TransactionTally>,
    pub(super) usage: Usage,
    pub(super) live_counters: Arc<LiveCounters>,
    latencies: LatencyBuffer,
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
        live_counters: Arc<LiveCounters>,
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
                    failed_rounds: 0,
                    pending: PendingRounds::default(),
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
        let (latencies, usage) = (LatencyBuffer::new(), Usage::default());
        Self { group, plan, transactions, usage, live_counters, latencies, raw, counters: None, measure_cpu, record }
    }

    pub(super) fn open_counters(&mut self, settings: &Settings) -> Result<(), EngineError> {
        if !settings.counters.is_empty() {
            let counters = PerfCounters::open(&settings.counters);
            self.counters =
                Some(counters.map_err(|message| EngineError {
                    kind: EngineErrorKind::Unsupported,
                    ..EngineError::new(message)
                })?);
        }
        Ok(())
    }

    pub(super) fn begin_transaction(&mut self, transaction: usize, began: Nanos, end: Option<Nanos>) {
        self.latencies.flush(&mut self.transactions);
        let tally = &mut self.transactions[transaction];
        tally.began = tally.began.min(began);
        if self.record {
            tally.intervals.begin(began, end.map(|end| end - began));
        }
    }

    /// Records the end of a strand's transaction. A window that is not cut short lasts until its end, even if nothing
    /// was left to do in it: what was sent in a window has been received in one as long.
    pub(super) fn end_transaction(&mut self, transaction: usize, end: Option<Nanos>, is_cut: bool) {
        let is_window = matches!(self.plan.transactions[transaction].extent, Extent::Window(_));
        let tally = &mut self.transactions[transaction];
        let now = clock::now();
        let ended = match end {
            Some(end) if is_window && !is_cut => end,
            // Iterations may finish before the time limit.
            Some(end) => end.min(now),
            None => now,
        };
        tally.ended = tally.ended.max(ended);
    }

    pub(super) fn context<'a>(&'a mut self, buffer: &'a mut [u8]) -> StrandContext<'a> {
        StrandContext {
            buffer,
            transactions: &mut self.transactions,
            live_counters: &self.live_counters,
            latencies: &mut self.latencies,
            raw: self.raw.as_mut(),
            counters: self.counters.as_mut(),
            measure_cpu: self.measure_cpu,
            record: self.record,
        }
    }

    pub(super) fn into_report(mut self, strands: &mut [Strand]) -> ExecutorReport {
        self.latencies.flush(&mut self.transactions);
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
            refused: strands.iter_mut().map(Strand::take_rejected).sum(),
        }
    }
}

pub(super) fn run_blocking(
    executor: usize,
    mut strand: Strand,
    mut metrics: GroupMetrics,
    settings: &Settings,
    commands: &Receiver<ExecutorCommand>,
    engine: &Sender<EngineInput>,
) {
    let send = |event| engine.send(EngineInput::Executor(event)).is_ok();
    prepare_thread(settings, executor);
    if let Err(fault) = metrics.open_counters(settings) {
        send(ExecutorEvent::Failed(fault));
    }
    let group = metrics.group;
    let mut buffer = payload(metrics.plan.buffer, settings);
    if !send(ExecutorEvent::Ready { executor, waker: Waker::Thread(InterruptHandle::current_thread()) }) {
        return;
    }
    while let Ok(command) = next_command(commands, &mut strand) {
        let connected = match command {
            ExecutorCommand::Run { transaction, began, end, .. } => {
                let before = current_thread_usage();
                metrics.begin_transaction(transaction, began, end);
                strand.begin_transaction(transaction, began, end);
                let failed = run_to_completion(|| strand.advance(&mut metrics.context(&mut buffer)));
                metrics.end_transaction(transaction, end, failed.is_some() || strand.is_stopped());
                if metrics.plan.is_data_phase(transaction) {
                    metrics.usage.add(current_thread_usage().since(before));
                }
                match failed {
                    Some(fault) => send(ExecutorEvent::Failed(fault)),
                    None => send(ExecutorEvent::Ended { group, totals: strand.totals() }),
                }
            }
            ExecutorCommand::Poll { .. } => true,
            ExecutorCommand::Drain { totals, .. } => {
                strand.begin_drain(totals.into_iter().next().map(|totals| totals.connections).unwrap_or_default());
                match run_to_completion(|| strand.drain(&mut buffer)) {
                    None => send(ExecutorEvent::Drained { group, totals: strand.totals() }),
                    Some(fault) => send(ExecutorEvent::Failed(fault)),
                }
            }
            ExecutorCommand::Report => {
                send(ExecutorEvent::Report(Box::new(metrics.into_report(&mut [strand]))));
                return;
            }
        };
        if !connected {
            return;
        }
    }
}

/// Receives the next command; until then the strand's connections are maintained.
fn next_command(
    commands: &Receiver<ExecutorCommand>,
    strand: &mut Strand,
) -> Result<ExecutorCommand, RecvTimeoutError> {
    while let Some(interval) = strand.maintain() {
        match commands.recv_timeout(Duration::from_nanos(interval)) {
            Err(RecvTimeoutError::Timeout) => {}
            result => return result,
        }
    }
    commands.recv().map_err(|_| RecvTimeoutError::Disconnected)
}

/// Repeats a step until it ends, waiting where it asks to; returns the error of a failed one.
fn run_to_completion(mut step: impl FnMut() -> StrandStatus) -> Option<EngineError> {
    loop {
        match step() {
            StrandStatus::Wait(wait) => wait::block_until_ready(&wait, None),
            StrandStatus::Yield => {}
            StrandStatus::Ended => return None,
            StrandStatus::Failed(fault) => return Some(fault),
        }
    }
}

/// Pins the thread to its CPU and sets its timer slack.
pub(super) fn prepare_thread(settings: &Settings, executor: usize) {
    if !settings.cpus.is_empty() {
        let mut set = rustix::thread::CpuSet::new();
        set.set(settings.cpus[executor % settings.cpus.len()]);
        // Ignored: the CPUs were validated with the settings, and an unpinned thread still works.
        let _: rustix::io::Result<()> = rustix::thread::sched_setaffinity(None, &set);
    }
    // Sleeps end on time, not up to 50 microseconds later.
    let _: rustix::io::Result<()> = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// The content of a send buffer: pseudo-random, incompressible bytes, unless the settings ask for others.
pub(super) fn payload(length: usize, settings: &Settings) -> Vec<u8> {
    if settings.repeating_payload {
        return (b'0'..=b'9').cycle().take(length).collect();
    }
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

//! Hands: the threads that carry out strands, one strand each ([`blocking`]) or many ([`super::event`]).

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
    counters::Counters,
    interrupt::Interruptible,
    jots::Jots,
    plan::GroupPlan,
    raw::RawLog,
    strand::{Context, Step, Strand},
    tally::{FlowopTally, Intervals, Published, StrandTally, TransactionTally},
    times::Times,
    usage::Usage,
    wait,
    work::{Fault, Settings, StrandTotals},
};
use crate::transport::Info;

/// Told to a hand.
#[derive(Debug)]
pub(super) enum Told {
    /// Carry out a transaction of a group.
    Run { group: usize, transaction: usize, began: Nanos, end: Option<Nanos> },
    /// Look again whether waiting strands of a group can go on.
    Look { group: usize },
    /// Take in what the other side sent to these strands.
    Settle { group: usize, totals: Vec<StrandTotals> },
    /// Tell what was measured and end.
    Report,
}

/// Heard from a hand.
#[derive(Debug)]
pub(super) enum Heard {
    /// It runs and can be reached.
    Ready { hand: usize, reach: Reach },
    /// A strand is done with a transaction.
    Ended { group: usize, totals: StrandTotals },
    /// A strand has taken in what was sent to it.
    Settled { group: usize, totals: StrandTotals },
    /// A strand cannot go on.
    Failed(Fault),
    /// What was measured.
    Reported(Box<Part>),
}

/// How to get at a hand that waits.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    Thread(Interruptible),
    Events(Arc<OwnedFd>),
}

impl Reach {
    pub(super) fn touch(&self) {
        match self {
            Self::Thread(thread) => thread.interrupt(),
            Self::Events(fd) => {
                // A counter that is full wakes as well.
                let _: rustix::io::Result<usize> = rustix::io::write(&**fd, &1_u64.to_ne_bytes());
            }
        }
    }
}

/// What a hand measured of one group.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) group: usize,
    pub(super) transactions: Vec<TransactionTally>,
    pub(super) strands: Vec<StrandTally>,
    pub(super) connections: Info,
    pub(super) usage: Usage,
    pub(super) refused: u64,
}

/// What a hand notes of one group.
pub(super) struct Notes {
    pub(super) group: usize,
    pub(super) plan: Arc<GroupPlan>,
    pub(super) transactions: Vec<TransactionTally>,
    pub(super) usage: Usage,
    pub(super) published: Arc<Published>,
    jots: Jots,
    pub(super) raw: Option<RawLog>,
    pub(super) counters: Option<Counters>,
    cpu: bool,
    record: bool,
}

impl Notes {
    pub(super) fn new(
        group: usize,
        plan: Arc<GroupPlan>,
        digits: u8,
        settings: &Settings,
        published: Arc<Published>,
        raw: Option<RawLog>,
    ) -> Self {
        let transactions = plan
            .transactions
            .iter()
            .map(|transaction| {
                let paced = || transaction.period.map(|_| Times::new(digits));
                TransactionTally {
                    began: Nanos::MAX,
                    ended: 0,
                    rounds: Times::new(digits),
                    response: paced(),
                    lag: paced(),
                    flowops: transaction
                        .flowops
                        .iter()
                        .map(|flowop| FlowopTally::new(digits, flowop.period.is_some(), settings.counters.len()))
                        .collect(),
                    intervals: Intervals::new(settings.interval),
                }
            })
            .collect();
        let (cpu, record) = (settings.flowop_cpu, !settings.bare);
        let (jots, usage) = (Jots::new(), Usage::default());
        Self { group, plan, transactions, usage, published, jots, raw, counters: None, cpu, record }
    }

    /// Opens what counts for the thread that calls.
    pub(super) fn count(&mut self, settings: &Settings) -> Result<(), Fault> {
        if !settings.counters.is_empty() {
            let counters = Counters::open(&settings.counters);
            self.counters = Some(counters.map_err(|what| Fault { unsupported: true, ..Fault::new(what) })?);
        }
        Ok(())
    }

    pub(super) fn begin(&mut self, transaction: usize, began: Nanos, end: Option<Nanos>) {
        self.jots.record(&mut self.transactions);
        let tally = &mut self.transactions[transaction];
        tally.began = tally.began.min(began);
        if self.record {
            tally.intervals.begin(began, end.map(|end| end - began));
        }
    }

    pub(super) fn end(&mut self, transaction: usize, end: Option<Nanos>) {
        let tally = &mut self.transactions[transaction];
        // Iterations may be done before they would be cut.
        let now = clock::now();
        tally.ended = tally.ended.max(end.map_or(now, |end| end.min(now)));
    }

    pub(super) fn context<'a>(&'a mut self, buffer: &'a mut [u8]) -> Context<'a> {
        Context {
            buffer,
            transactions: &mut self.transactions,
            published: &self.published,
            jots: &mut self.jots,
            raw: self.raw.as_mut(),
            counters: self.counters.as_mut(),
            cpu: self.cpu,
            record: self.record,
        }
    }

    pub(super) fn part(mut self, strands: &[Strand]) -> Part {
        self.jots.record(&mut self.transactions);
        if let Some(raw) = &mut self.raw {
            raw.hand_over();
        }
        let mut connections = Info::default();
        strands.iter().for_each(|strand| connections.add(&strand.info()));
        Part {
            group: self.group,
            transactions: self.transactions,
            strands: strands.iter().map(|strand| strand.tally).collect(),
            connections,
            usage: self.usage,
            refused: strands.iter().map(Strand::refused).sum(),
        }
    }
}

/// Carries out one strand on this thread.
pub(super) fn blocking(
    hand: usize,
    mut strand: Strand,
    mut notes: Notes,
    settings: &Settings,
    told: &Receiver<Told>,
    site: &Sender<super::site::Input>,
) {
    let tell = |heard| site.send(super::site::Input::Heard(heard)).is_ok();
    prepare_thread(settings, hand);
    if let Err(fault) = notes.count(settings) {
        tell(Heard::Failed(fault));
    }
    let group = notes.group;
    let mut buffer = buffer(notes.plan.buffer);
    if !tell(Heard::Ready { hand, reach: Reach::Thread(Interruptible::this()) }) {
        return;
    }
    while let Ok(told) = next(told, &mut strand) {
        let went_on = match told {
            Told::Run { transaction, began, end, .. } => {
                let before = Usage::of_thread();
                notes.begin(transaction, began, end);
                strand.begin(transaction, began, end);
                let failed = until_done(|| strand.advance(&mut notes.context(&mut buffer)));
                notes.end(transaction, end);
                if notes.plan.matters(transaction) {
                    notes.usage.add(Usage::of_thread().since(before));
                }
                match failed {
                    Some(fault) => tell(Heard::Failed(fault)),
                    None => tell(Heard::Ended { group, totals: strand.totals() }),
                }
            }
            Told::Look { .. } => true,
            Told::Settle { totals, .. } => {
                strand.settles(totals.into_iter().next().map(|totals| totals.connections).unwrap_or_default());
                match until_done(|| strand.settle(&mut buffer)) {
                    None => tell(Heard::Settled { group, totals: strand.totals() }),
                    Some(fault) => tell(Heard::Failed(fault)),
                }
            }
            Told::Report => {
                tell(Heard::Reported(Box::new(notes.part(&[strand]))));
                return;
            }
        };
        if !went_on {
            return;
        }
    }
}

/// Between two looks at connections that nobody uses.
pub(super) const TENDING: Duration = Duration::from_millis(1);

/// What is told next; until then the strand's connections are tended.
fn next(told: &Receiver<Told>, strand: &mut Strand) -> Result<Told, RecvTimeoutError> {
    while strand.tend() {
        match told.recv_timeout(TENDING) {
            Err(RecvTimeoutError::Timeout) => {}
            told => return told,
        }
    }
    told.recv().map_err(|_| RecvTimeoutError::Disconnected)
}

/// Goes on, and waits where that is to be done; says what failed.
fn until_done(mut go_on: impl FnMut() -> Step) -> Option<Fault> {
    loop {
        match go_on() {
            Step::Wait(wait) => wait::block(&wait, None),
            Step::Yield => {}
            Step::Ended => return None,
            Step::Failed(fault) => return Some(fault),
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

/// What is sent: nothing that can be compressed.
pub(super) fn buffer(length: usize) -> Vec<u8> {
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

//! Coordinates a run: tells every site what to do next, group by group, until all transactions are done.
//!
//! Both sides of a transaction begin it together. A window ends by each side's own clock; a transaction of iterations
//! ends on the server when the client is done and everything that was sent has come. Then both settle: each takes in
//! what the other says it sent, so that the next transaction begins on quiet connections.

mod ended;
mod hear;
mod introduce;
mod totals;

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tokio::{sync::mpsc::UnboundedReceiver, time::Instant};

pub use self::ended::{Datagrams, Ended, Failure};
use self::hear::PATIENCE;
use crate::engine::{
    clock::Nanos,
    raw::RawTime,
    report::Report,
    work::{Assignment, Event, Executor, Order, Progress, StrandTotals},
};
use crate::language::{Action, Extent, Flowop, Profile, Transaction};

/// Who takes part.
pub struct Party {
    /// A host by its name in the profile, or none for a site of this machine.
    pub host: Option<String>,
    /// What it carries out.
    pub assignment: Assignment,
    /// Hands an order over; false if it cannot be any more.
    pub order: Box<dyn Fn(Order) -> bool + Send>,
}

/// What comes from a party.
#[derive(Debug)]
pub enum News {
    /// It says something.
    Event(Event),
    /// It is gone.
    Lost(String),
}

/// Looks on while a run goes.
pub trait Observer {
    /// A party has got so far.
    fn progress(&mut self, host: Option<&str>, progress: Progress);
    /// A transaction begins.
    fn transaction(&mut self, group: usize, transaction: usize);
    /// Response times of the client's flowops.
    fn raw(&mut self, times: &[RawTime]);
}

/// How much later than its window a transaction may end.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a profile with these parties.
pub async fn coordinate(
    profile: &Profile,
    parties: Vec<Party>,
    events: UnboundedReceiver<(usize, News)>,
    limit: Option<Duration>,
    interrupted: impl Future<Output = ()>,
    observer: &mut dyn Observer,
) -> Ended {
    let count = parties.len();
    let mut run = Coordinator {
        profile,
        groups: profile.groups.iter().map(|_| Progressing::default()).collect(),
        heard: vec![Instant::now(); count],
        reports: (0..count).map(|_| None).collect(),
        executors: vec![None; count],
        cut: Vec::new(),
        begun: false,
        limit,
        parties,
        events,
        observer,
    };
    let fault = {
        tokio::pin!(interrupted);
        tokio::select! {
            fault = run.carry_out() => fault.err(),
            () = &mut interrupted => Some(Failure::Interrupted),
        }
    };
    let fault = match fault {
        Some(fault) => Some(run.cause(fault).await),
        None => None,
    };
    if let Some(fault) = &fault {
        run.order_all(|| Order::Stop);
        run.wind_down(fault).await;
    }
    let datagrams = run.groups.iter().map(|group| group.datagrams.values().copied().sum()).collect();
    Ended { fault, reports: run.reports, executors: run.executors, cut: run.cut, datagrams }
}

struct Coordinator<'a> {
    profile: &'a Profile,
    parties: Vec<Party>,
    events: UnboundedReceiver<(usize, News)>,
    groups: Vec<Progressing>,
    heard: Vec<Instant>,
    reports: Vec<Option<Report>>,
    executors: Vec<Option<Executor>>,
    cut: Vec<(usize, usize)>,
    /// Whether there can be anything to report.
    begun: bool,
    limit: Option<Duration>,
    observer: &'a mut dyn Observer,
}

/// How far a group is.
#[derive(Default)]
struct Progressing {
    transaction: usize,
    done: bool,
    /// What strands moved, by party; cleared with each step.
    totals: HashMap<usize, Vec<StrandTotals>>,
    settling: bool,
    told_to_finish: bool,
    deadline: Option<Instant>,
    /// The last that was heard of datagram connections, by host and strand.
    datagrams: BTreeMap<(u32, u32), Datagrams>,
}

impl Coordinator<'_> {
    async fn carry_out(&mut self) -> Result<(), Failure> {
        self.introduce().await?;
        self.begun = true;
        for group in 0..self.groups.len() {
            self.begin(group);
        }
        while self.groups.iter().any(|group| !group.done) {
            match self.next().await? {
                (party, Event::Ended { group, strands }) => self.ended(party, group, strands)?,
                (party, Event::Settled { group, strands }) => self.settled(party, group, strands)?,
                (party, _) => return Err(self.nonsense(party)),
            }
        }
        self.order_all(|| Order::Report);
        while let Some(missing) = self.reports.iter().position(Option::is_none) {
            let (party, event) = self.next_within(PATIENCE, missing).await?;
            if !matches!(event, Event::Report(_)) {
                return Err(self.nonsense(party));
            }
            self.keep(party, event);
        }
        Ok(())
    }

    fn begin(&mut self, group: usize) {
        let transaction = self.groups[group].transaction;
        let Some(next) = self.profile.groups[group].transactions.get(transaction) else {
            self.groups[group].done = true;
            return;
        };
        self.observer.transaction(group, transaction);
        // What follows would have nothing to go on with if not all connections were there.
        let bound = self.limit.filter(|_| !only_connects(next));
        let limit = bound.map(|limit| limit.as_nanos() as Nanos);
        let window = match next.extent {
            Extent::Window(window) => Some(window),
            Extent::Iterations(_) => None,
        };
        if self.limit.is_some_and(|limit| window.is_some_and(|window| window > limit)) {
            self.cut.push((group, transaction));
        }
        let longest = window.into_iter().chain(bound).min();
        let state = &mut self.groups[group];
        state.totals.clear();
        state.settling = false;
        state.told_to_finish = false;
        state.deadline = longest.map(|longest| Instant::now() + longest + GRACE);
        self.order_all(|| Order::Run { group, transaction, limit });
    }

    fn ended(&mut self, party: usize, group: usize, strands: Vec<StrandTotals>) -> Result<(), Failure> {
        if group >= self.groups.len() || self.groups[group].settling {
            return Err(self.nonsense(party));
        }
        self.groups[group].totals.insert(party, strands);
        let clients = self.expected(group, false).all(|party| self.groups[group].totals.contains_key(&party));
        let all = clients && self.expected(group, true).all(|party| self.groups[group].totals.contains_key(&party));
        if all {
            self.settle_or_go_on(group);
        } else if clients && !self.groups[group].told_to_finish {
            let state = &mut self.groups[group];
            state.told_to_finish = true;
            // What is on its way may take its time, as long as it comes.
            state.deadline = None;
            self.tell_servers(group, |group, totals| Order::Finish { group, totals });
        }
        Ok(())
    }

    fn settled(&mut self, party: usize, group: usize, strands: Vec<StrandTotals>) -> Result<(), Failure> {
        if group >= self.groups.len() || !self.groups[group].settling {
            return Err(self.nonsense(party));
        }
        self.groups[group].totals.insert(party, strands);
        if self.groups[group].totals.len() == self.expected(group, false).chain(self.expected(group, true)).count() {
            self.go_on(group);
        }
        Ok(())
    }

    fn settle_or_go_on(&mut self, group: usize) {
        if self.is_quiet(group) {
            return self.go_on(group);
        }
        self.tell_servers(group, |group, totals| Order::Settle { group, totals });
        self.tell_clients(group, |group, totals| Order::Settle { group, totals });
        let state = &mut self.groups[group];
        state.settling = true;
        state.totals.clear();
        state.deadline = None;
    }

    fn go_on(&mut self, group: usize) {
        // What closed connections moved is told with every step, so that nothing of an earlier one is to be kept.
        self.groups[group].datagrams.clear();
        let datagrams = self.datagrams(group);
        self.groups[group].datagrams.extend(datagrams);
        self.groups[group].transaction += 1;
        self.begin(group);
    }

    /// The parties that have strands of a group: servers or clients.
    fn expected(&self, group: usize, servers: bool) -> impl Iterator<Item = usize> {
        let parties = self.parties.iter().enumerate();
        parties
            .filter(move |(_, party)| party.host.is_some() == servers && !party.assignment.strands[group].is_empty())
            .map(|(position, _)| position)
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        for party in &self.parties {
            (party.order)(order());
        }
    }
}

/// Whether a transaction opens and closes a certain number of connections and does nothing else.
fn only_connects(transaction: &Transaction) -> bool {
    let connects =
        |flowop: &Flowop| matches!(flowop.action, Action::Connect(_) | Action::Accept(_) | Action::Disconnect);
    matches!(transaction.extent, Extent::Iterations(_)) && transaction.flowops.iter().all(connects)
}

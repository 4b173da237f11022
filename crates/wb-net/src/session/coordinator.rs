//! Coordinates a run: tells every site what to do next, group by group, until all transactions are done.
//!
//! Both sides of a transaction begin it together. A window ends by each side's own clock; a transaction of iterations
//! ends on the server when the client is done and everything that was sent has come. Then both settle: each takes in
//! what the other says it sent, so that the next transaction begins on quiet connections.

mod address_exchange;
mod events;
mod outcome;
mod totals;

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tokio::{sync::mpsc::UnboundedReceiver, time::Instant};

use self::events::RESPONSE_TIMEOUT;
pub use self::outcome::{DatagramTotals, RunFailure, RunOutcome};
use crate::engine::{
    clock::Nanos,
    protocol::{Assignment, EngineCommand, EngineEvent, EngineProgress, ExecutorKind, StrandTotals},
    raw_log::LatencyRecord,
    report::EngineReport,
};
use crate::language::{Extent, Flowop, FlowopAction, NetProfile, Transaction};

/// Who takes part.
pub struct Participant {
    /// A host by its name in the profile, or none for a site of this machine.
    pub host: Option<String>,
    /// What it carries out.
    pub assignment: Assignment,
    /// Hands an order over; false if it cannot be any more.
    pub send: Box<dyn Fn(EngineCommand) -> bool + Send>,
}

/// An event from a participant, or the loss of its connection.
#[derive(Debug)]
pub enum ParticipantEvent {
    /// It says something.
    Event(EngineEvent),
    /// It is gone.
    Lost(String),
}

/// Looks on while a run goes.
pub trait RunObserver {
    /// A party has got so far.
    fn on_progress(&mut self, host: Option<&str>, progress: EngineProgress);
    /// A transaction begins.
    fn on_transaction(&mut self, group: usize, transaction: usize);
    /// Response times of the client's flowops.
    fn on_latencies(&mut self, times: &[LatencyRecord]);
}

/// How much later than its window a transaction may end.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a profile with these parties.
pub async fn coordinate(
    profile: &NetProfile,
    participants: Vec<Participant>,
    events: UnboundedReceiver<(usize, ParticipantEvent)>,
    limit: Option<Duration>,
    interrupted: impl Future<Output = ()>,
    observer: &mut dyn RunObserver,
) -> RunOutcome {
    let count = participants.len();
    let mut run = Coordinator {
        profile,
        groups: profile.groups.iter().map(|_| GroupProgress::default()).collect(),
        last_heard: vec![Instant::now(); count],
        reports: (0..count).map(|_| None).collect(),
        executors: vec![None; count],
        truncated: Vec::new(),
        started: false,
        limit,
        participants,
        events,
        observer,
    };
    let fault = {
        tokio::pin!(interrupted);
        tokio::select! {
            fault = run.run() => fault.err(),
            () = &mut interrupted => Some(RunFailure::Interrupted),
        }
    };
    let fault = match fault {
        Some(fault) => Some(run.find_root_cause(fault).await),
        None => None,
    };
    if let Some(fault) = &fault {
        run.broadcast(|| EngineCommand::Stop);
        run.shut_down(fault).await;
    }
    let datagrams = run.groups.iter().map(|group| group.datagrams.values().copied().sum()).collect();
    RunOutcome { failure: fault, reports: run.reports, executors: run.executors, truncated: run.truncated, datagrams }
}

struct Coordinator<'a> {
    profile: &'a NetProfile,
    participants: Vec<Participant>,
    events: UnboundedReceiver<(usize, ParticipantEvent)>,
    groups: Vec<GroupProgress>,
    last_heard: Vec<Instant>,
    reports: Vec<Option<EngineReport>>,
    executors: Vec<Option<ExecutorKind>>,
    truncated: Vec<(usize, usize)>,
    /// Whether there can be anything to report.
    started: bool,
    limit: Option<Duration>,
    observer: &'a mut dyn RunObserver,
}

/// How far a group is.
#[derive(Default)]
struct GroupProgress {
    transaction: usize,
    done: bool,
    /// What strands moved, by party; cleared with each step.
    totals: HashMap<usize, Vec<StrandTotals>>,
    draining: bool,
    finish_sent: bool,
    deadline: Option<Instant>,
    /// The last that was heard of datagram connections, by host and strand.
    datagrams: BTreeMap<(u32, u32), DatagramTotals>,
}

impl Coordinator<'_> {
    async fn run(&mut self) -> Result<(), RunFailure> {
        self.exchange_addresses().await?;
        self.started = true;
        for group in 0..self.groups.len() {
            self.begin_transaction(group);
        }
        while self.groups.iter().any(|group| !group.done) {
            match self.next_event().await? {
                (party, EngineEvent::Ended { group, strands }) => self.handle_ended(party, group, strands)?,
                (party, EngineEvent::Drained { group, strands }) => self.handle_drained(party, group, strands)?,
                (party, _) => return Err(self.unexpected_event(party)),
            }
        }
        self.broadcast(|| EngineCommand::Report);
        while let Some(missing) = self.reports.iter().position(Option::is_none) {
            let (party, event) = self.next_event_within(RESPONSE_TIMEOUT, missing).await?;
            if !matches!(event, EngineEvent::Report(_)) {
                return Err(self.unexpected_event(party));
            }
            self.store_report(party, event);
        }
        Ok(())
    }

    fn begin_transaction(&mut self, group: usize) {
        let transaction = self.groups[group].transaction;
        let Some(next) = self.profile.groups[group].transactions.get(transaction) else {
            self.groups[group].done = true;
            return;
        };
        self.observer.on_transaction(group, transaction);
        // What follows would have nothing to go on with if not all connections were there.
        let bound = self.limit.filter(|_| !is_connection_setup(next));
        let limit = bound.map(|limit| limit.as_nanos() as Nanos);
        let window = match next.extent {
            Extent::Window(window) => Some(window),
            Extent::Iterations(_) => None,
        };
        if self.limit.is_some_and(|limit| window.is_some_and(|window| window > limit)) {
            self.truncated.push((group, transaction));
        }
        let longest = window.into_iter().chain(bound).min();
        let state = &mut self.groups[group];
        state.totals.clear();
        state.draining = false;
        state.finish_sent = false;
        state.deadline = longest.map(|longest| Instant::now() + longest + GRACE);
        self.broadcast(|| EngineCommand::Run { group, transaction, limit });
    }

    fn handle_ended(&mut self, party: usize, group: usize, strands: Vec<StrandTotals>) -> Result<(), RunFailure> {
        if group >= self.groups.len() || self.groups[group].draining {
            return Err(self.unexpected_event(party));
        }
        self.groups[group].totals.insert(party, strands);
        let clients = self.group_participants(group, false).all(|party| self.groups[group].totals.contains_key(&party));
        let all =
            clients && self.group_participants(group, true).all(|party| self.groups[group].totals.contains_key(&party));
        if all {
            self.drain_or_advance(group);
        } else if clients && !self.groups[group].finish_sent {
            let state = &mut self.groups[group];
            state.finish_sent = true;
            // What is on its way may take its time, as long as it comes.
            state.deadline = None;
            self.send_totals_to_servers(group, |group, totals| EngineCommand::Finish { group, totals });
        }
        Ok(())
    }

    fn handle_drained(&mut self, party: usize, group: usize, strands: Vec<StrandTotals>) -> Result<(), RunFailure> {
        if group >= self.groups.len() || !self.groups[group].draining {
            return Err(self.unexpected_event(party));
        }
        self.groups[group].totals.insert(party, strands);
        if self.groups[group].totals.len()
            == self.group_participants(group, false).chain(self.group_participants(group, true)).count()
        {
            self.advance_group(group);
        }
        Ok(())
    }

    fn drain_or_advance(&mut self, group: usize) {
        if self.is_drained(group) {
            return self.advance_group(group);
        }
        self.send_totals_to_servers(group, |group, totals| EngineCommand::Drain { group, totals });
        self.send_totals_to_clients(group, |group, totals| EngineCommand::Drain { group, totals });
        let state = &mut self.groups[group];
        state.draining = true;
        state.totals.clear();
        state.deadline = None;
    }

    fn advance_group(&mut self, group: usize) {
        // What closed connections moved is told with every step, so that nothing of an earlier one is to be kept.
        self.groups[group].datagrams.clear();
        let datagrams = self.datagram_totals(group);
        self.groups[group].datagrams.extend(datagrams);
        self.groups[group].transaction += 1;
        self.begin_transaction(group);
    }

    /// The parties that have strands of a group: servers or clients.
    fn group_participants(&self, group: usize, servers: bool) -> impl Iterator<Item = usize> {
        let parties = self.participants.iter().enumerate();
        parties
            .filter(move |(_, party)| party.host.is_some() == servers && !party.assignment.strands[group].is_empty())
            .map(|(position, _)| position)
    }

    fn broadcast(&self, order: impl Fn() -> EngineCommand) {
        for party in &self.participants {
            (party.send)(order());
        }
    }
}

/// Whether a transaction opens and closes a certain number of connections and does nothing else.
fn is_connection_setup(transaction: &Transaction) -> bool {
    let connects = |flowop: &Flowop| {
        matches!(flowop.action, FlowopAction::Connect(_) | FlowopAction::Accept(_) | FlowopAction::Disconnect)
    };
    matches!(transaction.extent, Extent::Iterations(_)) && transaction.flowops.iter().all(connects)
}

//! Coordinates a run: sends commands to all engines, group by group, until all transactions are done.
//!
//! Both sides begin a transaction together. A window ends by each side's own clock; a transaction of iterations ends on
//! the server when the client has finished and everything that was sent has arrived. Then both sides drain: each
//! receives what the other reports to have sent, so that the next transaction begins with nothing in flight.

mod address_exchange;
mod events;
mod outcome;
mod totals;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use wb_results::net::StrandProgress;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

pub use self::outcome::{DatagramTotals, RunFailure, RunOutcome};
use crate::engine::clock::Nanos;
use crate::engine::protocol::{Assignment, EngineCommand, EngineEvent, EngineProgress, StrandTotals};
use crate::engine::raw_log::LatencyRecord;
use crate::engine::report::EngineReport;
use wb_net_profile::{Extent, NetProfile};

/// This machine or a server.
pub struct Participant {
    /// A host by its name in the profile; `None` for this machine.
    pub host: Option<String>,
    pub assignment: Assignment,
    /// Sends a command; false if the participant is gone.
    pub send: Box<dyn Fn(EngineCommand) -> bool + Send>,
}

#[derive(Debug)]
pub enum ParticipantEvent {
    Event(EngineEvent),
    /// Its connection was lost, with the reason.
    Lost(String),
}

/// Observes a run in progress.
pub trait RunObserver {
    fn on_progress(&mut self, host: Option<&str>, progress: EngineProgress);
    /// A participant reports the progress of its strands, if that was requested.
    fn on_strand_progress(&mut self, _host: Option<&str>, _progress: &[StrandProgress]) {}
    /// A participant has finished a transaction, and has moved this much until then.
    fn on_ended(&mut self, _host: Option<&str>, _progress: EngineProgress) {}
    fn on_transaction(&mut self, group: usize, transaction: usize);
    /// Response times of the client's flowops.
    fn on_latencies(&mut self, times: &[LatencyRecord]);
}

/// How long after the end of its window a transaction may end.
const GRACE: Duration = Duration::from_secs(5);

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
        last_event_at: vec![Instant::now(); count],
        reports: (0..count).map(|_| None).collect(),
        truncated: Vec::new(),
        started: false,
        limit,
        participants,
        events,
        observer,
    };
    let failure = {
        tokio::pin!(interrupted);
        tokio::select! {
            failure = run.run() => failure.err(),
            () = &mut interrupted => Some(RunFailure::Interrupted),
        }
    };
    let failure = match failure {
        Some(failure) => Some(run.find_root_cause(failure).await),
        None => None,
    };
    if let Some(failure) = &failure {
        run.broadcast(|| EngineCommand::Stop);
        run.shut_down(failure).await;
    }
    let datagrams = run.groups.iter().map(|group| group.datagrams.values().copied().sum()).collect();
    RunOutcome { failure, reports: run.reports, truncated: run.truncated, datagrams }
}

struct Coordinator<'a> {
    profile: &'a NetProfile,
    participants: Vec<Participant>,
    events: UnboundedReceiver<(usize, ParticipantEvent)>,
    groups: Vec<GroupProgress>,
    last_event_at: Vec<Instant>,
    reports: Vec<Option<EngineReport>>,
    truncated: Vec<(usize, usize)>,
    /// Whether there can be results to report.
    started: bool,
    limit: Option<Duration>,
    observer: &'a mut dyn RunObserver,
}

#[derive(Default)]
struct GroupProgress {
    transaction: usize,
    done: bool,
    /// Totals of strands, by participant; cleared at each step.
    totals: HashMap<usize, Vec<StrandTotals>>,
    draining: bool,
    finish_sent: bool,
    deadline: Option<Instant>,
    /// The latest totals of datagram connections, by host and strand.
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
                (participant, EngineEvent::Ended { group, progress, strands }) => {
                    self.observer.on_ended(self.participants[participant].host.as_deref(), progress);
                    self.handle_ended(participant, group, strands)?
                }
                (participant, EngineEvent::Drained { group, strands }) => {
                    self.handle_drained(participant, group, strands)?
                }
                (participant, _) => return Err(self.unexpected_event(participant)),
            }
        }
        self.broadcast(|| EngineCommand::Report);
        while let Some(missing) = self.reports.iter().position(Option::is_none) {
            let (participant, event) = self.next_response(missing).await?;
            if !matches!(event, EngineEvent::Report(_)) {
                return Err(self.unexpected_event(participant));
            }
            self.store_report(participant, event);
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
        let limit = self.limit.map(|limit| limit.as_nanos() as Nanos);
        let window = match next.extent {
            Extent::Window(window) => Some(window),
            Extent::Iterations(_) => None,
        };
        if self.limit.is_some_and(|limit| window.is_some_and(|window| window > limit)) {
            self.truncated.push((group, transaction));
        }
        // Both windows last equally long, each by its own clock, also for a side with nothing left to do: rates are of
        // equal windows, and no clock is compared with another machine's.
        let longest = window.into_iter().chain(self.limit).min();
        let state = &mut self.groups[group];
        state.totals.clear();
        state.draining = false;
        state.finish_sent = false;
        state.deadline = longest.map(|longest| Instant::now() + longest + GRACE);
        self.broadcast(|| EngineCommand::Run { group, transaction, limit });
    }

    fn handle_ended(&mut self, participant: usize, group: usize, strands: Vec<StrandTotals>) -> Result<(), RunFailure> {
        if group >= self.groups.len() || self.groups[group].draining {
            return Err(self.unexpected_event(participant));
        }
        self.groups[group].totals.insert(participant, strands);
        let clients = self
            .group_participants(group, false)
            .all(|participant| self.groups[group].totals.contains_key(&participant));
        let all = clients
            && self
                .group_participants(group, true)
                .all(|participant| self.groups[group].totals.contains_key(&participant));
        if all {
            self.drain_or_advance(group);
        } else if clients && !self.groups[group].finish_sent {
            let state = &mut self.groups[group];
            state.finish_sent = true;
            // Data in flight may take any time, as long as it arrives.
            state.deadline = None;
            self.send_totals_to_servers(group, |group, totals| EngineCommand::Finish { group, totals });
        }
        Ok(())
    }

    fn handle_drained(
        &mut self,
        participant: usize,
        group: usize,
        strands: Vec<StrandTotals>,
    ) -> Result<(), RunFailure> {
        if group >= self.groups.len() || !self.groups[group].draining {
            return Err(self.unexpected_event(participant));
        }
        self.groups[group].totals.insert(participant, strands);
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
        // Each step reports the totals of closed connections too, so that those of earlier steps are not needed.
        self.groups[group].datagrams.clear();
        let datagrams = self.datagram_totals(group);
        self.groups[group].datagrams.extend(datagrams);
        self.groups[group].transaction += 1;
        self.begin_transaction(group);
    }

    /// The participants that have strands of a group: servers or clients.
    fn group_participants(&self, group: usize, servers: bool) -> impl Iterator<Item = usize> {
        let participants = self.participants.iter().enumerate();
        participants
            .filter(move |(_, participant)| {
                participant.host.is_some() == servers && !participant.assignment.strands[group].is_empty()
            })
            .map(|(position, _)| position)
    }

    fn broadcast(&self, command: impl Fn() -> EngineCommand) {
        for participant in &self.participants {
            (participant.send)(command());
        }
    }
}

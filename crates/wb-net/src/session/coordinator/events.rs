//! What the parties say, in time.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Coordinator, Participant, ParticipantEvent, RunFailure};
use crate::engine::protocol::{EngineCommand, EngineError, EngineEvent};

/// How long parties may take for what is not measured.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// A server that says nothing for so long is lost.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// After a failure here, one of a server that caused it is heard of within this time.
const ROOT_CAUSE_WINDOW: Duration = Duration::from_millis(500);

/// Between two signs of life to the servers.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

impl Coordinator<'_> {
    /// The next event that has to be acted on.
    pub(super) async fn next_event(&mut self) -> Result<(usize, EngineEvent), RunFailure> {
        let mut beat = Instant::now() + HEARTBEAT_INTERVAL;
        loop {
            let overdue = self.groups.iter().filter(|group| !group.done).filter_map(|group| group.deadline).min();
            let wake = overdue.map_or(beat, |overdue| overdue.min(beat));
            tokio::select! {
                news = self.events.recv() => {
                    let Some((party, news)) = news else { return Err(RunFailure::participant_lost(None, "nobody is left")) };
                    if let Some(event) = self.handle_routine_event(party, news)? {
                        return Ok((party, event));
                    }
                }
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    if overdue.is_some_and(|overdue| now >= overdue) {
                        return Err(RunFailure::participant_lost(self.find_silent_participant(), "its strands did not end with their window"));
                    }
                    if now >= beat {
                        self.broadcast(|| EngineCommand::Heartbeat);
                        beat = now + HEARTBEAT_INTERVAL;
                    }
                    for (party, heard) in self.participants.iter().zip(&self.last_heard) {
                        if party.host.is_some() && now > *heard + HEARTBEAT_TIMEOUT {
                            return Err(RunFailure::participant_lost(party.host.clone(), "it has said nothing for 5 s"));
                        }
                    }
                }
            }
        }
    }

    /// The next event, which must come in time; `missing` is a party that has not answered yet.
    pub(super) async fn next_event_within(
        &mut self,
        patience: Duration,
        missing: usize,
    ) -> Result<(usize, EngineEvent), RunFailure> {
        let deadline = Instant::now() + patience;
        let mut beat = Instant::now() + HEARTBEAT_INTERVAL;
        // The groups' own deadlines do not count here, nor does silence: there is nothing to say yet.
        loop {
            match timeout_at(deadline.min(beat), self.events.recv()).await {
                Ok(Some((party, news))) => {
                    if let Some(event) = self.handle_routine_event(party, news)? {
                        return Ok((party, event));
                    }
                }
                Ok(None) => return Err(RunFailure::participant_lost(None, "nobody is left")),
                Err(_) if Instant::now() < deadline => {
                    self.broadcast(|| EngineCommand::Heartbeat);
                    beat = Instant::now() + HEARTBEAT_INTERVAL;
                }
                Err(_) => {
                    let host = self.participants[missing].host.clone();
                    return Err(RunFailure::participant_lost(
                        host,
                        &format!("no answer within {} s", patience.as_secs()),
                    ));
                }
            }
        }
    }

    /// Takes note of what needs no action.
    fn handle_routine_event(
        &mut self,
        party: usize,
        news: ParticipantEvent,
    ) -> Result<Option<EngineEvent>, RunFailure> {
        let host = self.participants[party].host.clone();
        self.last_heard[party] = Instant::now();
        match news {
            ParticipantEvent::Lost(why) if self.reports[party].is_none() => Err(RunFailure::Lost { host, why }),
            ParticipantEvent::Lost(_) => Ok(None),
            ParticipantEvent::Event(EngineEvent::Failed(fault)) => Err(RunFailure::Engine { host, fault }),
            ParticipantEvent::Event(EngineEvent::Heartbeat) => Ok(None),
            ParticipantEvent::Event(EngineEvent::Progress(progress)) => {
                self.observer.on_progress(host.as_deref(), progress);
                Ok(None)
            }
            ParticipantEvent::Event(EngineEvent::Raw(times)) => {
                if host.is_none() {
                    self.observer.on_latencies(&times);
                }
                Ok(None)
            }
            ParticipantEvent::Event(event) => Ok(Some(event)),
        }
    }

    pub(super) fn store_report(&mut self, party: usize, event: EngineEvent) {
        if let EngineEvent::Report(report) = event {
            self.reports[party] = Some(*report);
        }
    }

    /// Strands of this machine often fail because a server did or is gone: then that is what has to be told.
    pub(super) async fn find_root_cause(&mut self, failure: RunFailure) -> RunFailure {
        if !matches!(failure, RunFailure::Engine { host: None, .. }) {
            return failure;
        }
        let deadline = Instant::now() + ROOT_CAUSE_WINDOW;
        while let Ok(Some((party, news))) = timeout_at(deadline, self.events.recv()).await {
            if let Err(cause) = self.handle_routine_event(party, news)
                && self.participants[party].host.is_some()
            {
                return cause;
            }
        }
        failure
    }

    /// After a fault: lets strands end, and takes what was measured until then.
    pub(super) async fn shut_down(&mut self, failure: &RunFailure) {
        if !self.started {
            self.broadcast(|| EngineCommand::Report);
            return;
        }
        // Servers first: a client that has reported closes its connections, and a server that still uses them fails.
        for servers in [true, false] {
            for party in self.participants.iter().filter(|party| party.host.is_some() == servers) {
                (party.send)(EngineCommand::Report);
            }
            self.collect_reports(failure, servers).await;
        }
    }

    async fn collect_reports(&mut self, failure: &RunFailure, servers: bool) {
        let deadline = Instant::now() + Duration::from_secs(2);
        let gone = |party: &Participant| match failure {
            RunFailure::Lost { host, .. } | RunFailure::Engine { host, .. } => host.is_some() && party.host == *host,
            RunFailure::Interrupted => false,
        };
        let awaited = |party: &Participant| party.host.is_some() == servers && !gone(party);
        let parties = self.participants.iter().zip(&self.reports);
        let mut coming: Vec<bool> = parties.map(|(party, report)| report.is_none() && awaited(party)).collect();
        while coming.contains(&true) {
            match timeout_at(deadline, self.events.recv()).await {
                Ok(Some((party, ParticipantEvent::Event(event @ EngineEvent::Report(_))))) => {
                    coming[party] = false;
                    self.store_report(party, event);
                }
                Ok(Some((party, ParticipantEvent::Lost(_)))) => coming[party] = false,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn find_silent_participant(&self) -> Option<String> {
        let group =
            self.groups.iter().position(|group| group.deadline.is_some_and(|deadline| deadline <= Instant::now()))?;
        let silent =
            self.group_participants(group, true).find(|party| !self.groups[group].totals.contains_key(party))?;
        self.participants[silent].host.clone()
    }

    pub(super) fn unexpected_event(&self, party: usize) -> RunFailure {
        let fault = EngineError::new("it said something that does not belong there");
        RunFailure::Engine { host: self.participants[party].host.clone(), fault }
    }
}

//! Reception of the participants' events, with timeouts.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Coordinator, Participant, ParticipantEvent, RunFailure};
use crate::engine::protocol::{EngineCommand, EngineError, EngineEvent};
use crate::session::ROOT_CAUSE_WINDOW;
use wb_net_profile::StrandKind;

/// How long participants may take to respond outside of measurements.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Additional time for each strand that is a process, since all of them compete for the processors.
const PROCESS_TIMEOUT: Duration = Duration::from_millis(50);

/// A server that sends nothing for this long is lost.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

impl Coordinator<'_> {
    /// The next event that requires an action.
    pub(super) async fn next_event(&mut self) -> Result<(usize, EngineEvent), RunFailure> {
        let mut next_heartbeat = Instant::now() + HEARTBEAT_INTERVAL;
        loop {
            let deadline = self.groups.iter().filter(|group| !group.done).filter_map(|group| group.deadline).min();
            let wake = deadline.map_or(next_heartbeat, |deadline| deadline.min(next_heartbeat));
            tokio::select! {
                message = self.events.recv() => {
                    let Some((participant, message)) = message else { return Err(RunFailure::participant_lost(None, "all participants disconnected")) };
                    if let Some(event) = self.handle_routine_event(participant, message)? {
                        return Ok((participant, event));
                    }
                }
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    if deadline.is_some_and(|deadline| now >= deadline) {
                        return Err(RunFailure::participant_lost(self.find_silent_participant(), "strands still running 5 s after the end of their window"));
                    }
                    if now >= next_heartbeat {
                        self.broadcast(|| EngineCommand::Heartbeat);
                        next_heartbeat = now + HEARTBEAT_INTERVAL;
                    }
                    for (participant, last_event) in self.participants.iter().zip(&self.last_event_at) {
                        if participant.host.is_some() && now > *last_event + HEARTBEAT_TIMEOUT {
                            return Err(RunFailure::participant_lost(participant.host.clone(), "no heartbeat for 5 s"));
                        }
                    }
                }
            }
        }
    }

    /// The next event outside of measurements, with a timeout; `missing` is a participant that has not responded yet.
    pub(super) async fn next_response(&mut self, missing: usize) -> Result<(usize, EngineEvent), RunFailure> {
        let processes = self.profile.groups.iter().filter(|group| group.kind == StrandKind::Process);
        let timeout = RESPONSE_TIMEOUT + PROCESS_TIMEOUT * processes.map(|group| group.strands).sum::<u32>();
        let deadline = Instant::now() + timeout;
        let mut next_heartbeat = Instant::now() + HEARTBEAT_INTERVAL;
        // The groups' deadlines and the heartbeat timeout do not apply here: no transaction is running.
        loop {
            match timeout_at(deadline.min(next_heartbeat), self.events.recv()).await {
                Ok(Some((participant, message))) => {
                    if let Some(event) = self.handle_routine_event(participant, message)? {
                        return Ok((participant, event));
                    }
                }
                Ok(None) => return Err(RunFailure::participant_lost(None, "all participants disconnected")),
                Err(_) if Instant::now() < deadline => {
                    self.broadcast(|| EngineCommand::Heartbeat);
                    next_heartbeat = Instant::now() + HEARTBEAT_INTERVAL;
                }
                Err(_) => {
                    let host = self.participants[missing].host.clone();
                    return Err(RunFailure::participant_lost(
                        host,
                        &format!("no answer within {} s", timeout.as_secs()),
                    ));
                }
            }
        }
    }

    /// Handles events that require no action by the caller; returns all others.
    fn handle_routine_event(
        &mut self,
        participant: usize,
        message: ParticipantEvent,
    ) -> Result<Option<EngineEvent>, RunFailure> {
        let host = self.participants[participant].host.clone();
        self.last_event_at[participant] = Instant::now();
        match message {
            ParticipantEvent::Lost(reason) if self.reports[participant].is_none() => {
                Err(RunFailure::Lost { host, reason })
            }
            ParticipantEvent::Lost(_) => Ok(None),
            ParticipantEvent::Event(EngineEvent::Failed(fault)) => Err(RunFailure::Engine { host, error: fault }),
            ParticipantEvent::Event(EngineEvent::Heartbeat) => Ok(None),
            ParticipantEvent::Event(EngineEvent::Progress(progress)) => {
                self.observer.on_progress(host.as_deref(), progress);
                Ok(None)
            }
            ParticipantEvent::Event(EngineEvent::StrandProgress(progress)) => {
                self.observer.on_strand_progress(host.as_deref(), &progress);
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

    pub(super) fn store_report(&mut self, participant: usize, event: EngineEvent) {
        if let EngineEvent::Report(report) = event {
            self.reports[participant] = Some(*report);
        }
    }

    /// Finds the cause of a failure: strands of this machine often fail because a server failed or was lost.
    pub(super) async fn find_root_cause(&mut self, failure: RunFailure) -> RunFailure {
        if !matches!(failure, RunFailure::Engine { host: None, .. }) {
            return failure;
        }
        let deadline = Instant::now() + ROOT_CAUSE_WINDOW;
        while let Ok(Some((participant, message))) = timeout_at(deadline, self.events.recv()).await {
            if let Err(cause) = self.handle_routine_event(participant, message)
                && self.participants[participant].host.is_some()
            {
                return cause;
            }
        }
        failure
    }

    /// Shuts down after a failure: lets strands end, and collects the results so far.
    pub(super) async fn shut_down(&mut self, failure: &RunFailure) {
        if !self.started {
            self.broadcast(|| EngineCommand::Report);
            return;
        }
        // Servers first: a client that has reported closes its connections, and a server that still uses them fails.
        for servers in [true, false] {
            for participant in self.participants.iter().filter(|participant| participant.host.is_some() == servers) {
                (participant.send)(EngineCommand::Report);
            }
            self.collect_reports(failure, servers).await;
        }
    }

    async fn collect_reports(&mut self, failure: &RunFailure, servers: bool) {
        let deadline = Instant::now() + Duration::from_secs(2);
        let failed = |participant: &Participant| match failure {
            RunFailure::Lost { host, .. } | RunFailure::Engine { host, .. } => {
                host.is_some() && participant.host == *host
            }
            RunFailure::Interrupted => false,
        };
        let expected = |participant: &Participant| participant.host.is_some() == servers && !failed(participant);
        let participants = self.participants.iter().zip(&self.reports);
        let mut pending: Vec<bool> =
            participants.map(|(participant, report)| report.is_none() && expected(participant)).collect();
        while pending.contains(&true) {
            match timeout_at(deadline, self.events.recv()).await {
                Ok(Some((participant, ParticipantEvent::Event(event @ EngineEvent::Report(_))))) => {
                    pending[participant] = false;
                    self.store_report(participant, event);
                }
                Ok(Some((participant, ParticipantEvent::Event(EngineEvent::StrandProgress(progress))))) => {
                    let host = self.participants[participant].host.clone();
                    self.observer.on_strand_progress(host.as_deref(), &progress);
                }
                Ok(Some((participant, ParticipantEvent::Lost(_)))) => pending[participant] = false,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn find_silent_participant(&self) -> Option<String> {
        let group =
            self.groups.iter().position(|group| group.deadline.is_some_and(|deadline| deadline <= Instant::now()))?;
        let silent = self
            .group_participants(group, true)
            .find(|participant| !self.groups[group].totals.contains_key(participant))?;
        self.participants[silent].host.clone()
    }

    pub(super) fn unexpected_event(&self, participant: usize) -> RunFailure {
        let fault = EngineError::new("unexpected message");
        RunFailure::Engine { host: self.participants[participant].host.clone(), error: fault }
    }
}

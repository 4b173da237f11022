//! The server: accepts authenticated clients, and executes its part of their runs within limits.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::ROOT_CAUSE_WINDOW;
use super::limits::SessionLimits;
use crate::control::{Channel, ChannelReceiver, ChannelSender, ControlError, ControlListener};
use crate::engine::clock;
use crate::engine::engine_set::{ChildCommandFactory, EngineSet};
use crate::engine::protocol::{Assignment, EngineCommand, EngineError, EngineErrorKind, EngineEvent, HostSession};
use crate::result::data_seconds;
use crate::transport::address::HostAddress;
use crate::transport::data_ports::DataPorts;
use wb_results::net::{StrandProgress, Usage};

/// An event for the server's log, with the client's address.
#[derive(Debug)]
pub enum ServerEvent {
    Refused(SocketAddr, ControlError),
    /// A client was refused because of the sessions of others.
    Busy(SocketAddr, EngineError),
    SessionStarted(SocketAddr, String),
    /// A client's run was accepted: this is the part of it that is executed here.
    RunAccepted(SocketAddr, Box<Assignment>),
    /// Strands of a session made progress, if the client requested reports of it.
    StrandProgress(SocketAddr, Vec<StrandProgress>),
    /// The client's run is over: CPU time of its strands here in the data phase, and the length of that phase in seconds.
    RunMeasured(SocketAddr, Usage, f64),
    SessionEnded(SocketAddr, SessionOutcome),
}

impl ServerEvent {
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Refused(..) | Self::Busy(..) | Self::SessionEnded(_, SessionOutcome::Failed(_)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionOutcome {
    #[error("done")]
    Done,
    /// The client disconnected, or the run failed.
    #[error("{0}")]
    Failed(String),
}

/// The configuration of a server.
#[derive(Clone)]
pub struct Server {
    pub limits: SessionLimits,
    /// Whether it serves one session in all.
    pub once: bool,
    /// CPUs that strands are pinned to, round-robin.
    pub cpus: Vec<usize>,
    /// Whether the client chooses them if that is empty, as iperf3's clients do.
    pub client_cpus: bool,
    /// `None` for that of the client.
    pub progress_interval: Option<Duration>,
    pub child: ChildCommandFactory,
    /// The ports on which data connections are accepted, by [`SessionLimits::ports`].
    pub ports: Arc<DataPorts>,
}

/// Runs a session as a task of its own: a panic in it is its outcome, and nobody else's.
async fn isolate(session: impl Future<Output = SessionOutcome> + Send + 'static) -> SessionOutcome {
    // Dropping this future ends the task.
    let mut task = JoinSet::new();
    task.spawn(session);
    match task.join_next().await {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => SessionOutcome::Failed(format!("internal error of the server: {error}")),
        None => SessionOutcome::Failed("internal error of the server: the session has no task".to_owned()),
    }
}

#[derive(Debug, Default, Clone)]
struct Sessions(Arc<Mutex<SessionCounts>>);

#[derive(Debug, Default)]
struct SessionCounts {
    active: usize,
    /// Sessions that began, whether or not they have ended.
    begun: usize,
}

/// A counted session, until it is dropped, however it ends.
#[derive(Debug)]
struct CountedSession(Sessions);

impl Sessions {
    fn counts(&self) -> MutexGuard<'_, SessionCounts> {
        // The counts are changed together, so they are right also after a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, limit: usize, once: bool) -> Result<CountedSession, EngineError> {
        let mut counts = self.counts();
        let busy = |message: String| EngineError { kind: EngineErrorKind::Busy, ..EngineError::new(message) };
        if once && counts.begun > 0 {
            return Err(busy("the server serves another client, and ends then (`net serve --once`)".to_owned()));
        }
        if counts.active >= limit {
            return Err(busy(format!(
                "the server has reached its limit of {limit} sessions (`net serve --max-sessions`)"
            )));
        }
        counts.active += 1;
        counts.begun += 1;
        Ok(CountedSession(self.clone()))
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.0.counts().active -= 1;
    }
}

struct SessionObserver<'a> {
    from: SocketAddr,
    on_event: &'a (dyn Fn(ServerEvent) + Send + Sync),
}

impl SessionObserver<'_> {
    fn report(&self, event: impl FnOnce(SocketAddr) -> ServerEvent) {
        (self.on_event)(event(self.from));
    }
}

impl Server {
    /// Serves until it is cancelled; then all sessions end.
    pub async fn serve(&self, listener: &ControlListener, on_event: impl Fn(ServerEvent) + Send + Sync + 'static) {
        let on_event = Arc::new(on_event);
        let sessions = Sessions::default();
        // Dropping this future drops all of them.
        let mut tasks = JoinSet::new();
        while let Ok(half_open) = listener.accept().await {
            let (server, on_event, sessions) = (self.clone(), on_event.clone(), sessions.clone());
            tasks.spawn(async move {
                let from = half_open.peer_addr();
                let channel = match half_open.handshake().await {
                    Ok(channel) => channel,
                    Err(error) => return on_event(ServerEvent::Refused(from, error)),
                };
                let session = match sessions.enter(server.limits.sessions, server.once) {
                    Ok(session) => session,
                    Err(busy) => {
                        on_event(ServerEvent::Busy(from, busy.clone()));
                        let (mut sender, _) = channel.split();
                        // That it was refused is all there is to know of it.
                        let _: SessionOutcome = reject(&mut sender, busy).await;
                        return;
                    }
                };
                on_event(ServerEvent::SessionStarted(from, channel.info().key.to_string()));
                let events = on_event.clone();
                let outcome = isolate(async move { server.serve_session(channel, &*events).await }).await;
                // Before the event: who learns of the end may start the next session.
                drop(session);
                on_event(ServerEvent::SessionEnded(from, outcome));
            });
            while tasks.try_join_next().is_some() {}
        }
    }

    async fn serve_session(&self, channel: Channel, on_event: &(dyn Fn(ServerEvent) + Send + Sync)) -> SessionOutcome {
        let from = channel.peer_addr();
        let addresses = (HostAddress::new(channel.local_addr()), HostAddress::new(channel.peer_addr()));
        let (mut sender, receiver) = channel.split();
        let (event_sender, events) = unbounded_channel();
        let engines = match EngineSet::start(self.child.clone(), self.ports.clone(), move |event| {
            event_sender.send(event).is_ok()
        }) {
            Ok(engines) => engines,
            Err(error) => {
                return reject(&mut sender, EngineError::new(format!("the server cannot start a thread: {error}")))
                    .await;
            }
        };
        let observer = SessionObserver { from, on_event };
        let outcome = self.run_session(&engines, addresses, &mut sender, receiver, events, observer).await;
        // Ignored: the session is over, and the client may have disconnected.
        let _: Result<Result<(), ControlError>, _> = timeout(Duration::from_secs(1), sender.close()).await;
        outcome
    }

    async fn run_session(
        &self,
        engines: &EngineSet,
        addresses: (HostAddress, HostAddress),
        sender: &mut ChannelSender,
        mut receiver: ChannelReceiver,
        mut events: UnboundedReceiver<EngineEvent>,
        observer: SessionObserver<'_>,
    ) -> SessionOutcome {
        let deadline = Instant::now() + self.limits.duration;
        let mut last_received = Instant::now();
        let mut reports = VecDeque::new();
        let mut profile = None;
        loop {
            tokio::select! {
                command = receiver.recv::<EngineCommand>() => {
                    last_received = Instant::now();
                    let command = match command {
                        Ok(Some(command)) => command,
                        Ok(None) => return SessionOutcome::Failed("the client disconnected".to_owned()),
                        Err(error) => return SessionOutcome::Failed(format!("lost the client: {error}")),
                    };
                    let command = match command {
                        EngineCommand::Prepare(assignment) => match self.limits.check(&assignment) {
                            Ok(()) => {
                                let assignment = Box::new(self.override_local_settings(*assignment, addresses));
                                profile = Some(assignment.profile.clone());
                                observer.report(|from| ServerEvent::RunAccepted(from, assignment.clone()));
                                EngineCommand::Prepare(assignment)
                            }
                            Err(fault) => return reject(sender, fault).await,
                        },
                        command => command,
                    };
                    // Heartbeats are answered, since the client may have chosen a long interval of progress reports.
                    if matches!(command, EngineCommand::Heartbeat)
                        && let Some(outcome) = self.send_event(sender, &EngineEvent::Heartbeat).await
                    {
                        return outcome;
                    }
                    engines.send(command);
                }
                event = events.recv() => {
                    let Some(event) = event else { return SessionOutcome::Failed("the engine's threads exited".to_owned()) };
                    if let Some(outcome) = self.send_event(sender, &event).await {
                        return outcome;
                    }
                    match event {
                        EngineEvent::Progress(progress) => {
                            reports.push_back(progress);
                            if let Some(limit) = self.limits.rate.filter(|limit| limit.is_exceeded(&mut reports)) {
                                let limit = limit.bits_per_second;
                                let reason = format!("more than {limit} bits per second (`--server-bitrate-limit`)");
                                return reject(sender, EngineError::new(reason)).await;
                            }
                            if self.limits.rate.is_none() {
                                reports.clear();
                            }
                        }
                        EngineEvent::StrandProgress(progress) => {
                            observer.report(|from| ServerEvent::StrandProgress(from, progress));
                        }
                        EngineEvent::Report(report) => {
                            let mut usage = Usage::default();
                            report.groups.iter().for_each(|group| usage.add(group.usage));
                            let seconds = profile.as_ref().map_or(0.0, |profile| data_seconds(profile, &report));
                            observer.report(|from| ServerEvent::RunMeasured(from, usage, seconds));
                            return SessionOutcome::Done;
                        }
                        EngineEvent::Failed(fault) => return find_root_cause(fault, &mut receiver).await,
                        _ => {}
                    }
                }
                () = sleep_until(last_received + self.limits.idle_timeout) => {
                    return SessionOutcome::Failed(format!("no message from the client for {} s", self.limits.idle_timeout.as_secs()));
                }
                () = sleep_until(deadline) => {
                    let limit = self.limits.duration.as_secs();
                    let fault = EngineError::new(format!("the session exceeded {limit} s (`net serve --max-time`)"));
                    return reject(sender, fault).await;
                }
            }
        }
    }

    /// Sends the client an event; returns the outcome of the session if that fails.
    async fn send_event(&self, sender: &mut ChannelSender, event: &EngineEvent) -> Option<SessionOutcome> {
        match timeout(self.limits.idle_timeout, sender.send(event)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(SessionOutcome::Failed(format!("lost the client: {error}"))),
            Err(_) => Some(SessionOutcome::Failed("timed out sending to the client".to_owned())),
        }
    }

    /// Replaces the client's claims about addresses, CPUs and ports by this server's own.
    fn override_local_settings(
        &self,
        mut assignment: Assignment,
        (local, peer): (HostAddress, HostAddress),
    ) -> Assignment {
        // The key is the client's choice; a second host would have no meaning.
        assignment.hosts = assignment
            .hosts
            .into_values()
            .take(1)
            .map(|session| ("client".to_owned(), HostSession { local, peer, ..session }))
            .collect();
        if !(self.client_cpus && self.cpus.is_empty()) {
            assignment.settings.cpus = self.cpus.clone();
        }
        if let Some(interval) = self.progress_interval {
            assignment.settings.progress_interval = clock::nanos(interval);
        }
        assignment.settings.ports = self.limits.ports.clone();
        assignment
    }
}

/// Finds the cause of a failure: strands often fail because the client disconnected.
async fn find_root_cause(fault: EngineError, receiver: &mut ChannelReceiver) -> SessionOutcome {
    match timeout(ROOT_CAUSE_WINDOW, receiver.recv::<EngineCommand>()).await {
        Ok(Err(error)) => SessionOutcome::Failed(format!("lost the client: {error}")),
        _ => SessionOutcome::Failed(fault.to_string()),
    }
}

async fn reject(sender: &mut ChannelSender, fault: EngineError) -> SessionOutcome {
    let outcome = SessionOutcome::Failed(fault.to_string());
    // Ignored: the client may have disconnected.
    let _: Result<Result<(), ControlError>, _> =
        timeout(Duration::from_secs(1), sender.send(&EngineEvent::Failed(fault))).await;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    // A panic leaked the session's place, and its error was dropped.
    #[test]
    fn a_panic_in_a_session_is_its_outcome_and_frees_its_place() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let sessions = Sessions::default();
            let counted = sessions.enter(1, false).unwrap();
            assert_eq!(sessions.enter(1, false).unwrap_err().kind, EngineErrorKind::Busy);
            let outcome = isolate(async move {
                let _counted = counted;
                panic!("out of order")
            });
            let SessionOutcome::Failed(reason) = outcome.await else { panic!("it is done") };
            assert!(
                reason.starts_with("internal error of the server: ") && reason.contains("out of order"),
                "{reason}"
            );
            assert!(sessions.enter(1, false).is_ok(), "the next session has the place");
            assert_eq!(sessions.enter(1, true).unwrap_err().kind, EngineErrorKind::Busy);
            assert_eq!(isolate(async { SessionOutcome::Done }).await, SessionOutcome::Done);
        });
    }
}

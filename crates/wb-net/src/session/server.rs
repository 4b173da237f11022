//! The server: lets clients in that are trusted, and carries out its part of their runs within limits.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::limits::SessionLimits;
use crate::control::{Channel, ChannelReceiver, ChannelSender, ControlError, ControlListener};
use crate::engine::{
    engine_set::{ChildCommandFactory, EngineSet, EngineSetHandle},
    protocol::{Assignment, EngineCommand, EngineError, EngineEvent, HostAddresses},
};
use crate::transport::address::HostAddress;

/// What a server tells its log.
#[derive(Debug)]
pub enum ServerEvent {
    /// A connection was not let in.
    Refused(SocketAddr, ControlError),
    /// A client begins a session.
    SessionStarted(SocketAddr, String),
    /// A session is over.
    SessionEnded(SocketAddr, SessionOutcome),
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionOutcome {
    /// The run went to its end.
    #[error("done")]
    Done,
    /// The client went away, or something of the run failed.
    #[error("{0}")]
    Failed(String),
}

/// What a server is.
#[derive(Clone)]
pub struct Server {
    /// What it does for a client at most.
    pub limits: SessionLimits,
    /// CPUs that strands are pinned to, in turn.
    pub cpus: Vec<usize>,
    /// How processes for strands are made.
    pub child: ChildCommandFactory,
}

/// After a failure, whether the client is there is known within this time.
const ROOT_CAUSE_WINDOW: Duration = Duration::from_millis(500);

impl Server {
    /// Serves until it is cancelled; then all sessions end.
    pub async fn serve(&self, listener: &ControlListener, tell: impl Fn(ServerEvent) + Send + Sync + 'static) {
        let tell = Arc::new(tell);
        let sessions = Arc::new(AtomicUsize::new(0));
        // When this future is dropped, so are they.
        let mut tasks = JoinSet::new();
        while let Ok(half_open) = listener.accept().await {
            let (server, tell, sessions) = (self.clone(), tell.clone(), sessions.clone());
            tasks.spawn(async move {
                let from = half_open.peer_addr();
                match half_open.handshake().await {
                    Ok(channel) => {
                        let key = channel.info().key.to_string();
                        tell(ServerEvent::SessionStarted(from, key));
                        let busy = sessions.fetch_add(1, Ordering::SeqCst) >= server.limits.sessions;
                        let over = server.serve_session(channel, busy).await;
                        sessions.fetch_sub(1, Ordering::SeqCst);
                        tell(ServerEvent::SessionEnded(from, over));
                    }
                    Err(error) => tell(ServerEvent::Refused(from, error)),
                }
            });
            while tasks.try_join_next().is_some() {}
        }
    }

    async fn serve_session(&self, channel: Channel, busy: bool) -> SessionOutcome {
        let ends = (canonical_address(channel.local_addr()), canonical_address(channel.peer_addr()));
        let (mut sender, receiver) = channel.split();
        if busy {
            let limit = self.limits.sessions;
            let fault =
                EngineError::new(format!("the server has {limit} sessions already (`net serve --max-sessions`)"));
            return reject(&mut sender, fault).await;
        }
        let (tell, events) = unbounded_channel();
        let team = match EngineSet::start(self.child.clone(), move |event| tell.send(event).is_ok()) {
            Ok(team) => team,
            Err(error) => {
                return reject(&mut sender, EngineError::new(format!("the server has no thread: {error}"))).await;
            }
        };
        let over = self.run_session(&team, ends, &mut sender, receiver, events).await;
        // What is left in the channel has no meaning any more; a client that is gone does not matter.
        let _: Result<Result<(), ControlError>, _> = timeout(Duration::from_secs(1), sender.close()).await;
        over
    }

    async fn run_session(
        &self,
        team: &EngineSetHandle,
        ends: (SocketAddr, SocketAddr),
        sender: &mut ChannelSender,
        mut receiver: ChannelReceiver,
        mut events: UnboundedReceiver<EngineEvent>,
    ) -> SessionOutcome {
        let deadline = Instant::now() + self.limits.duration;
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                order = receiver.recv::<EngineCommand>() => {
                    heard = Instant::now();
                    let order = match order {
                        Ok(Some(order)) => order,
                        Ok(None) => return SessionOutcome::Failed("the client left".to_owned()),
                        Err(error) => return SessionOutcome::Failed(format!("the client is gone: {error}")),
                    };
                    let order = match order {
                        EngineCommand::Prepare(assignment) => match self.limits.check(&assignment) {
                            Ok(()) => EngineCommand::Prepare(Box::new(self.override_local_settings(*assignment, ends))),
                            Err(fault) => return reject(sender, fault).await,
                        },
                        order => order,
                    };
                    // Progress is told only as often as the client wants it, which may be seldom.
                    if matches!(order, EngineCommand::Heartbeat)
                        && let Some(over) = self.send_event(sender, &EngineEvent::Heartbeat).await
                    {
                        return over;
                    }
                    team.send(order);
                }
                event = events.recv() => {
                    let Some(event) = event else { return SessionOutcome::Failed("its own threads ended".to_owned()) };
                    if let Some(over) = self.send_event(sender, &event).await {
                        return over;
                    }
                    match event {
                        EngineEvent::Report(_) => return SessionOutcome::Done,
                        EngineEvent::Failed(fault) => return find_root_cause(fault, &mut receiver).await,
                        _ => {}
                    }
                }
                () = sleep_until(heard + self.limits.idle_timeout) => {
                    return SessionOutcome::Failed(format!("the client said nothing for {} s", self.limits.idle_timeout.as_secs()));
                }
                () = sleep_until(deadline) => {
                    let limit = self.limits.duration.as_secs();
                    let fault = EngineError::new(format!("the session took {limit} s (`net serve --max-time`)"));
                    return reject(sender, fault).await;
                }
            }
        }
    }

    /// Tells the client something; how the session is over where it cannot be told.
    async fn send_event(&self, sender: &mut ChannelSender, event: &EngineEvent) -> Option<SessionOutcome> {
        match timeout(self.limits.idle_timeout, sender.send(event)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(SessionOutcome::Failed(format!("the client is gone: {error}"))),
            Err(_) => Some(SessionOutcome::Failed("the client takes nothing".to_owned())),
        }
    }

    /// Replaces the client's claims about addresses, CPUs and ports by this server's own.
    fn override_local_settings(
        &self,
        mut assignment: Assignment,
        (local, peer): (SocketAddr, SocketAddr),
    ) -> Assignment {
        let places = HostAddresses { local: HostAddress::Ip(local.ip()), peer: HostAddress::Ip(peer.ip()) };
        assignment.hosts = BTreeMap::from([("client".to_owned(), places)]);
        assignment.settings.cpus = self.cpus.clone();
        assignment.settings.ports = self.limits.ports.clone().map(|ports| (*ports.start(), *ports.end()));
        assignment
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn canonical_address(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Strands often fail because the client is gone: then that is what happened.
async fn find_root_cause(fault: EngineError, receiver: &mut ChannelReceiver) -> SessionOutcome {
    match timeout(ROOT_CAUSE_WINDOW, receiver.recv::<EngineCommand>()).await {
        Ok(Err(error)) => SessionOutcome::Failed(format!("the client is gone: {error}")),
        _ => SessionOutcome::Failed(fault.to_string()),
    }
}

async fn reject(sender: &mut ChannelSender, fault: EngineError) -> SessionOutcome {
    let over = SessionOutcome::Failed(fault.to_string());
    // A client that is gone need not know.
    let _: Result<Result<(), ControlError>, _> =
        timeout(Duration::from_secs(1), sender.send(&EngineEvent::Failed(fault))).await;
    over
}

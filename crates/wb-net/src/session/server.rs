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
use crate::control::{Channel, ControlError, Listener, Receiver, Sender};
use crate::engine::{
    team::{ChildCommand, Handle, Team},
    work::{Assignment, Event, Fault, Order, Places},
};
use crate::transport::address::Place;

/// What a server tells its log.
#[derive(Debug)]
pub enum ServerNews {
    /// A connection was not let in.
    Refused(SocketAddr, ControlError),
    /// A client begins a session.
    Begun(SocketAddr, String),
    /// A session is over.
    Over(SocketAddr, Over),
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Over {
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
    pub child: ChildCommand,
}

/// After a failure, whether the client is there is known within this time.
const HINDSIGHT: Duration = Duration::from_millis(500);

impl Server {
    /// Serves until it is cancelled; then all sessions end.
    pub async fn serve(&self, listener: &Listener, tell: impl Fn(ServerNews) + Send + Sync + 'static) {
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
                        let key = channel.ends().key.to_string();
                        tell(ServerNews::Begun(from, key));
                        let busy = sessions.fetch_add(1, Ordering::SeqCst) >= server.limits.sessions;
                        let over = server.session(channel, busy).await;
                        sessions.fetch_sub(1, Ordering::SeqCst);
                        tell(ServerNews::Over(from, over));
                    }
                    Err(error) => tell(ServerNews::Refused(from, error)),
                }
            });
            while tasks.try_join_next().is_some() {}
        }
    }

    async fn session(&self, channel: Channel, busy: bool) -> Over {
        let ends = (own_kind(channel.local_addr()), own_kind(channel.peer_addr()));
        let (mut sender, receiver) = channel.split();
        if busy {
            let limit = self.limits.sessions;
            let fault = Fault::new(format!("the server has {limit} sessions already (`net serve --max-sessions`)"));
            return refuse(&mut sender, fault).await;
        }
        let (tell, events) = unbounded_channel();
        let team = match Team::start(self.child.clone(), move |event| tell.send(event).is_ok()) {
            Ok(team) => team,
            Err(error) => return refuse(&mut sender, Fault::new(format!("the server has no thread: {error}"))).await,
        };
        let over = self.drive(&team, ends, &mut sender, receiver, events).await;
        // What is left in the channel has no meaning any more; a client that is gone does not matter.
        let _: Result<Result<(), ControlError>, _> = timeout(Duration::from_secs(1), sender.close()).await;
        over
    }

    async fn drive(
        &self,
        team: &Handle,
        ends: (SocketAddr, SocketAddr),
        sender: &mut Sender,
        mut receiver: Receiver,
        mut events: UnboundedReceiver<Event>,
    ) -> Over {
        let deadline = Instant::now() + self.limits.time;
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                order = receiver.recv::<Order>() => {
                    heard = Instant::now();
                    let order = match order {
                        Ok(Some(order)) => order,
                        Ok(None) => return Over::Failed("the client left".to_owned()),
                        Err(error) => return Over::Failed(format!("the client is gone: {error}")),
                    };
                    let order = match order {
                        Order::Prepare(assignment) => match self.limits.check(&assignment) {
                            Ok(()) => Order::Prepare(Box::new(self.own(*assignment, ends))),
                            Err(fault) => return refuse(sender, fault).await,
                        },
                        order => order,
                    };
                    // Progress is told only as often as the client wants it, which may be seldom.
                    if matches!(order, Order::Alive)
                        && let Some(over) = self.tell(sender, &Event::Alive).await
                    {
                        return over;
                    }
                    team.order(order);
                }
                event = events.recv() => {
                    let Some(event) = event else { return Over::Failed("its own threads ended".to_owned()) };
                    if let Some(over) = self.tell(sender, &event).await {
                        return over;
                    }
                    match event {
                        Event::Report(_) => return Over::Done,
                        Event::Failed(fault) => return cause(fault, &mut receiver).await,
                        _ => {}
                    }
                }
                () = sleep_until(heard + self.limits.silence) => {
                    return Over::Failed(format!("the client said nothing for {} s", self.limits.silence.as_secs()));
                }
                () = sleep_until(deadline) => {
                    let limit = self.limits.time.as_secs();
                    let fault = Fault::new(format!("the session took {limit} s (`net serve --max-time`)"));
                    return refuse(sender, fault).await;
                }
            }
        }
    }

    /// Tells the client something; how the session is over where it cannot be told.
    async fn tell(&self, sender: &mut Sender, event: &Event) -> Option<Over> {
        match timeout(self.limits.silence, sender.send(event)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Over::Failed(format!("the client is gone: {error}"))),
            Err(_) => Some(Over::Failed("the client takes nothing".to_owned())),
        }
    }

    /// What a client says of this machine is replaced by what is so.
    fn own(&self, mut assignment: Assignment, (local, peer): (SocketAddr, SocketAddr)) -> Assignment {
        let places = Places { here: Place::Ip(local.ip()), there: Place::Ip(peer.ip()) };
        assignment.hosts = BTreeMap::from([("client".to_owned(), places)]);
        assignment.settings.cpus = self.cpus.clone();
        assignment.settings.ports = self.limits.ports.clone().map(|ports| (*ports.start(), *ports.end()));
        assignment
    }
}

/// An address without the disguise that IPv4 wears at a socket of IPv6: the client knows it without.
fn own_kind(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Strands often fail because the client is gone: then that is what happened.
async fn cause(fault: Fault, receiver: &mut Receiver) -> Over {
    match timeout(HINDSIGHT, receiver.recv::<Order>()).await {
        Ok(Err(error)) => Over::Failed(format!("the client is gone: {error}")),
        _ => Over::Failed(fault.to_string()),
    }
}

async fn refuse(sender: &mut Sender, fault: Fault) -> Over {
    let over = Over::Failed(fault.to_string());
    // A client that is gone need not know.
    let _: Result<Result<(), ControlError>, _> =
        timeout(Duration::from_secs(1), sender.send(&Event::Failed(fault))).await;
    over
}

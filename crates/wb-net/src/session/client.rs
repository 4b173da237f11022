//! The client: finds the servers of a profile, coordinates the run with them, and puts the result together.

use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, ToSocketAddrs},
    time::Duration,
};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::coordinator::{Participant, ParticipantEvent, RunObserver, RunOutcome, coordinate};
use crate::control::{Channel, ControlError, ControlLimits, Credentials, connect};
use crate::engine::{
    engine_set::{ChildCommandFactory, EngineSet},
    files,
    protocol::{Assignment, EngineCommand, HostAddresses, Settings, Side},
};
use crate::language::{Files, FlowopAction, NetProfile};
use crate::mirror::{hosts, mirror};
use crate::transport::address::HostAddress;

/// The port of the control connection, uperf's.
pub const PORT: u16 = 20000;

/// A run that is to be made.
pub struct ClientRun {
    /// What is run.
    pub profile: NetProfile,
    /// Where the servers of the profile's hosts are, if not at the hosts' names and the usual port.
    pub servers: BTreeMap<String, String>,
    /// The port of the control connection where none is named.
    pub port: u16,
    /// Who this is, and who is trusted.
    pub credentials: Credentials,
    /// How long things may take that are not measured.
    pub limits: ControlLimits,
    /// How strands are carried out.
    pub settings: Settings,
    /// Transactions are cut after so long.
    pub limit: Option<Duration>,
    /// From which sizes and files are drawn.
    pub seed: u64,
    /// How processes for strands are made.
    pub child: ChildCommandFactory,
}

/// What a run was made of, and how it ended.
#[derive(Debug)]
pub struct FinishedRun {
    /// The hosts of the profile and where they were, in the order of the reports after the first, the client's.
    pub hosts: Vec<(String, SocketAddr)>,
    /// How it ended.
    pub outcome: RunOutcome,
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A host's name stands for no address.
    #[error("host `{host}` has no address: {why}")]
    Unresolved {
        /// As the profile writes it.
        host: String,
        /// The system's word.
        why: io::Error,
    },
    /// No server could be reached, or it did not let us in.
    #[error("host `{host}`: {source}")]
    Server {
        /// As the profile writes it.
        host: String,
        /// Why.
        source: ControlError,
    },
    /// What the profile wants to send is not there.
    #[error("files to send: {0}")]
    Files(io::Error),
    /// This machine has no room for another thread.
    #[error("no thread for the run: {0}")]
    Thread(io::Error),
}

impl ClientRun {
    /// Makes it; `interrupted` ends it early.
    pub async fn execute(
        &self,
        interrupted: impl Future<Output = ()>,
        observer: &mut dyn RunObserver,
    ) -> Result<FinishedRun, ClientError> {
        let names = hosts(&self.profile);
        check_files(&self.profile)?;
        let mut channels = Vec::new();
        for host in &names {
            let channel = self.connect_host(host).await?;
            channels.push((host.clone(), channel));
        }
        let places = |channel: &Channel| HostAddresses {
            local: HostAddress::Ip(channel.local_addr().ip()),
            peer: HostAddress::Ip(channel.peer_addr().ip()),
        };
        let known = channels.iter().map(|(host, channel)| (host.clone(), places(channel))).collect();
        let addresses = channels.iter().map(|(host, channel)| (host.clone(), channel.peer_addr())).collect();
        let (tell, events) = unbounded_channel();
        let mut parties = vec![self.local_participant(known, tell.clone())?];
        for (position, (host, channel)) in channels.into_iter().enumerate() {
            parties.push(self.server_participant(host, channel, position + 1, tell.clone()));
        }
        drop(tell);
        let ended = coordinate(&self.profile, parties, events, self.limit, interrupted, observer).await;
        Ok(FinishedRun { hosts: addresses, outcome: ended })
    }

    async fn connect_host(&self, host: &str) -> Result<Channel, ClientError> {
        let address = self.servers.get(host).map_or(host, String::as_str);
        let candidates = resolve(address, self.port).await;
        let candidates = candidates.map_err(|why| ClientError::Unresolved { host: host.to_owned(), why })?;
        let mut last = None;
        for candidate in candidates {
            match connect(candidate, &self.credentials, &self.limits).await {
                Ok(channel) => return Ok(channel),
                Err(error) => last = Some(error),
            }
        }
        Err(match last {
            Some(source) => ClientError::Server { host: host.to_owned(), source },
            None => ClientError::Unresolved { host: host.to_owned(), why: io::Error::other("it stands for none") },
        })
    }

    fn local_participant(
        &self,
        hosts: BTreeMap<String, HostAddresses>,
        tell: UnboundedSender<(usize, ParticipantEvent)>,
    ) -> Result<Participant, ClientError> {
        let team =
            EngineSet::start(self.child.clone(), move |event| tell.send((0, ParticipantEvent::Event(event))).is_ok());
        let team = team.map_err(ClientError::Thread)?;
        let assignment = Assignment {
            profile: self.profile.clone(),
            side: Side::Client,
            strands: self.profile.groups.iter().map(|group| 0..group.strands).collect(),
            hosts,
            seed: self.seed,
            settings: self.settings.clone(),
        };
        Ok(Participant { host: None, assignment, send: Box::new(move |order| team.send(order)) })
    }

    fn server_participant(
        &self,
        host: String,
        channel: Channel,
        position: usize,
        tell: UnboundedSender<(usize, ParticipantEvent)>,
    ) -> Participant {
        // Listed before, so that it can be listed again.
        let sizes = |files: &Files| {
            files::list(files).map_or_else(|_| Vec::new(), |listed| listed.into_iter().map(|(_, size)| size).collect())
        };
        let profile = mirror(&self.profile, &host, &sizes);
        let concerned = |group: &crate::language::Group| {
            let mut flowops = group.transactions.iter().flat_map(|transaction| &transaction.flowops);
            flowops.any(|flowop| !matches!(flowop.action, FlowopAction::Skip))
        };
        let strands =
            profile.groups.iter().map(|group| if concerned(group) { 0..group.strands } else { 0..0 }).collect();
        let limit = self.limit.map(|limit| limit.as_nanos() as u64);
        let settings =
            Settings { raw: false, cpus: Vec::new(), ports: None, max_duration: limit, ..self.settings.clone() };
        let assignment =
            Assignment { profile, side: Side::Server, strands, hosts: BTreeMap::new(), seed: self.seed, settings };
        let (orders, mut to_send) = unbounded_channel::<EngineCommand>();
        let (mut sender, mut receiver) = channel.split();
        tokio::spawn(async move {
            while let Some(order) = to_send.recv().await {
                if sender.send(&order).await.is_err() {
                    // The receiver tells why.
                    return;
                }
            }
            // The run is over; a server that is gone need not know.
            let _: Result<(), ControlError> = sender.close().await;
        });
        tokio::spawn(async move {
            loop {
                let news = match receiver.recv().await {
                    Ok(Some(event)) => ParticipantEvent::Event(event),
                    Ok(None) => ParticipantEvent::Lost("it ended the session".to_owned()),
                    Err(error) => ParticipantEvent::Lost(error.to_string()),
                };
                let over = matches!(news, ParticipantEvent::Lost(_));
                if tell.send((position, news)).is_err() || over {
                    return;
                }
            }
        });
        Participant { host: Some(host), assignment, send: Box::new(move |order| orders.send(order).is_ok()) }
    }
}

fn check_files(profile: &NetProfile) -> Result<(), ClientError> {
    let flowops = profile.groups.iter().flat_map(|group| &group.transactions).flat_map(|part| &part.flowops);
    for flowop in flowops {
        if let FlowopAction::SendFiles(files) = &flowop.action {
            files::list(files).map_err(ClientError::Files)?;
        }
    }
    Ok(())
}

/// `HOST`, `HOST:PORT`, `ADDRESS`, `[ADDRESS]:PORT`.
async fn resolve(text: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = text.parse::<std::net::IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let text = text.to_owned();
    // The system's resolver blocks.
    let found = tokio::task::spawn_blocking(move || match text.rsplit_once(':') {
        Some((_, after)) if after.parse::<u16>().is_ok() => text.to_socket_addrs(),
        _ => (text.as_str(), port).to_socket_addrs(),
    });
    found.await.map_err(io::Error::other)?.map(Iterator::collect)
}

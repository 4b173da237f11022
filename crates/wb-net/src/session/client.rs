//! The client: connects to the servers of a profile, and coordinates the run with them.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::coordinator::{Participant, ParticipantEvent, RunObserver, RunOutcome, coordinate};
use crate::control::{Channel, ControlError, ControlLimits, Credentials, connect};
use crate::engine::engine_set::{ChildCommandFactory, EngineSet};
use crate::engine::files;
use crate::engine::protocol::{Assignment, EngineCommand, HostSession, Settings, Side};
use crate::transport::address::HostAddress;
use crate::transport::cookie::SessionKey;
use crate::transport::data_ports::{DataPorts, PortPolicy};
use wb_net_profile::mirror::{hosts, mirror};
use wb_net_profile::{Files, FlowopAction, Group, NetProfile};

/// The default port of the control connection, as in uperf.
pub const PORT: u16 = 20000;

pub struct ClientRun {
    pub profile: NetProfile,
    /// Addresses of the servers of the profile's hosts, where they differ from the host's name and the default port.
    pub servers: BTreeMap<String, String>,
    /// The port of control connections, unless an address includes one.
    pub port: u16,
    pub credentials: Credentials,
    pub limits: ControlLimits,
    pub settings: Settings,
    /// Time limit after which transactions are truncated.
    pub limit: Option<Duration>,
    /// CPUs of the servers' strands, for servers that let their clients choose them.
    pub server_cpus: Vec<usize>,
    pub seed: u64,
    pub child: ChildCommandFactory,
}

#[derive(Debug)]
pub struct FinishedRun {
    /// The hosts of the profile and their addresses, in the order of the reports after the first, the client's.
    pub hosts: Vec<(String, SocketAddr)>,
    pub outcome: RunOutcome,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot resolve host `{host}`: {source}")]
    Unresolved { host: String, source: io::Error },
    #[error("host `{host}`: {source}")]
    Server { host: String, source: ControlError },
    #[error("cannot list files to send: {0}")]
    Files(io::Error),
    #[error("cannot generate the key of the session: {0}")]
    Key(io::Error),
    #[error("cannot start thread: {0}")]
    Thread(io::Error),
}

impl ClientRun {
    /// A run with the default settings, of servers at the names of their hosts and the default port.
    pub fn new(profile: NetProfile, credentials: Credentials, child: ChildCommandFactory, seed: u64) -> Self {
        Self {
            profile,
            servers: BTreeMap::new(),
            port: PORT,
            credentials,
            limits: ControlLimits::default(),
            settings: Settings::default(),
            limit: None,
            server_cpus: Vec::new(),
            seed,
            child,
        }
    }

    /// Executes the run; `interrupted` ends it early.
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
        let mut sessions = BTreeMap::new();
        for (host, channel) in &channels {
            let session = HostSession {
                local: HostAddress::new(channel.local_addr()),
                peer: HostAddress::new(channel.peer_addr()),
                key: SessionKey::generate().map_err(ClientError::Key)?,
            };
            sessions.insert(host.clone(), session);
        }
        let server_addresses = channels.iter().map(|(host, channel)| (host.clone(), channel.peer_addr())).collect();
        let (event_sender, events) = unbounded_channel();
        let mut participants = vec![self.local_participant(sessions.clone(), event_sender.clone())?];
        for (position, (host, channel)) in channels.into_iter().enumerate() {
            let session = sessions.remove(&host).map(|session| ("client".to_owned(), session));
            let hosts = session.into_iter().collect();
            participants.push(self.server_participant(host, channel, hosts, position + 1, event_sender.clone()));
        }
        drop(event_sender);
        let outcome = coordinate(&self.profile, participants, events, self.limit, interrupted, observer).await;
        Ok(FinishedRun { hosts: server_addresses, outcome })
    }

    async fn connect_host(&self, host: &str) -> Result<Channel, ClientError> {
        let address = self.servers.get(host).map_or(host, String::as_str);
        let candidates = resolve(address, self.port).await;
        let candidates = candidates.map_err(|why| ClientError::Unresolved { host: host.to_owned(), source: why })?;
        let mut last = None;
        for candidate in candidates {
            match connect(candidate, &self.credentials, &self.limits).await {
                Ok(channel) => return Ok(channel),
                Err(error) => last = Some(error),
            }
        }
        Err(match last {
            Some(source) => ClientError::Server { host: host.to_owned(), source },
            None => ClientError::Unresolved { host: host.to_owned(), source: io::Error::other("no addresses found") },
        })
    }

    fn local_participant(
        &self,
        hosts: BTreeMap<String, HostSession>,
        event_sender: UnboundedSender<(usize, ParticipantEvent)>,
    ) -> Result<Participant, ClientError> {
        let engines = EngineSet::start(self.child.clone(), DataPorts::new(PortPolicy::Any), move |event| {
            event_sender.send((0, ParticipantEvent::Event(event))).is_ok()
        });
        let engines = engines.map_err(ClientError::Thread)?;
        let assignment = Assignment {
            profile: self.profile.clone(),
            side: Side::Client,
            strands: self.profile.groups.iter().map(|group| 0..group.strands).collect(),
            hosts,
            seed: self.seed,
            settings: self.settings.clone(),
        };
        Ok(Participant { host: None, assignment, send: Box::new(move |command| engines.send(command)) })
    }

    fn server_participant(
        &self,
        host: String,
        channel: Channel,
        hosts: BTreeMap<String, HostSession>,
        position: usize,
        event_sender: UnboundedSender<(usize, ParticipantEvent)>,
    ) -> Participant {
        // Cannot fail: the files were listed before.
        let sizes = |files: &Files| {
            files::list(files)
                .map_or_else(|_| Vec::new(), |entries| entries.into_iter().map(|(_, size)| size).collect())
        };
        let profile = mirror(&self.profile, &host, &sizes);
        let concerned = |group: &Group| group.flowops().any(|flowop| !matches!(flowop.action, FlowopAction::Skip));
        let strands =
            profile.groups.iter().map(|group| if concerned(group) { 0..group.strands } else { 0..0 }).collect();
        let limit = self.limit.map(|limit| limit.as_nanos() as u64);
        let settings = Settings {
            raw: false,
            cpus: self.server_cpus.clone(),
            ports: PortPolicy::Any,
            max_duration: limit,
            ..self.settings.clone()
        };
        let assignment = Assignment { profile, side: Side::Server, strands, hosts, seed: self.seed, settings };
        let (commands, mut queue) = unbounded_channel::<EngineCommand>();
        let (mut sender, mut receiver) = channel.split();
        tokio::spawn(async move {
            while let Some(command) = queue.recv().await {
                if sender.send(&command).await.is_err() {
                    // The receiving task reports the reason.
                    return;
                }
            }
            // Ignored: the run is over, and the server may have disconnected.
            let _: Result<(), ControlError> = sender.close().await;
        });
        tokio::spawn(async move {
            loop {
                let event = match receiver.recv().await {
                    Ok(Some(event)) => ParticipantEvent::Event(event),
                    Ok(None) => ParticipantEvent::Lost("it closed the session".to_owned()),
                    Err(error) => ParticipantEvent::Lost(error.to_string()),
                };
                let lost = matches!(event, ParticipantEvent::Lost(_));
                if event_sender.send((position, event)).is_err() || lost {
                    return;
                }
            }
        });
        Participant { host: Some(host), assignment, send: Box::new(move |command| commands.send(command).is_ok()) }
    }
}

fn check_files(profile: &NetProfile) -> Result<(), ClientError> {
    for flowop in profile.flowops() {
        if let FlowopAction::SendFiles(files) = &flowop.action {
            files::list(files).map_err(ClientError::Files)?;
        }
    }
    Ok(())
}

/// Resolves `HOST`, `HOST:PORT`, `ADDRESS`, `[ADDRESS]` or `[ADDRESS]:PORT`, also of a link-local address with its
/// interface (`fe80::1%eth0`).
async fn resolve(text: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = text.parse::<std::net::IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (host, port) = match text.rsplit_once(':') {
        // Colons belong to an address of IPv6 unless it is in brackets.
        Some((host, after)) if !host.contains(':') || host.ends_with(']') => match after.parse() {
            Ok(port) => (host, port),
            Err(_) => (text, port),
        },
        _ => (text, port),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).to_owned();
    // The system's resolver is blocking.
    let addresses = tokio::task::spawn_blocking(move || (host.as_str(), port).to_socket_addrs());
    addresses.await.map_err(io::Error::other)?.map(Iterator::collect)
}

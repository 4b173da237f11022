//! Preparation of an engine's run: strands with their ends of links, and the executors that run them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::engine::descriptors;
use crate::engine::event_loop::{self, GroupStrands};
use crate::engine::executor::{self, GroupMetrics};
use crate::engine::executor_message::{EngineInput, ExecutorCommand, ExecutorEvent, Waker};
use crate::engine::plan::GroupPlan;
use crate::engine::protocol::{
    Assignment, EngineError, EngineErrorKind, ExecutorKind, HostSession, LinkAnnouncement, LinkId, Settings, Side,
    StrandTotals,
};
use crate::engine::raw_log::{self, RawLog, RawLogReader};
use crate::engine::strand::files::{self, FileLists};
use crate::engine::strand::{Signals, Strand, StrandConfig};
use crate::engine::tally::LiveCounters;
use crate::transport::address::{HostAddress, TransportAddress};
use crate::transport::cookie::LinkKey;
use crate::transport::data_ports::DataPorts;
use crate::transport::link::{LinkConfig, LinkEnd, LinkRole};
use crate::transport::watched_connection::WatchedConnection;
use wb_net_profile::FlowopAction;

/// A prepared run: the strands, links and threads of one engine.
pub(super) struct PreparedRun {
    pub(super) side: Side,
    pub(super) executor: ExecutorKind,
    pub(super) plans: Vec<Arc<GroupPlan>>,
    pub(super) executors: Vec<Executor>,
    pub(super) live_counters: Vec<Arc<LiveCounters>>,
    /// The strands whose progress is reported one by one.
    pub(super) live_strands: Vec<LiveStrand>,
    pub(super) raw: Vec<RawLogReader>,
    /// Number of executor reports that make up the engine's report.
    pub(super) report_count: usize,
    /// The links that this side connects, until their peers are set: the number of the connect, and the peer's host.
    connecting: HashMap<(LinkId, u32), (u32, HostAddress)>,
    groups: Vec<Vec<GroupStrands>>,
    settings: Settings,
    announcements: Vec<LinkAnnouncement>,
}

/// What the engine's thread observes of a strand.
pub(super) struct LiveStrand {
    pub(super) group: usize,
    pub(super) strand: u32,
    pub(super) counters: Arc<LiveCounters>,
    pub(super) connection: Arc<WatchedConnection>,
}

/// A thread that executes strands.
pub(super) struct Executor {
    pub(super) commands: Sender<ExecutorCommand>,
    pub(super) waker: Option<Waker>,
    pub(super) signals: Vec<((usize, u32), Arc<Signals>)>,
    pub(super) thread: JoinHandle<()>,
}

/// With more histograms than this in a process, each has two significant digits and takes 18 kB, not three and 131 kB.
const MAX_PRECISE_HISTOGRAMS: usize = 512;

impl PreparedRun {
    pub(super) fn new(assignment: Assignment, ports: &Arc<DataPorts>) -> Result<Self, EngineError> {
        let Assignment { profile, side, strands, hosts, seed, settings } = assignment;
        descriptors::raise_limit();
        let positions: BTreeMap<String, u32> = hosts.keys().cloned().zip(0..).collect();
        let sessions: Vec<HostSession> = hosts.values().copied().collect();
        let plans: Vec<Arc<GroupPlan>> = profile
            .groups
            .iter()
            .zip(0..)
            .map(|(group, index)| Arc::new(GroupPlan::new(index, group, side, &positions)))
            .collect();
        let total: usize = strands.iter().map(|strands| strands.len()).sum();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let cpus = if settings.cpus.is_empty() { cpus } else { settings.cpus.len() };
        let executor = if total > settings.max_threads as usize {
            ExecutorKind::EventLoop { threads: cpus.min(total) as u32 }
        } else {
            ExecutorKind::ThreadPerStrand
        };
        let executor_count = match executor {
            ExecutorKind::ThreadPerStrand => total,
            ExecutorKind::EventLoop { threads } => threads as usize,
        };
        let mut this = Self {
            side,
            executor,
            plans: plans.clone(),
            executors: Vec::new(),
            live_counters: Vec::new(),
            live_strands: Vec::new(),
            raw: Vec::new(),
            report_count: 0,
            connecting: HashMap::new(),
            groups: (0..executor_count).map(|_| Vec::new()).collect(),
            settings,
            announcements: Vec::new(),
        };
        let flowops: usize =
            plans.iter().flat_map(|plan| &plan.transactions).map(|transaction| transaction.flowops.len()).sum();
        // Histograms belong to a thread, so their number is what memory depends on.
        let digits = if flowops * executor_count > MAX_PRECISE_HISTOGRAMS { 2 } else { 3 };
        let mut next = 0;
        for (group, range) in strands.iter().enumerate() {
            let files = if range.is_empty() { FileLists::default() } else { list_files(&this.plans[group])? };
            for index in range.clone() {
                let strand = this.build_strand(group, index, seed, &sessions, ports, files.clone())?;
                let target = next % executor_count;
                next += 1;
                let watched = strand.watched.clone();
                let entry = this.group_mut(target, group, digits);
                let counters = entry.metrics.live_counters.clone();
                entry.strands.push(strand);
                let live = watched.map(|connection| LiveStrand { group, strand: index, counters, connection });
                this.live_strands.extend(live);
            }
        }
        this.report_count = this.groups.iter().map(Vec::len).sum();
        Ok(this)
    }

    fn group_mut(&mut self, executor: usize, group: usize, digits: u8) -> &mut GroupStrands {
        let existing = self.groups[executor].iter().position(|entry| entry.metrics.group == group);
        let position = existing.unwrap_or_else(|| {
            let published = Arc::new(LiveCounters::default());
            self.live_counters.push(published.clone());
            let raw: Option<RawLog> = self.settings.raw.then(|| {
                let (log, reader) = raw_log::new_log(group as u32);
                self.raw.push(reader);
                log
            });
            let metrics = GroupMetrics::new(group, self.plans[group].clone(), digits, &self.settings, published, raw);
            self.groups[executor].push(GroupStrands { metrics, strands: Vec::new() });
            self.groups[executor].len() - 1
        });
        &mut self.groups[executor][position]
    }

    fn build_strand(
        &mut self,
        group: usize,
        index: u32,
        seed: u64,
        sessions: &[HostSession],
        ports: &Arc<DataPorts>,
        files: FileLists,
    ) -> Result<Strand, EngineError> {
        let plan = self.plans[group].clone();
        let own_thread = self.executor == ExecutorKind::ThreadPerStrand;
        let flowops = || plan.transactions.iter().flat_map(|transaction| &transaction.flowops);
        // Exactly, since there may be many strands.
        let mut ends = Vec::with_capacity(flowops().filter(|flowop| flowop.endpoint.is_some()).count());
        for (transaction, flowops) in plan.transactions.iter().enumerate() {
            for (position, flowop) in flowops.flowops.iter().enumerate() {
                let Some(endpoint) = &flowop.endpoint else { continue };
                let role = match flowop.flowop.action {
                    FlowopAction::Connect(_) => LinkRole::Connector,
                    _ => LinkRole::Acceptor,
                };
                let location = Some(format!("{}, {}, {}", plan.name, flowops.name, flowop.flowop.name));
                let failed = |message: String| EngineError { location: location.clone(), ..EngineError::new(message) };
                let session = sessions.get(flowop.host as usize).copied();
                let session = session.ok_or_else(|| failed(format!("unknown host `{}`", endpoint.remote)))?;
                let own_address = match (&endpoint.local, self.side) {
                    (Some(local), Side::Client) => Some(resolve_local(local, session.local).map_err(failed)?),
                    _ => None,
                };
                let repeated =
                    flowops.extent != wb_net_profile::Extent::Iterations(1) || flowop.flowop.executions() > 1;
                let deadline = (self.side == Side::Client && endpoint.protocol.is_datagram())
                    .then(|| Duration::from_nanos(self.settings.datagram_timeout));
                // A thread that waits in accept(2) could not observe a limit.
                let has_limit = role == LinkRole::Acceptor && self.side == Side::Client;
                let end = LinkEnd::prepare(&LinkConfig {
                    endpoint,
                    role,
                    local: own_address.unwrap_or(session.local),
                    has_local: own_address.is_some(),
                    session: session.key,
                    key: LinkKey { group: group as u32, flowop: flowop.id, strand: index },
                    repeated,
                    defers_cookie: flowop.defers_cookie,
                    blocking: own_thread && !endpoint.non_blocking,
                    blocking_accept: !has_limit,
                    receive_timeout: deadline,
                    ports,
                });
                let end = end.map_err(|error| EngineError {
                    kind: EngineErrorKind::new(&error),
                    ..failed(format!(
                        "{} to {}: {}",
                        endpoint.protocol.name(),
                        endpoint.remote,
                        descriptors::describe_error(&error)
                    ))
                })?;
                let link = LinkId { group, transaction, flowop: position };
                match end.announcement() {
                    Some(announcement) => {
                        self.announcements.push(LinkAnnouncement { link, strand: index, announcement });
                    }
                    None => _ = self.connecting.insert((link, index), (flowop.id, session.peer)),
                }
                ends.push((flowop.id, end));
            }
        }
        let (side, deadline, hosts) = (self.side, self.settings.datagram_timeout, sessions.len());
        Ok(Strand::new(StrandConfig {
            index,
            side,
            seed,
            datagram_timeout: deadline,
            plan,
            ends,
            files,
            hosts,
            own_thread,
            watched: (own_thread && self.settings.strand_progress).then(Arc::default),
        }))
    }

    pub(super) fn take_announcements(&mut self) -> Vec<LinkAnnouncement> {
        std::mem::take(&mut self.announcements)
    }

    /// Sets the addresses of the accepting sides, and begins to set up the links.
    pub(super) fn set_peers(&mut self, links: Vec<LinkAnnouncement>) -> Result<(), EngineError> {
        // Strands that share a port need only one probe of it.
        let mut probed: HashSet<(HostAddress, TransportAddress)> = HashSet::new();
        let mut strands: HashMap<(usize, u32), &mut Strand> = HashMap::new();
        for entry in self.groups.iter_mut().flatten() {
            let group = entry.metrics.group;
            strands.extend(entry.strands.iter_mut().map(|strand| ((group, strand.index), strand)));
        }
        for LinkAnnouncement { link, strand, announcement } in links {
            // Every engine of this machine gets all links, also those of the other engines.
            let Some((id, peer)) = self.connecting.remove(&(link, strand)) else { continue };
            let Some(strand) = strands.get_mut(&(link.group, strand)) else { continue };
            let probe = probed.insert((peer, announcement.address.clone()));
            if let Some(end) = strand.end_mut(id) {
                let result = end.set_peer(&announcement, peer, probe);
                result.map_err(|error| strand.link_error(id, &error))?;
            }
        }
        match self.connecting.len() {
            0 => Ok(()),
            count => Err(EngineError::new(format!("no peer address for {count} connections"))),
        }
    }

    /// Does not wait; returns whether all links are set up.
    pub(super) fn continue_setup(&mut self) -> Result<bool, EngineError> {
        let mut complete = true;
        for strand in self.groups.iter_mut().flatten().flat_map(|entry| &mut entry.strands) {
            complete &= strand.continue_setup()?;
        }
        Ok(complete)
    }

    pub(super) fn spawn_executors(&mut self, engine: &Sender<EngineInput>) {
        for (number, groups) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            let signals = groups
                .iter()
                .flat_map(|group| {
                    group.strands.iter().map(|strand| ((group.metrics.group, strand.index), strand.signals.clone()))
                })
                .collect();
            let (sender, commands) = channel();
            let (settings, input, executor) = (self.settings.clone(), engine.clone(), self.executor);
            let work = move || run_executor(number, groups, executor, &settings, &commands, &input);
            let thread = thread::Builder::new().name(format!("strand-{number}")).stack_size(STACK_SIZE).spawn(work);
            match thread {
                Ok(thread) => self.executors.push(Executor { commands: sender, waker: None, signals, thread }),
                Err(error) => {
                    let fault = EngineError::new(format!(
                        "cannot start thread for strand {number}: {error}; use fewer strands"
                    ));
                    // Ignored: the engine is the caller, so its channel is open.
                    let _: Result<(), _> = engine.send(EngineInput::Executor(ExecutorEvent::Failed(fault)));
                    return;
                }
            }
        }
    }

    pub(super) fn strand_count(&self, group: usize) -> usize {
        self.signals(group).count()
    }

    pub(super) fn signals(&self, group: usize) -> impl Iterator<Item = (u32, &Arc<Signals>)> {
        let all = self.executors.iter().flat_map(|executor| &executor.signals);
        all.filter(move |((owner, _), _)| *owner == group).map(|((_, strand), signals)| (*strand, signals))
    }

    pub(super) fn send_to_group(&self, group: usize, command: impl Fn() -> ExecutorCommand) {
        for executor in self.executors.iter().filter(|executor| executor.has_group(group)) {
            executor.send(command());
        }
    }

    pub(super) fn broadcast(&self, command: impl Fn() -> ExecutorCommand) {
        self.executors.iter().for_each(|executor| executor.send(command()));
    }

    pub(super) fn drain(&self, group: usize, totals: Vec<StrandTotals>) {
        let mut totals: HashMap<u32, StrandTotals> = totals.into_iter().map(|totals| (totals.strand, totals)).collect();
        for executor in &self.executors {
            let own: Vec<StrandTotals> = executor
                .signals
                .iter()
                .filter(|((owner, _), _)| *owner == group)
                .filter_map(|((_, strand), _)| totals.remove(strand))
                .collect();
            if !own.is_empty() {
                executor.send(ExecutorCommand::Drain { group, totals: own });
            }
        }
    }

    /// Makes the waiting strands of a group poll for progress.
    pub(super) fn wake_group(&self, group: usize) {
        for executor in self.executors.iter().filter(|executor| executor.has_group(group)) {
            match &executor.waker {
                Some(Waker::Eventfd(_)) => executor.send(ExecutorCommand::Poll { group }),
                Some(waker) => waker.wake(),
                None => {}
            }
        }
    }
}

/// The stack of a strand's thread, in bytes: a strand has no deep calls.
const STACK_SIZE: usize = 256 << 10;

impl Executor {
    fn has_group(&self, group: usize) -> bool {
        self.signals.iter().any(|((owner, _), _)| *owner == group)
    }

    fn send(&self, command: ExecutorCommand) {
        // Ignored: a thread that has ended has reported why.
        let _: Result<(), _> = self.commands.send(command);
        if let Some(waker @ Waker::Eventfd(_)) = &self.waker {
            waker.wake();
        }
    }
}

/// Resolves `localhost=`: an IP address of this machine, or a name that has one of the control connection's family.
fn resolve_local(local: &str, control: HostAddress) -> Result<HostAddress, String> {
    let invalid = |reason: &str| format!("invalid localhost={local}: expected an address of this machine{reason}");
    if let Ok(address) = local.parse() {
        return Ok(HostAddress::ip(address));
    }
    let candidates = (local, 0).to_socket_addrs().map_err(|error| invalid(&format!(": {error}")))?;
    let is_ipv6 = matches!(control, HostAddress::Ip { address: IpAddr::V6(_), .. });
    let of_family = candidates.into_iter().find(|candidate| candidate.is_ipv6() == is_ipv6);
    of_family.map(HostAddress::new).ok_or_else(|| invalid(", of the family of the control connection"))
}

fn list_files(plan: &GroupPlan) -> Result<FileLists, EngineError> {
    let mut lists = BTreeMap::new();
    for flowop in plan.transactions.iter().flat_map(|transaction| &transaction.flowops) {
        if let FlowopAction::SendFiles(files) = &flowop.flowop.action {
            let list = files::list(files).map_err(|error| EngineError::new(error.to_string()))?;
            lists.insert(flowop.id, list);
        }
    }
    Ok(Arc::new(lists))
}

fn run_executor(
    number: usize,
    mut groups: Vec<GroupStrands>,
    executor: ExecutorKind,
    settings: &Settings,
    commands: &Receiver<ExecutorCommand>,
    engine: &Sender<EngineInput>,
) {
    if executor == ExecutorKind::ThreadPerStrand
        && let Some(GroupStrands { metrics, mut strands }) = groups.pop()
        && let Some(strand) = strands.pop()
    {
        executor::run_blocking(number, strand, metrics, settings, commands, engine);
    } else {
        event_loop::run_event_loop(number, groups, settings, commands, engine);
    }
}

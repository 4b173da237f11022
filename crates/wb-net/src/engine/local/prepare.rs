//! What a site has before anything runs: strands with their ends of links, and the hands that carry them out.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{EngineInput, ExecutorCommand, Waker};
use crate::engine::{
    descriptors,
    event_loop::{self, GroupStrands},
    executor::{self, GroupMetrics},
    plan::GroupPlan,
    protocol::{
        Assignment, EngineError, ExecutorKind, HostAddresses, LinkAnnouncement, LinkId, Settings, Side, StrandTotals,
    },
    raw_log::{self, RawLog, RawLogReader},
    strand::{
        Signals, Strand, StrandConfig,
        files::{self, FileLists},
    },
    tally::LiveCounters,
};
use crate::language::FlowopAction;
use crate::transport::{
    address::HostAddress,
    link::{LinkConfig, LinkEnd, LinkRole},
    listener::SharedListeners,
};

/// A site that is ready to be driven.
pub(super) struct PreparedRun {
    pub(super) side: Side,
    pub(super) executor: ExecutorKind,
    pub(super) plans: Vec<Arc<GroupPlan>>,
    pub(super) executors: Vec<Executor>,
    pub(super) live_counters: Vec<Arc<LiveCounters>>,
    pub(super) raw: Vec<RawLogReader>,
    /// How many parts a report is made of.
    pub(super) report_count: usize,
    links: HashMap<(LinkId, u32), (usize, HostAddress)>,
    groups: Vec<Vec<GroupStrands>>,
    settings: Settings,
    /// How many strands of each group are here.
    strands: Vec<usize>,
    announcements: Vec<LinkAnnouncement>,
}

/// A thread that carries out strands.
pub(super) struct Executor {
    pub(super) commands: Sender<ExecutorCommand>,
    pub(super) waker: Option<Waker>,
    pub(super) signals: Vec<((usize, u32), Arc<Signals>)>,
    pub(super) thread: JoinHandle<()>,
}

/// With so many histograms in a process they are kept to two digits, of 18 kB each, instead of three, of 131 kB.
const MAX_PRECISE_HISTOGRAMS: usize = 512;

impl PreparedRun {
    pub(super) fn new(assignment: Assignment, doors: &Arc<SharedListeners>) -> Result<Self, EngineError> {
        let Assignment { profile, side, strands, hosts, seed, settings } = assignment;
        descriptors::raise_limit();
        let positions: BTreeMap<String, u32> = hosts.keys().cloned().zip(0..).collect();
        let places: Vec<HostAddresses> = hosts.values().copied().collect();
        let plans: Vec<Arc<GroupPlan>> =
            profile.groups.iter().map(|group| Arc::new(GroupPlan::new(group, side, &positions))).collect();
        let total: usize = strands.iter().map(|strands| strands.len()).sum();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let cpus = if settings.cpus.is_empty() { cpus } else { settings.cpus.len() };
        let executor = if total > settings.max_threads as usize {
            ExecutorKind::EventLoop { threads: cpus.min(total) as u32 }
        } else {
            ExecutorKind::ThreadPerStrand
        };
        let hands = match executor {
            ExecutorKind::ThreadPerStrand => total,
            ExecutorKind::EventLoop { threads } => threads as usize,
        };
        let mut this = Self {
            side,
            executor,
            plans: plans.clone(),
            executors: Vec::new(),
            live_counters: Vec::new(),
            raw: Vec::new(),
            report_count: 0,
            links: HashMap::new(),
            groups: (0..hands).map(|_| Vec::new()).collect(),
            settings,
            strands: strands.iter().map(|strands| strands.len()).collect(),
            announcements: Vec::new(),
        };
        let flowops: usize =
            plans.iter().flat_map(|plan| &plan.transactions).map(|transaction| transaction.flowops.len()).sum();
        let digits = if flowops * hands > MAX_PRECISE_HISTOGRAMS { 2 } else { 3 };
        let mut next = 0;
        for (group, range) in strands.iter().enumerate() {
            let files = if range.is_empty() { FileLists::default() } else { list_files(&this.plans[group])? };
            for index in range.clone() {
                let strand = this.build_strand(group, index, seed, &places, doors, files.clone())?;
                let hand = next % hands;
                next += 1;
                this.group_mut(hand, group, digits).strands.push(strand);
            }
        }
        this.report_count = this.groups.iter().map(Vec::len).sum();
        Ok(this)
    }

    fn group_mut(&mut self, hand: usize, group: usize, digits: u8) -> &mut GroupStrands {
        let known = self.groups[hand].iter().position(|crew| crew.metrics.group == group);
        let position = known.unwrap_or_else(|| {
            let published = Arc::new(LiveCounters::default());
            self.live_counters.push(published.clone());
            let raw: Option<RawLog> = self.settings.raw.then(|| {
                let (log, parts) = raw_log::new_log(group as u32);
                self.raw.push(parts);
                log
            });
            let notes = GroupMetrics::new(group, self.plans[group].clone(), digits, &self.settings, published, raw);
            self.groups[hand].push(GroupStrands { metrics: notes, strands: Vec::new() });
            self.groups[hand].len() - 1
        });
        &mut self.groups[hand][position]
    }

    fn build_strand(
        &mut self,
        group: usize,
        index: u32,
        seed: u64,
        places: &[HostAddresses],
        doors: &Arc<SharedListeners>,
        files: FileLists,
    ) -> Result<Strand, EngineError> {
        let plan = self.plans[group].clone();
        let own_thread = self.executor == ExecutorKind::ThreadPerStrand;
        let mut ends = Vec::new();
        for (transaction, flowops) in plan.transactions.iter().enumerate() {
            for (position, flowop) in flowops.flowops.iter().enumerate() {
                let (endpoint, part) = match &flowop.flowop.action {
                    FlowopAction::Connect(endpoint) => (endpoint, LinkRole::Connector),
                    FlowopAction::Accept(endpoint) => (endpoint, LinkRole::Acceptor),
                    _ => continue,
                };
                let place = Some(format!("{}, {}, {}", plan.name, flowops.name, flowop.flowop.name));
                let failed = |what: String| EngineError { location: place.clone(), ..EngineError::new(what) };
                let known = places.get(flowop.host as usize).copied();
                let HostAddresses { local: here, peer: there } =
                    known.ok_or_else(|| failed(format!("host {} is not known", endpoint.remote)))?;
                let here = match (&endpoint.local, self.side) {
                    (Some(local), Side::Client) => HostAddress::Ip(
                        local
                            .parse()
                            .map_err(|_| failed(format!("localhost={local} is no address of this machine")))?,
                    ),
                    _ => here,
                };
                let repeated =
                    flowops.extent != crate::language::Extent::Iterations(1) || flowop.flowop.executions() > 1;
                let deadline = (self.side == Side::Client && endpoint.protocol.is_datagram())
                    .then(|| Duration::from_nanos(self.settings.datagram_timeout));
                let end = LinkEnd::prepare(&LinkConfig {
                    endpoint,
                    part,
                    local: here,
                    repeated,
                    strands: self.strands[group],
                    blocking: own_thread && !endpoint.non_blocking,
                    receive_timeout: deadline,
                    listeners: doors,
                });
                let end = end.map_err(|error| EngineError {
                    unsupported: is_unsupported(&error),
                    ..failed(format!(
                        "{} to {}: {}",
                        endpoint.protocol.name(),
                        endpoint.remote,
                        descriptors::describe_error(&error)
                    ))
                })?;
                let link = LinkId { group, transaction, flowop: position };
                self.announcements.push(LinkAnnouncement { link, strand: index, announcement: end.announcement() });
                self.links.insert((link, index), (flowop.id as usize, there));
                ends.push((flowop.id, end));
            }
        }
        let (side, deadline, hosts) = (self.side, self.settings.datagram_timeout, places.len());
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
        }))
    }

    pub(super) fn announcements(&self) -> Vec<LinkAnnouncement> {
        self.announcements.clone()
    }

    /// Takes note of the other sides' addresses.
    pub(super) fn set_peers(&mut self, links: Vec<LinkAnnouncement>) -> Result<(), EngineError> {
        for LinkAnnouncement { link, strand, announcement } in links {
            // Links of strands at other sites of this machine are told to all of them.
            let Some((place, there)) = self.links.remove(&(link, strand)) else { continue };
            let mut crews = self.groups.iter_mut().flatten().filter(|crew| crew.metrics.group == link.group);
            let end = crews
                .find_map(|crew| crew.strands.iter_mut().find(|other| other.index == strand))
                .and_then(|strand| strand.end_mut(place as u32));
            if let Some(end) = end {
                end.set_peer(announcement, there).map_err(|error| EngineError::new(error.to_string()))?;
            }
        }
        match self.links.len() {
            0 => Ok(()),
            open => Err(EngineError::new(format!("the other side announced no address for {open} connections"))),
        }
    }

    /// Starts the hands.
    pub(super) fn spawn_executors(&mut self, site: &Sender<EngineInput>) {
        for (number, crews) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            let signals = crews
                .iter()
                .flat_map(|crew| {
                    crew.strands.iter().map(|strand| ((crew.metrics.group, strand.index), strand.signals.clone()))
                })
                .collect();
            let (told, orders) = channel();
            let (settings, input, executor) = (self.settings.clone(), site.clone(), self.executor);
            let work = move || run_executor(number, crews, executor, &settings, &orders, &input);
            let thread = thread::Builder::new().name(format!("strand-{number}")).stack_size(STACK_SIZE).spawn(work);
            match thread {
                Ok(thread) => self.executors.push(Executor { commands: told, waker: None, signals, thread }),
                Err(error) => {
                    let fault =
                        EngineError::new(format!("no thread for strand {number}: {error}; fewer strands need fewer"));
                    // The site is the caller: it listens.
                    let _: Result<(), _> = site.send(EngineInput::Executor(super::ExecutorEvent::Failed(fault)));
                    return;
                }
            }
        }
    }

    pub(super) fn strand_count(&self, group: usize) -> usize {
        self.signals(group).count()
    }

    pub(super) fn signals(&self, group: usize) -> impl Iterator<Item = (u32, &Arc<Signals>)> {
        let all = self.executors.iter().flat_map(|hand| &hand.signals);
        all.filter(move |((of, _), _)| *of == group).map(|((_, strand), signals)| (*strand, signals))
    }

    pub(super) fn send_to_group(&self, group: usize, told: impl Fn() -> ExecutorCommand) {
        for hand in self.executors.iter().filter(|hand| hand.has_group(group)) {
            hand.send(told());
        }
    }

    pub(super) fn broadcast(&self, told: impl Fn() -> ExecutorCommand) {
        self.executors.iter().for_each(|hand| hand.send(told()));
    }

    pub(super) fn drain(&self, group: usize, totals: Vec<StrandTotals>) {
        let mut totals: HashMap<u32, StrandTotals> = totals.into_iter().map(|totals| (totals.strand, totals)).collect();
        for hand in &self.executors {
            let mine: Vec<StrandTotals> = hand
                .signals
                .iter()
                .filter(|((of, _), _)| *of == group)
                .filter_map(|((_, strand), _)| totals.remove(strand))
                .collect();
            if !mine.is_empty() {
                hand.send(ExecutorCommand::Drain { group, totals: mine });
            }
        }
    }

    /// Makes strands of a group that wait look whether they can go on.
    pub(super) fn wake_group(&self, group: usize) {
        for hand in self.executors.iter().filter(|hand| hand.has_group(group)) {
            match &hand.waker {
                Some(Waker::Eventfd(_)) => hand.send(ExecutorCommand::Poll { group }),
                Some(reach) => reach.wake(),
                None => {}
            }
        }
    }
}

/// A strand calls nothing deep.
const STACK_SIZE: usize = 256 << 10;

impl Executor {
    fn has_group(&self, group: usize) -> bool {
        self.signals.iter().any(|((of, _), _)| *of == group)
    }

    fn send(&self, told: ExecutorCommand) {
        // A thread that has ended told why.
        let _: Result<(), _> = self.commands.send(told);
        if let Some(reach @ Waker::Eventfd(_)) = &self.waker {
            reach.wake();
        }
    }
}

fn list_files(plan: &GroupPlan) -> Result<FileLists, EngineError> {
    let mut listings = BTreeMap::new();
    for flowop in plan.transactions.iter().flat_map(|transaction| &transaction.flowops) {
        if let FlowopAction::SendFiles(files) = &flowop.flowop.action {
            let listed = files::list(files).map_err(|error| EngineError::new(error.to_string()))?;
            listings.insert(flowop.id, listed);
        }
    }
    Ok(Arc::new(listings))
}

fn run_executor(
    number: usize,
    mut crews: Vec<GroupStrands>,
    executor: ExecutorKind,
    settings: &Settings,
    orders: &Receiver<ExecutorCommand>,
    site: &Sender<EngineInput>,
) {
    if executor == ExecutorKind::ThreadPerStrand
        && let Some(GroupStrands { metrics: notes, mut strands }) = crews.pop()
        && let Some(strand) = strands.pop()
    {
        executor::run_blocking(number, strand, notes, settings, orders, site);
    } else {
        event_loop::run_event_loop(number, crews, settings, orders, site);
    }
}

fn is_unsupported(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::Unsupported
        || matches!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::ESOCKTNOSUPPORT))
}

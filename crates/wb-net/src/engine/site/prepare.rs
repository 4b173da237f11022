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

use super::{Input, Reach, Told};
use crate::engine::{
    descriptors,
    event::{self, Crew},
    hand::{self, Notes},
    plan::GroupPlan,
    raw::{self, RawLog, RawParts},
    strand::{
        Setup, Signals, Strand,
        files::{self, Listings},
    },
    tally::Published,
    work::{Assignment, Executor, Fault, Link, LinkAnnouncement, Places, Settings, Side, StrandTotals},
};
use crate::language::Action;
use crate::transport::{
    address::Place,
    door::Doors,
    ends::{End, Part, Terms},
};

/// A site that is ready to be driven.
pub(super) struct Prepared {
    pub(super) side: Side,
    pub(super) executor: Executor,
    pub(super) plans: Vec<Arc<GroupPlan>>,
    pub(super) hands: Vec<Hand>,
    pub(super) published: Vec<Arc<Published>>,
    pub(super) raw: Vec<RawParts>,
    /// How many parts a report is made of.
    pub(super) parts: usize,
    links: HashMap<(Link, u32), (usize, Place)>,
    crews: Vec<Vec<Crew>>,
    settings: Settings,
    /// How many strands of each group are here.
    strands: Vec<usize>,
    announced: Vec<LinkAnnouncement>,
}

/// A thread that carries out strands.
pub(super) struct Hand {
    pub(super) told: Sender<Told>,
    pub(super) reach: Option<Reach>,
    pub(super) signals: Vec<((usize, u32), Arc<Signals>)>,
    pub(super) thread: JoinHandle<()>,
}

/// With so many histograms in a process they are kept to two digits, of 18 kB each, instead of three, of 131 kB.
const MANY_HISTOGRAMS: usize = 512;

impl Prepared {
    pub(super) fn new(assignment: Assignment, doors: &Arc<Doors>) -> Result<Self, Fault> {
        let Assignment { profile, side, strands, hosts, seed, settings } = assignment;
        descriptors::raise();
        let positions: BTreeMap<String, u32> = hosts.keys().cloned().zip(0..).collect();
        let places: Vec<Places> = hosts.values().copied().collect();
        let plans: Vec<Arc<GroupPlan>> =
            profile.groups.iter().map(|group| Arc::new(GroupPlan::new(group, side, &positions))).collect();
        let total: usize = strands.iter().map(|strands| strands.len()).sum();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let cpus = if settings.cpus.is_empty() { cpus } else { settings.cpus.len() };
        let executor = if total > settings.threads as usize {
            Executor::Events { threads: cpus.min(total) as u32 }
        } else {
            Executor::Threads
        };
        let hands = match executor {
            Executor::Threads => total,
            Executor::Events { threads } => threads as usize,
        };
        let mut this = Self {
            side,
            executor,
            plans: plans.clone(),
            hands: Vec::new(),
            published: Vec::new(),
            raw: Vec::new(),
            parts: 0,
            links: HashMap::new(),
            crews: (0..hands).map(|_| Vec::new()).collect(),
            settings,
            strands: strands.iter().map(|strands| strands.len()).collect(),
            announced: Vec::new(),
        };
        let flowops: usize =
            plans.iter().flat_map(|plan| &plan.transactions).map(|transaction| transaction.flowops.len()).sum();
        let digits = if flowops * hands > MANY_HISTOGRAMS { 2 } else { 3 };
        let mut next = 0;
        for (group, range) in strands.iter().enumerate() {
            let files = if range.is_empty() { Listings::default() } else { listings(&this.plans[group])? };
            for index in range.clone() {
                let strand = this.strand(group, index, seed, &places, doors, files.clone())?;
                let hand = next % hands;
                next += 1;
                this.crew(hand, group, digits).strands.push(strand);
            }
        }
        this.parts = this.crews.iter().map(Vec::len).sum();
        Ok(this)
    }

    fn crew(&mut self, hand: usize, group: usize, digits: u8) -> &mut Crew {
        let known = self.crews[hand].iter().position(|crew| crew.notes.group == group);
        let position = known.unwrap_or_else(|| {
            let published = Arc::new(Published::default());
            self.published.push(published.clone());
            let raw: Option<RawLog> = self.settings.raw.then(|| {
                let (log, parts) = raw::log(group as u32);
                self.raw.push(parts);
                log
            });
            let notes = Notes::new(group, self.plans[group].clone(), digits, &self.settings, published, raw);
            self.crews[hand].push(Crew { notes, strands: Vec::new() });
            self.crews[hand].len() - 1
        });
        &mut self.crews[hand][position]
    }

    fn strand(
        &mut self,
        group: usize,
        index: u32,
        seed: u64,
        places: &[Places],
        doors: &Arc<Doors>,
        files: Listings,
    ) -> Result<Strand, Fault> {
        let plan = self.plans[group].clone();
        let own_thread = self.executor == Executor::Threads;
        let mut ends = Vec::new();
        for (transaction, flowops) in plan.transactions.iter().enumerate() {
            for (position, flowop) in flowops.flowops.iter().enumerate() {
                let (endpoint, part) = match &flowop.flowop.action {
                    Action::Connect(endpoint) => (endpoint, Part::Opener),
                    Action::Accept(endpoint) => (endpoint, Part::Taker),
                    _ => continue,
                };
                let place = Some(format!("{}, {}, {}", plan.name, flowops.name, flowop.flowop.name));
                let failed = |what: String| Fault { place: place.clone(), ..Fault::new(what) };
                let known = places.get(flowop.host as usize).copied();
                let Places { here, there } =
                    known.ok_or_else(|| failed(format!("host {} is not known", endpoint.remote)))?;
                let here = match (&endpoint.local, self.side) {
                    (Some(local), Side::Client) => Place::Ip(
                        local
                            .parse()
                            .map_err(|_| failed(format!("localhost={local} is no address of this machine")))?,
                    ),
                    _ => here,
                };
                let repeated =
                    flowops.extent != crate::language::Extent::Iterations(1) || flowop.flowop.executions() > 1;
                let deadline = (self.side == Side::Client && endpoint.protocol.is_datagram())
                    .then(|| Duration::from_nanos(self.settings.deadline));
                let end = End::prepare(&Terms {
                    endpoint,
                    part,
                    here,
                    repeated,
                    strands: self.strands[group],
                    blocking: own_thread && !endpoint.non_blocking,
                    receive_timeout: deadline,
                    doors,
                });
                let end = end.map_err(|error| Fault {
                    unsupported: is_unsupported(&error),
                    ..failed(format!(
                        "{} to {}: {}",
                        endpoint.protocol.name(),
                        endpoint.remote,
                        descriptors::words(&error)
                    ))
                })?;
                let link = Link { group, transaction, flowop: position };
                self.announced.push(LinkAnnouncement { link, strand: index, announcement: end.announcement() });
                self.links.insert((link, index), (flowop.place as usize, there));
                ends.push((flowop.place, end));
            }
        }
        let (side, deadline, hosts) = (self.side, self.settings.deadline, places.len());
        Ok(Strand::new(Setup { index, side, seed, deadline, plan, ends, files, hosts, own_thread }))
    }

    pub(super) fn announcements(&self) -> Vec<LinkAnnouncement> {
        self.announced.clone()
    }

    /// Takes note of the other sides' addresses.
    pub(super) fn meet(&mut self, links: Vec<LinkAnnouncement>) -> Result<(), Fault> {
        for LinkAnnouncement { link, strand, announcement } in links {
            // Links of strands at other sites of this machine are told to all of them.
            let Some((place, there)) = self.links.remove(&(link, strand)) else { continue };
            let mut crews = self.crews.iter_mut().flatten().filter(|crew| crew.notes.group == link.group);
            let end = crews
                .find_map(|crew| crew.strands.iter_mut().find(|other| other.index == strand))
                .and_then(|strand| strand.end_mut(place as u32));
            if let Some(end) = end {
                end.meet(announcement, there).map_err(|error| Fault::new(error.to_string()))?;
            }
        }
        match self.links.len() {
            0 => Ok(()),
            open => Err(Fault::new(format!("the other side announced no address for {open} connections"))),
        }
    }

    /// Starts the hands.
    pub(super) fn start(&mut self, site: &Sender<Input>) {
        for (number, crews) in std::mem::take(&mut self.crews).into_iter().enumerate() {
            let signals = crews
                .iter()
                .flat_map(|crew| {
                    crew.strands.iter().map(|strand| ((crew.notes.group, strand.index), strand.signals.clone()))
                })
                .collect();
            let (told, orders) = channel();
            let (settings, input, executor) = (self.settings.clone(), site.clone(), self.executor);
            let work = move || carry_out(number, crews, executor, &settings, &orders, &input);
            let thread = thread::Builder::new().name(format!("strand-{number}")).stack_size(STACK).spawn(work);
            match thread {
                Ok(thread) => self.hands.push(Hand { told, reach: None, signals, thread }),
                Err(error) => {
                    let fault = Fault::new(format!("no thread for strand {number}: {error}; fewer strands need fewer"));
                    // The site is the caller: it listens.
                    let _: Result<(), _> = site.send(Input::Heard(super::Heard::Failed(fault)));
                    return;
                }
            }
        }
    }

    pub(super) fn strands_of(&self, group: usize) -> usize {
        self.signals(group).count()
    }

    pub(super) fn signals(&self, group: usize) -> impl Iterator<Item = (u32, &Arc<Signals>)> {
        let all = self.hands.iter().flat_map(|hand| &hand.signals);
        all.filter(move |((of, _), _)| *of == group).map(|((_, strand), signals)| (*strand, signals))
    }

    pub(super) fn tell(&self, group: usize, told: impl Fn() -> Told) {
        for hand in self.hands.iter().filter(|hand| hand.has(group)) {
            hand.tell(told());
        }
    }

    pub(super) fn tell_all(&self, told: impl Fn() -> Told) {
        self.hands.iter().for_each(|hand| hand.tell(told()));
    }

    pub(super) fn settle(&self, group: usize, totals: Vec<StrandTotals>) {
        let mut totals: HashMap<u32, StrandTotals> = totals.into_iter().map(|totals| (totals.strand, totals)).collect();
        for hand in &self.hands {
            let mine: Vec<StrandTotals> = hand
                .signals
                .iter()
                .filter(|((of, _), _)| *of == group)
                .filter_map(|((_, strand), _)| totals.remove(strand))
                .collect();
            if !mine.is_empty() {
                hand.tell(Told::Settle { group, totals: mine });
            }
        }
    }

    /// Makes strands of a group that wait look whether they can go on.
    pub(super) fn touch(&self, group: usize) {
        for hand in self.hands.iter().filter(|hand| hand.has(group)) {
            match &hand.reach {
                Some(Reach::Events(_)) => hand.tell(Told::Look { group }),
                Some(reach) => reach.touch(),
                None => {}
            }
        }
    }
}

/// A strand calls nothing deep.
const STACK: usize = 256 << 10;

impl Hand {
    fn has(&self, group: usize) -> bool {
        self.signals.iter().any(|((of, _), _)| *of == group)
    }

    fn tell(&self, told: Told) {
        // A thread that has ended told why.
        let _: Result<(), _> = self.told.send(told);
        if let Some(reach @ Reach::Events(_)) = &self.reach {
            reach.touch();
        }
    }
}

fn listings(plan: &GroupPlan) -> Result<Listings, Fault> {
    let mut listings = BTreeMap::new();
    for flowop in plan.transactions.iter().flat_map(|transaction| &transaction.flowops) {
        if let Action::SendFiles(files) = &flowop.flowop.action {
            let listed = files::list(files).map_err(|error| Fault::new(error.to_string()))?;
            listings.insert(flowop.place, listed);
        }
    }
    Ok(Arc::new(listings))
}

fn carry_out(
    number: usize,
    mut crews: Vec<Crew>,
    executor: Executor,
    settings: &Settings,
    orders: &Receiver<Told>,
    site: &Sender<Input>,
) {
    if executor == Executor::Threads
        && let Some(Crew { notes, mut strands }) = crews.pop()
        && let Some(strand) = strands.pop()
    {
        hand::blocking(number, strand, notes, settings, orders, site);
    } else {
        event::events(number, crews, settings, orders, site);
    }
}

fn is_unsupported(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::Unsupported
        || matches!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::ESOCKTNOSUPPORT))
}

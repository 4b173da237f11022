//! Coordinates a run: tells every site what to do next, group by group, until all transactions are done.
//!
//! Both sides of a transaction begin it together. A window ends by each side's own clock; a transaction of iterations
//! ends on the server when the client is done and everything that was sent has come. Then both settle: each takes in
//! what the other says it sent, so that the next transaction begins on quiet connections.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, sleep_until, timeout_at},
};

use crate::engine::{
    clock::Nanos,
    raw::RawTime,
    report::Report,
    work::{
        Assignment, ConnectionTotals, Event, Executor, Fault, Link, LinkAnnouncement, Order, Progress, StrandTotals,
    },
};
use crate::language::{Action, Extent, Flowop, Profile, Transaction};

/// Who takes part.
pub struct Party {
    /// A host by its name in the profile, or none for a site of this machine.
    pub host: Option<String>,
    /// What it carries out.
    pub assignment: Assignment,
    /// Hands an order over; false if it cannot be any more.
    pub order: Box<dyn Fn(Order) -> bool + Send>,
}

/// What comes from a party.
#[derive(Debug)]
pub enum News {
    /// It says something.
    Event(Event),
    /// It is gone.
    Lost(String),
}

/// Looks on while a run goes.
pub trait Observer {
    /// A party has got so far.
    fn progress(&mut self, host: Option<&str>, progress: Progress);
    /// A transaction begins.
    fn transaction(&mut self, group: usize, transaction: usize);
    /// Response times of the client's flowops.
    fn raw(&mut self, times: &[RawTime]);
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// Why it did not go to its end.
    pub fault: Option<Failure>,
    /// What each party measured, in their order; none if it did not say.
    pub reports: Vec<Option<Report>>,
    /// How each party carried out its strands.
    pub executors: Vec<Option<Executor>>,
    /// Transactions that were cut, as group and transaction.
    pub cut: Vec<(usize, usize)>,
    /// What client and server sent and received, by group: datagrams that were lost are the difference.
    pub datagrams: Vec<Datagrams>,
}

/// Datagrams of a group, both sides counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Sent by the client.
    pub client_sent: u64,
    /// Of those, received by the server.
    pub server_received: u64,
    /// Sent by the server.
    pub server_sent: u64,
    /// Of those, received by the client.
    pub client_received: u64,
}

impl std::iter::Sum for Datagrams {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            client_sent: sum.client_sent + one.client_sent,
            server_received: sum.server_received + one.server_received,
            server_sent: sum.server_sent + one.server_sent,
            client_received: sum.client_received + one.client_received,
        })
    }
}

/// Why a run did not go to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A strand or site could not go on.
    #[error("{}{fault}", host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default())]
    Fault {
        /// At which host; none for this machine.
        host: Option<String>,
        /// Why.
        fault: Fault,
    },
    /// A party is gone.
    #[error("{} was lost: {why}", host.as_deref().unwrap_or("a process of this machine"))]
    Lost {
        /// Which host; none for a process of this machine.
        host: Option<String>,
        /// What is known of it.
        why: String,
    },
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

/// How long parties may take for what is not measured.
const PATIENCE: Duration = Duration::from_secs(15);

/// How much later than its window a transaction may end.
const GRACE: Duration = Duration::from_secs(5);

/// A server that says nothing for so long is lost.
const SILENCE: Duration = Duration::from_secs(5);

/// After a failure here, one of a server that caused it is heard of within this time.
const HINDSIGHT: Duration = Duration::from_millis(500);

/// Between two signs of life to the servers.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Runs a profile with these parties.
pub async fn coordinate(
    profile: &Profile,
    parties: Vec<Party>,
    events: UnboundedReceiver<(usize, News)>,
    limit: Option<Duration>,
    interrupted: impl Future<Output = ()>,
    observer: &mut dyn Observer,
) -> Ended {
    let count = parties.len();
    let mut run = Coordinator {
        profile,
        groups: profile.groups.iter().map(|_| Progressing::default()).collect(),
        heard: vec![Instant::now(); count],
        reports: (0..count).map(|_| None).collect(),
        executors: vec![None; count],
        cut: Vec::new(),
        limit,
        parties,
        events,
        observer,
    };
    let fault = {
        tokio::pin!(interrupted);
        tokio::select! {
            fault = run.carry_out() => fault.err(),
            () = &mut interrupted => Some(Failure::Interrupted),
        }
    };
    let fault = match fault {
        Some(fault) => Some(run.cause(fault).await),
        None => None,
    };
    if let Some(fault) = &fault {
        run.order_all(|| Order::Stop);
        run.wind_down(fault).await;
    }
    let datagrams = run.groups.iter().map(|group| group.datagrams.values().copied().sum()).collect();
    Ended { fault, reports: run.reports, executors: run.executors, cut: run.cut, datagrams }
}

struct Coordinator<'a> {
    profile: &'a Profile,
    parties: Vec<Party>,
    events: UnboundedReceiver<(usize, News)>,
    groups: Vec<Progressing>,
    heard: Vec<Instant>,
    reports: Vec<Option<Report>>,
    executors: Vec<Option<Executor>>,
    cut: Vec<(usize, usize)>,
    limit: Option<Duration>,
    observer: &'a mut dyn Observer,
}

/// How far a group is.
#[derive(Default)]
struct Progressing {
    transaction: usize,
    done: bool,
    /// What strands moved, by party; cleared with each step.
    totals: HashMap<usize, Vec<StrandTotals>>,
    settling: bool,
    told_to_finish: bool,
    deadline: Option<Instant>,
    /// The last that was heard of datagram connections, by host, strand and ordinal.
    datagrams: BTreeMap<(u32, u32, u32), Datagrams>,
}

/// What the client and the server say of a connection.
type Pair = (Option<ConnectionTotals>, Option<ConnectionTotals>);

impl Coordinator<'_> {
    async fn carry_out(&mut self) -> Result<(), Failure> {
        self.introduce().await?;
        for group in 0..self.groups.len() {
            self.begin(group);
        }
        while self.groups.iter().any(|group| !group.done) {
            match self.next().await? {
                (party, Event::Ended { group, strands }) => self.ended(party, group, strands)?,
                (party, Event::Settled { group, strands }) => self.settled(party, group, strands)?,
                (party, _) => return Err(self.nonsense(party)),
            }
        }
        self.order_all(|| Order::Report);
        while let Some(missing) = self.reports.iter().position(Option::is_none) {
            let (party, event) = self.next_within(PATIENCE, missing).await?;
            if !matches!(event, Event::Report(_)) {
                return Err(self.nonsense(party));
            }
            self.keep(party, event);
        }
        Ok(())
    }

    /// Gets every party ready, and tells each the others' addresses.
    async fn introduce(&mut self) -> Result<(), Failure> {
        for party in &self.parties {
            let assignment = Box::new(party.assignment.clone());
            (party.order)(Order::Prepare(assignment));
        }
        let mut links: Vec<Option<Vec<LinkAnnouncement>>> = self.parties.iter().map(|_| None).collect();
        while let Some(missing) = links.iter().position(Option::is_none) {
            match self.next_within(PATIENCE, missing).await? {
                (party, Event::Prepared { links: announced, executor }) => {
                    self.executors[party] = Some(executor);
                    links[party] = Some(announced);
                }
                (party, _) => return Err(self.nonsense(party)),
            }
        }
        let hosts: HashMap<Link, String> = hosts_of_links(self.profile);
        let (mut of_clients, mut of_servers) = (Vec::new(), Vec::new());
        for (party, links) in self.parties.iter().zip(links) {
            let into = if party.host.is_some() { &mut of_servers } else { &mut of_clients };
            into.extend(links.into_iter().flatten());
        }
        for party in &self.parties {
            let links = match &party.host {
                None => of_servers.clone(),
                Some(host) => of_clients.iter().filter(|link| hosts.get(&link.link) == Some(host)).cloned().collect(),
            };
            (party.order)(Order::Meet(links));
        }
        let mut met = vec![false; self.parties.len()];
        while let Some(missing) = met.iter().position(|met| !met) {
            match self.next_within(PATIENCE, missing).await? {
                (party, Event::Met) => met[party] = true,
                (party, _) => return Err(self.nonsense(party)),
            }
        }
        Ok(())
    }

    fn begin(&mut self, group: usize) {
        let transaction = self.groups[group].transaction;
        let Some(next) = self.profile.groups[group].transactions.get(transaction) else {
            self.groups[group].done = true;
            return;
        };
        self.observer.transaction(group, transaction);
        // What follows would have nothing to go on with if not all connections were there.
        let bound = self.limit.filter(|_| !only_connects(next));
        let limit = bound.map(|limit| limit.as_nanos() as Nanos);
        let window = match next.extent {
            Extent::Window(window) => Some(window),
            Extent::Iterations(_) => None,
        };
        if self.limit.is_some_and(|limit| window.is_some_and(|window| window > limit)) {
            self.cut.push((group, transaction));
        }
        let longest = window.into_iter().chain(bound).min();
        let state = &mut self.groups[group];
        state.totals.clear();
        state.settling = false;
        state.told_to_finish = false;
        state.deadline = longest.map(|longest| Instant::now() + longest + GRACE);
        self.order_all(|| Order::Run { group, transaction, limit });
    }

    fn ended(&mut self, party: usize, group: usize, strands: Vec<StrandTotals>) -> Result<(), Failure> {
        if group >= self.groups.len() || self.groups[group].settling {
            return Err(self.nonsense(party));
        }
        self.groups[group].totals.insert(party, strands);
        let clients = self.expected(group, false).all(|party| self.groups[group].totals.contains_key(&party));
        let all = clients && self.expected(group, true).all(|party| self.groups[group].totals.contains_key(&party));
        if all {
            self.settle_or_go_on(group);
        } else if clients && !self.groups[group].told_to_finish {
            let state = &mut self.groups[group];
            state.told_to_finish = true;
            // What is on its way may take its time, as long as it comes.
            state.deadline = None;
            self.tell_servers(group, |group, totals| Order::Finish { group, totals });
        }
        Ok(())
    }

    fn settled(&mut self, party: usize, group: usize, strands: Vec<StrandTotals>) -> Result<(), Failure> {
        if group >= self.groups.len() || !self.groups[group].settling {
            return Err(self.nonsense(party));
        }
        self.groups[group].totals.insert(party, strands);
        if self.groups[group].totals.len() == self.expected(group, false).chain(self.expected(group, true)).count() {
            self.go_on(group);
        }
        Ok(())
    }

    fn settle_or_go_on(&mut self, group: usize) {
        if self.is_quiet(group) {
            return self.go_on(group);
        }
        self.tell_servers(group, |group, totals| Order::Settle { group, totals });
        self.tell_clients(group, |group, totals| Order::Settle { group, totals });
        let state = &mut self.groups[group];
        state.settling = true;
        state.totals.clear();
        state.deadline = None;
    }

    fn go_on(&mut self, group: usize) {
        // What closed connections moved is told with every step, so that nothing of an earlier one is to be kept.
        self.groups[group].datagrams.clear();
        for (key, pair) in self.pairs(group) {
            if let (Some(client), Some(server)) = pair
                && client.datagrams
            {
                let datagrams = Datagrams {
                    client_sent: client.sent,
                    server_received: server.received,
                    server_sent: server.sent,
                    client_received: client.received,
                };
                self.groups[group].datagrams.insert(key, datagrams);
            }
        }
        self.groups[group].transaction += 1;
        self.begin(group);
    }

    /// Whether everything that was sent has come.
    fn is_quiet(&self, group: usize) -> bool {
        let pairs = self.pairs(group);
        pairs.values().all(|pair| match pair {
            (Some(client), Some(server)) => client.sent == server.received && server.sent == client.received,
            _ => true,
        })
    }

    /// What both sides of each connection moved: by host, strand and ordinal.
    fn pairs(&self, group: usize) -> BTreeMap<(u32, u32, u32), Pair> {
        let mut pairs: BTreeMap<_, Pair> = BTreeMap::new();
        for (&party, strands) in &self.groups[group].totals {
            let server = self.position(party);
            for strand in strands {
                for totals in &strand.connections {
                    let host = server.unwrap_or(totals.host);
                    let pair = pairs.entry((host, strand.strand, totals.ordinal)).or_default();
                    *(if server.is_some() { &mut pair.1 } else { &mut pair.0 }) = Some(*totals);
                }
            }
        }
        pairs
    }

    /// The position of a server among the client's hosts.
    fn position(&self, party: usize) -> Option<u32> {
        let host = self.parties[party].host.as_ref()?;
        let client = self.parties.iter().find(|party| party.host.is_none())?;
        client.assignment.hosts.keys().position(|other| other == host).map(|position| position as u32)
    }

    /// Tells each server what its clients' strands moved with it.
    fn tell_servers(&self, group: usize, order: impl Fn(usize, Vec<StrandTotals>) -> Order) {
        for party in self.expected(group, true) {
            let position = self.position(party);
            let clients = self.expected(group, false).filter_map(|client| self.groups[group].totals.get(&client));
            let totals = clients.flatten().map(|strand| StrandTotals {
                strand: strand.strand,
                connections: strand
                    .connections
                    .iter()
                    .filter(|totals| Some(totals.host) == position)
                    .map(|totals| ConnectionTotals { host: 0, ..*totals })
                    .collect(),
                opened: vec![position.and_then(|host| strand.opened.get(host as usize).copied()).unwrap_or(0)],
            });
            (self.parties[party].order)(order(group, totals.collect()));
        }
    }

    /// Tells the clients' sites what all servers' strands moved.
    fn tell_clients(&self, group: usize, order: impl Fn(usize, Vec<StrandTotals>) -> Order) {
        let mut totals: BTreeMap<u32, StrandTotals> = BTreeMap::new();
        for server in self.expected(group, true) {
            let Some(host) = self.position(server) else { continue };
            for strand in self.groups[group].totals.get(&server).into_iter().flatten() {
                let all = totals.entry(strand.strand).or_insert_with(|| StrandTotals {
                    strand: strand.strand,
                    connections: Vec::new(),
                    opened: Vec::new(),
                });
                all.connections.extend(strand.connections.iter().map(|totals| ConnectionTotals { host, ..*totals }));
            }
        }
        for client in self.expected(group, false) {
            let strands = &self.parties[client].assignment.strands[group];
            let mine = totals.values().filter(|totals| strands.contains(&totals.strand)).cloned().collect();
            (self.parties[client].order)(order(group, mine));
        }
    }

    /// The parties that have strands of a group: servers or clients.
    fn expected(&self, group: usize, servers: bool) -> impl Iterator<Item = usize> {
        let parties = self.parties.iter().enumerate();
        parties
            .filter(move |(_, party)| party.host.is_some() == servers && !party.assignment.strands[group].is_empty())
            .map(|(position, _)| position)
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        for party in &self.parties {
            (party.order)(order());
        }
    }

    /// The next event that has to be acted on.
    async fn next(&mut self) -> Result<(usize, Event), Failure> {
        let mut beat = Instant::now() + HEARTBEAT;
        loop {
            let overdue = self.groups.iter().filter(|group| !group.done).filter_map(|group| group.deadline).min();
            let wake = overdue.map_or(beat, |overdue| overdue.min(beat));
            tokio::select! {
                news = self.events.recv() => {
                    let Some((party, news)) = news else { return Err(lost(None, "nobody is left")) };
                    if let Some(event) = self.sift(party, news)? {
                        return Ok((party, event));
                    }
                }
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    if overdue.is_some_and(|overdue| now >= overdue) {
                        return Err(lost(self.silent_party(), "its strands did not end with their window"));
                    }
                    if now >= beat {
                        self.order_all(|| Order::Alive);
                        beat = now + HEARTBEAT;
                    }
                    for (party, heard) in self.parties.iter().zip(&self.heard) {
                        if party.host.is_some() && now > *heard + SILENCE {
                            return Err(lost(party.host.clone(), "it has said nothing for 5 s"));
                        }
                    }
                }
            }
        }
    }

    /// The next event, which must come in time; `missing` is a party that has not answered yet.
    async fn next_within(&mut self, patience: Duration, missing: usize) -> Result<(usize, Event), Failure> {
        let deadline = Instant::now() + patience;
        let mut beat = Instant::now() + HEARTBEAT;
        // The groups' own deadlines do not count here, nor does silence: there is nothing to say yet.
        loop {
            match timeout_at(deadline.min(beat), self.events.recv()).await {
                Ok(Some((party, news))) => {
                    if let Some(event) = self.sift(party, news)? {
                        return Ok((party, event));
                    }
                }
                Ok(None) => return Err(lost(None, "nobody is left")),
                Err(_) if Instant::now() < deadline => {
                    self.order_all(|| Order::Alive);
                    beat = Instant::now() + HEARTBEAT;
                }
                Err(_) => {
                    let host = self.parties[missing].host.clone();
                    return Err(lost(host, &format!("no answer within {} s", patience.as_secs())));
                }
            }
        }
    }

    /// Takes note of what needs no action.
    fn sift(&mut self, party: usize, news: News) -> Result<Option<Event>, Failure> {
        let host = self.parties[party].host.clone();
        self.heard[party] = Instant::now();
        match news {
            News::Lost(why) if self.reports[party].is_none() => Err(Failure::Lost { host, why }),
            News::Lost(_) => Ok(None),
            News::Event(Event::Failed(fault)) => Err(Failure::Fault { host, fault }),
            News::Event(Event::Alive) => Ok(None),
            News::Event(Event::Progress(progress)) => {
                self.observer.progress(host.as_deref(), progress);
                Ok(None)
            }
            News::Event(Event::Raw(times)) => {
                if host.is_none() {
                    self.observer.raw(&times);
                }
                Ok(None)
            }
            News::Event(event) => Ok(Some(event)),
        }
    }

    fn keep(&mut self, party: usize, event: Event) {
        if let Event::Report(report) = event {
            self.reports[party] = Some(*report);
        }
    }

    /// Strands of this machine often fail because a server did or is gone: then that is what has to be told.
    async fn cause(&mut self, failure: Failure) -> Failure {
        if !matches!(failure, Failure::Fault { host: None, .. }) {
            return failure;
        }
        let deadline = Instant::now() + HINDSIGHT;
        while let Ok(Some((party, news))) = timeout_at(deadline, self.events.recv()).await {
            if let Err(cause) = self.sift(party, news)
                && self.parties[party].host.is_some()
            {
                return cause;
            }
        }
        failure
    }

    /// After a fault: lets strands end, and takes what was measured until then.
    async fn wind_down(&mut self, failure: &Failure) {
        let deadline = Instant::now() + Duration::from_secs(2);
        self.order_all(|| Order::Report);
        let gone = |party: &Party| match failure {
            Failure::Lost { host, .. } | Failure::Fault { host, .. } => host.is_some() && party.host == *host,
            Failure::Interrupted => false,
        };
        let mut coming: Vec<bool> =
            self.parties.iter().zip(&self.reports).map(|(party, report)| report.is_none() && !gone(party)).collect();
        while coming.contains(&true) {
            match timeout_at(deadline, self.events.recv()).await {
                Ok(Some((party, News::Event(event @ Event::Report(_))))) => {
                    coming[party] = false;
                    self.keep(party, event);
                }
                Ok(Some((party, News::Lost(_)))) => coming[party] = false,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn silent_party(&self) -> Option<String> {
        let group =
            self.groups.iter().position(|group| group.deadline.is_some_and(|deadline| deadline <= Instant::now()))?;
        let silent = self.expected(group, true).find(|party| !self.groups[group].totals.contains_key(party))?;
        self.parties[silent].host.clone()
    }

    fn nonsense(&self, party: usize) -> Failure {
        let fault = Fault::new("it said something that does not belong there");
        Failure::Fault { host: self.parties[party].host.clone(), fault }
    }
}

/// Whether a transaction opens and closes a certain number of connections and does nothing else.
fn only_connects(transaction: &Transaction) -> bool {
    let connects =
        |flowop: &Flowop| matches!(flowop.action, Action::Connect(_) | Action::Accept(_) | Action::Disconnect);
    matches!(transaction.extent, Extent::Iterations(_)) && transaction.flowops.iter().all(connects)
}

fn lost(host: Option<String>, why: &str) -> Failure {
    Failure::Lost { host, why: why.to_owned() }
}

/// To which host the connections of a profile go.
fn hosts_of_links(profile: &Profile) -> HashMap<Link, String> {
    let mut hosts = HashMap::new();
    for (group, groups) in profile.groups.iter().enumerate() {
        for (transaction, transactions) in groups.transactions.iter().enumerate() {
            for (flowop, flowops) in transactions.flowops.iter().enumerate() {
                if let Action::Connect(endpoint) | Action::Accept(endpoint) = &flowops.action {
                    hosts.insert(Link { group, transaction, flowop }, endpoint.remote.clone());
                }
            }
        }
    }
    hosts
}

//! What is told while a run goes: a line per interval of the data phase.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use wb_net::{
    engine::{clock, protocol::EngineProgress, raw_log::LatencyRecord},
    language::{Extent, FlowopAction, NetProfile, Transaction},
    mirror,
    result::{ProgressPoint, RunResult},
    session::{client::ClientRun, coordinator::RunObserver},
};
use wb_report::net::live::{Tick, begins, line};

use super::super::print_text;
use super::responses::Responses;

/// How progress is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// Not at all.
    Silent,
    /// For people, times with so many decimals; transactions by name, too.
    Lines { decimals: usize, names: bool },
    /// For programs: counts since the run began, with the time of day.
    Stamped,
}

/// Tells of progress and keeps response times.
pub(super) struct Live<'a> {
    profile: &'a NetProfile,
    telling: Telling,
    began: u64,
    data_began: Option<u64>,
    /// When the windows that are under way end; 0 where that is open.
    data_ends: u64,
    limit: Option<Duration>,
    /// By group.
    running: Vec<usize>,
    interval: Duration,
    /// Up to where lines were told, in seconds after the data phase began.
    told_until: f64,
    machines: usize,
    /// By host; the client has none.
    parties: BTreeMap<Option<String>, Party>,
    responses: Option<&'a mut Responses>,
}

/// How far a machine is.
#[derive(Default)]
struct Party {
    /// What was told of it last.
    told: Option<EngineProgress>,
    /// What is to be told next, and when it came.
    next: Option<(EngineProgress, u64)>,
}

impl<'a> Live<'a> {
    /// Nothing has happened yet.
    pub(super) fn new(run: &'a ClientRun, telling: Telling, responses: Option<&'a mut Responses>) -> Self {
        let profile = &run.profile;
        Self {
            profile,
            telling,
            began: clock::now(),
            data_began: None,
            data_ends: 0,
            limit: run.limit,
            running: vec![0; profile.groups.len()],
            interval: Duration::from_nanos(run.settings.interval),
            told_until: 0.0,
            machines: 1 + mirror::hosts(profile).len(),
            parties: BTreeMap::new(),
            responses,
        }
    }

    /// Whether a group is in its data phase or has it before it.
    fn is_on(&self) -> bool {
        let mut groups = self.profile.groups.iter().zip(&self.running);
        groups.any(|(group, running)| group.transactions.iter().skip(*running).any(|part| is_data(self.profile, part)))
    }

    fn tell(&mut self) {
        let Some(data_began) = self.data_began else { return };
        let mut tick = Tick { at: 0.0, received: Some(0.0), sent: Some(0.0), operations: None };
        if self.parties.values().filter(|party| party.next.is_some()).count() < self.machines {
            // What one machine does not say is not known of all together.
            (tick.received, tick.sent) = (None, None);
        }
        for (host, party) in &mut self.parties {
            let Some((now, arrived)) = party.next.take() else { continue };
            // By this machine's clock, which a server's is not.
            let here = |at: u64| if host.is_none() { at } else { at.saturating_add(arrived).saturating_sub(now.at) };
            let before = party.told.replace(now);
            let from = before.map_or(data_began, |before| here(before.at).max(data_began));
            let until = if self.data_ends > from { here(now.at).min(self.data_ends) } else { here(now.at) };
            let seconds = until.saturating_sub(from) as f64 / 1e9;
            let before = before.unwrap_or_default();
            let rate = |now: u64, before: u64| (seconds > 0.0).then(|| now.saturating_sub(before) as f64 / seconds);
            let sum = |sum: Option<f64>, rate: Option<f64>| sum.zip(rate).map(|(sum, rate)| sum + rate);
            tick.received = sum(tick.received, rate(now.received, before.received));
            tick.sent = sum(tick.sent, rate(now.sent, before.sent));
            if host.is_none() {
                tick.operations = rate(now.operations, before.operations);
                tick.at = until.saturating_sub(data_began) as f64 / 1e9;
                self.told_until = tick.at;
            }
        }
        if let (Telling::Lines { decimals, .. }, true) = (self.telling, tick.operations.is_some()) {
            show(&line(&tick, decimals));
        }
    }

    /// What the lines have not told yet: the interval that the end of the run cut.
    pub(super) fn end(&self, result: &RunResult) {
        match self.telling {
            Telling::Silent => {}
            Telling::Stamped => {
                let machines = || result.machines.iter();
                let (received, sent) =
                    (machines().map(|one| one.received_bytes).sum(), machines().map(|one| one.sent_bytes).sum());
                let progress = machines().next().into_iter().flat_map(|client| &client.progress);
                let operations = progress.map(|point| point.operations).sum();
                stamp(&self.names(), &Look { received, sent, operations });
            }
            Telling::Lines { decimals, .. } => {
                if let Some(tick) = self.rest(result) {
                    show(&line(&tick, decimals));
                }
            }
        }
    }

    /// What all machines did after the last line.
    fn rest(&self, result: &RunResult) -> Option<Tick> {
        // A machine's clock is not this one's: what ended by a tenth of an interval later has been told.
        let told = self.told_until + self.interval.as_secs_f64() / 10.0;
        let rates = result.machines.iter().map(|machine| {
            let rest: Vec<_> = machine.progress.iter().filter(|point| point.at > told).collect();
            let seconds: f64 = rest.iter().map(|point| point.seconds).sum();
            let rate = |of: fn(&ProgressPoint) -> u64| {
                (seconds > 0.0).then(|| rest.iter().map(|point| of(point)).sum::<u64>() as f64 / seconds)
            };
            let end = rest.last().map(|point| point.at);
            (end, rate(|point| point.received_bytes), rate(|point| point.sent_bytes), rate(|point| point.operations))
        });
        let rates: Vec<_> = rates.collect();
        let &(at, _, _, operations) = rates.first()?;
        let received = rates.iter().map(|(_, received, ..)| *received).sum();
        Some(Tick { at: at?, received, sent: rates.iter().map(|(_, _, sent, _)| *sent).sum(), operations })
    }

    /// Counts as far as they have been told.
    fn stamp(&self, name: &str) {
        let known = || self.parties.values().filter_map(|party| party.told);
        let operations = self.parties.get(&None).and_then(|client| client.told).map_or(0, |told| told.operations);
        let (received, sent) = (known().map(|known| known.received).sum(), known().map(|known| known.sent).sum());
        stamp(name, &Look { received, sent, operations });
    }

    /// The transactions that groups are in, each name once.
    fn names(&self) -> String {
        let groups = self.profile.groups.iter().zip(&self.running);
        let mut names: Vec<&str> =
            groups.filter_map(|(group, running)| Some(group.transactions.get(*running)?.name.as_str())).collect();
        names.dedup();
        names.join("+")
    }
}

impl RunObserver for Live<'_> {
    fn on_progress(&mut self, host: Option<&str>, progress: EngineProgress) {
        let on = self.data_began.is_some() && self.is_on();
        let waits = self.parties.get(&host.map(str::to_owned)).is_some_and(|party| party.next.is_some());
        if on && waits && self.telling != Telling::Stamped {
            self.tell();
        }
        let party = self.parties.entry(host.map(str::to_owned)).or_default();
        if !on || self.telling == Telling::Stamped {
            party.told = Some(progress);
            if on && host.is_none() {
                self.stamp(&self.names());
            }
            return;
        }
        party.next = Some((progress, clock::now()));
        if self.parties.values().filter(|party| party.next.is_some()).count() == self.machines {
            self.tell();
        }
    }

    fn on_transaction(&mut self, group: usize, transaction: usize) {
        if let Some(running) = self.running.get_mut(group) {
            *running = transaction;
        }
        let Some(of) = self.profile.groups.get(group) else { return };
        let Some(next) = of.transactions.get(transaction) else { return };
        if is_data(self.profile, next) {
            let now = clock::now();
            self.data_began.get_or_insert(now);
            self.data_ends = match next.extent {
                Extent::Window(window) => {
                    let longest = self.limit.map_or(window, |limit| limit.min(window));
                    self.data_ends.max(now.saturating_add(clock::nanos(longest)))
                }
                Extent::Iterations(_) => 0,
            };
        }
        match self.telling {
            Telling::Lines { decimals, names: true } if of.transactions.len() > 1 => {
                let group = if self.profile.groups.len() > 1 { format!("{} ", of.name) } else { String::new() };
                let flowops: Vec<&str> = next.flowops.iter().map(|flowop| flowop.name.as_str()).collect();
                let from = self.data_began.unwrap_or(clock::now().max(self.began));
                let at = clock::now().saturating_sub(from) as f64 / 1e9;
                show(&begins(at, decimals, &format!("{group}{} ({})", next.name, flowops.join(", "))));
            }
            Telling::Stamped => self.stamp(&next.name),
            _ => {}
        }
    }

    fn on_latencies(&mut self, times: &[LatencyRecord]) {
        if let Some(responses) = &mut self.responses {
            responses.keep(self.began, times);
        }
    }
}

/// Whether a transaction is part of the data phase: it moves data, or none does.
fn is_data(profile: &NetProfile, transaction: &Transaction) -> bool {
    let moves = |transaction: &Transaction| {
        transaction.flowops.iter().any(|flowop| {
            matches!(
                flowop.action,
                FlowopAction::Send(_)
                    | FlowopAction::Receive(_)
                    | FlowopAction::SendFiles(_)
                    | FlowopAction::ReceiveFiles(_)
            )
        })
    };
    moves(transaction) || !profile.groups.iter().flat_map(|group| &group.transactions).any(moves)
}

/// Counts since the run began.
struct Look {
    received: u64,
    sent: u64,
    operations: u64,
}

/// As uperf writes them.
fn stamp(name: &str, Look { received, sent, operations }: &Look) {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
    show(&format!("timestamp_ms:{millis:.4} name:{name} nr_bytes:{received} nr_ops:{operations} sent_bytes:{sent}\n"));
}

/// Whoever has stopped reading does not stop the run.
fn show(text: &str) {
    let _: Result<(), _> = print_text(text);
}

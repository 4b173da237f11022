//! What the parties say, in time.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Coordinator, Failure, News, Party};
use crate::engine::work::{Event, Fault, Order};

/// How long parties may take for what is not measured.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// A server that says nothing for so long is lost.
const SILENCE: Duration = Duration::from_secs(5);

/// After a failure here, one of a server that caused it is heard of within this time.
const HINDSIGHT: Duration = Duration::from_millis(500);

/// Between two signs of life to the servers.
const HEARTBEAT: Duration = Duration::from_secs(1);

impl Coordinator<'_> {
    /// The next event that has to be acted on.
    pub(super) async fn next(&mut self) -> Result<(usize, Event), Failure> {
        let mut beat = Instant::now() + HEARTBEAT;
        loop {
            let overdue = self.groups.iter().filter(|group| !group.done).filter_map(|group| group.deadline).min();
            let wake = overdue.map_or(beat, |overdue| overdue.min(beat));
            tokio::select! {
                news = self.events.recv() => {
                    let Some((party, news)) = news else { return Err(Failure::lost(None, "nobody is left")) };
                    if let Some(event) = self.sift(party, news)? {
                        return Ok((party, event));
                    }
                }
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    if overdue.is_some_and(|overdue| now >= overdue) {
                        return Err(Failure::lost(self.silent_party(), "its strands did not end with their window"));
                    }
                    if now >= beat {
                        self.order_all(|| Order::Alive);
                        beat = now + HEARTBEAT;
                    }
                    for (party, heard) in self.parties.iter().zip(&self.heard) {
                        if party.host.is_some() && now > *heard + SILENCE {
                            return Err(Failure::lost(party.host.clone(), "it has said nothing for 5 s"));
                        }
                    }
                }
            }
        }
    }

    /// The next event, which must come in time; `missing` is a party that has not answered yet.
    pub(super) async fn next_within(&mut self, patience: Duration, missing: usize) -> Result<(usize, Event), Failure> {
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
                Ok(None) => return Err(Failure::lost(None, "nobody is left")),
                Err(_) if Instant::now() < deadline => {
                    self.order_all(|| Order::Alive);
                    beat = Instant::now() + HEARTBEAT;
                }
                Err(_) => {
                    let host = self.parties[missing].host.clone();
                    return Err(Failure::lost(host, &format!("no answer within {} s", patience.as_secs())));
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

    pub(super) fn keep(&mut self, party: usize, event: Event) {
        if let Event::Report(report) = event {
            self.reports[party] = Some(*report);
        }
    }

    /// Strands of this machine often fail because a server did or is gone: then that is what has to be told.
    pub(super) async fn cause(&mut self, failure: Failure) -> Failure {
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
    pub(super) async fn wind_down(&mut self, failure: &Failure) {
        if !self.begun {
            self.order_all(|| Order::Report);
            return;
        }
        // Servers first: a client that has reported closes its connections, and a server that still uses them fails.
        for servers in [true, false] {
            for party in self.parties.iter().filter(|party| party.host.is_some() == servers) {
                (party.order)(Order::Report);
            }
            self.take_reports(failure, servers).await;
        }
    }

    async fn take_reports(&mut self, failure: &Failure, servers: bool) {
        let deadline = Instant::now() + Duration::from_secs(2);
        let gone = |party: &Party| match failure {
            Failure::Lost { host, .. } | Failure::Fault { host, .. } => host.is_some() && party.host == *host,
            Failure::Interrupted => false,
        };
        let awaited = |party: &Party| party.host.is_some() == servers && !gone(party);
        let parties = self.parties.iter().zip(&self.reports);
        let mut coming: Vec<bool> = parties.map(|(party, report)| report.is_none() && awaited(party)).collect();
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

    pub(super) fn nonsense(&self, party: usize) -> Failure {
        let fault = Fault::new("it said something that does not belong there");
        Failure::Fault { host: self.parties[party].host.clone(), fault }
    }
}

//! Before anything runs: every party gets ready, and learns the others' addresses.

use std::collections::HashMap;

use super::{Coordinator, Failure, hear::PATIENCE};
use crate::engine::work::{Event, Link, LinkAnnouncement, Order};
use crate::language::{Action, Profile};

impl Coordinator<'_> {
    /// Gets every party ready, and tells each the others' addresses.
    pub(super) async fn introduce(&mut self) -> Result<(), Failure> {
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

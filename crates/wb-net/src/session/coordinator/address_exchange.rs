//! Before anything runs: every party gets ready, and learns the others' addresses.

use std::collections::HashMap;

use super::{Coordinator, RunFailure, events::RESPONSE_TIMEOUT};
use crate::engine::protocol::{EngineCommand, EngineEvent, LinkAnnouncement, LinkId};
use crate::language::{FlowopAction, NetProfile};

impl Coordinator<'_> {
    /// Gets every party ready, and tells each the others' addresses.
    pub(super) async fn exchange_addresses(&mut self) -> Result<(), RunFailure> {
        for party in &self.participants {
            let assignment = Box::new(party.assignment.clone());
            (party.send)(EngineCommand::Prepare(assignment));
        }
        let mut links: Vec<Option<Vec<LinkAnnouncement>>> = self.participants.iter().map(|_| None).collect();
        while let Some(missing) = links.iter().position(Option::is_none) {
            match self.next_event_within(RESPONSE_TIMEOUT, missing).await? {
                (party, EngineEvent::Prepared { links: announced, executor }) => {
                    self.executors[party] = Some(executor);
                    links[party] = Some(announced);
                }
                (party, _) => return Err(self.unexpected_event(party)),
            }
        }
        let hosts: HashMap<LinkId, String> = link_hosts(self.profile);
        let (mut of_clients, mut of_servers) = (Vec::new(), Vec::new());
        for (party, links) in self.participants.iter().zip(links) {
            let into = if party.host.is_some() { &mut of_servers } else { &mut of_clients };
            into.extend(links.into_iter().flatten());
        }
        for party in &self.participants {
            let links = match &party.host {
                None => of_servers.clone(),
                Some(host) => of_clients.iter().filter(|link| hosts.get(&link.link) == Some(host)).cloned().collect(),
            };
            (party.send)(EngineCommand::SetPeers(links));
        }
        let mut met = vec![false; self.participants.len()];
        while let Some(missing) = met.iter().position(|met| !met) {
            match self.next_event_within(RESPONSE_TIMEOUT, missing).await? {
                (party, EngineEvent::Ready) => met[party] = true,
                (party, _) => return Err(self.unexpected_event(party)),
            }
        }
        Ok(())
    }
}

/// To which host the connections of a profile go.
fn link_hosts(profile: &NetProfile) -> HashMap<LinkId, String> {
    let mut hosts = HashMap::new();
    for (group, groups) in profile.groups.iter().enumerate() {
        for (transaction, transactions) in groups.transactions.iter().enumerate() {
            for (flowop, flowops) in transactions.flowops.iter().enumerate() {
                if let FlowopAction::Connect(endpoint) | FlowopAction::Accept(endpoint) = &flowops.action {
                    hosts.insert(LinkId { group, transaction, flowop }, endpoint.remote.clone());
                }
            }
        }
    }
    hosts
}

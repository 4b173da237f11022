//! Preparation of a run: every participant listens where it accepts connections, and gets the others' addresses.

use std::collections::HashMap;

use super::{Coordinator, RunFailure};
use crate::engine::protocol::{EngineCommand, EngineEvent, LinkAnnouncement, LinkId};
use wb_net_profile::NetProfile;

impl Coordinator<'_> {
    pub(super) async fn exchange_addresses(&mut self) -> Result<(), RunFailure> {
        for participant in &self.participants {
            let assignment = Box::new(participant.assignment.clone());
            (participant.send)(EngineCommand::Prepare(assignment));
        }
        let mut links: Vec<Option<Vec<LinkAnnouncement>>> = self.participants.iter().map(|_| None).collect();
        while let Some(missing) = links.iter().position(Option::is_none) {
            match self.next_response(missing).await? {
                (participant, EngineEvent::Prepared { links: announcements, .. }) => {
                    links[participant] = Some(announcements);
                }
                (participant, _) => return Err(self.unexpected_event(participant)),
            }
        }
        let hosts: HashMap<LinkId, String> = link_hosts(self.profile);
        let (mut client_links, mut server_links) = (Vec::new(), Vec::new());
        for (participant, links) in self.participants.iter().zip(links) {
            let target = if participant.host.is_some() { &mut server_links } else { &mut client_links };
            target.extend(links.into_iter().flatten());
        }
        for participant in &self.participants {
            let links = match &participant.host {
                None => server_links.clone(),
                Some(host) => client_links.iter().filter(|link| hosts.get(&link.link) == Some(host)).cloned().collect(),
            };
            (participant.send)(EngineCommand::SetPeers(links));
        }
        let mut ready = vec![false; self.participants.len()];
        while let Some(missing) = ready.iter().position(|ready| !ready) {
            match self.next_response(missing).await? {
                (participant, EngineEvent::Ready) => ready[participant] = true,
                (participant, _) => return Err(self.unexpected_event(participant)),
            }
        }
        Ok(())
    }
}

fn link_hosts(profile: &NetProfile) -> HashMap<LinkId, String> {
    let mut hosts = HashMap::new();
    for (group, groups) in profile.groups.iter().enumerate() {
        for (transaction, transactions) in groups.transactions.iter().enumerate() {
            for (flowop, flowops) in transactions.flowops.iter().enumerate() {
                if let Some(endpoint) = flowops.endpoint() {
                    hosts.insert(LinkId { group, transaction, flowop }, endpoint.remote.clone());
                }
            }
        }
    }
    hosts
}

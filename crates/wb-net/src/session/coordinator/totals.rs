//! Byte and datagram totals of both sides: exchanged and compared.

use std::collections::BTreeMap;

use super::{Coordinator, DatagramTotals};
use crate::engine::protocol::{ConnectionTotals, EngineCommand, StrandTotals};

/// The totals that the client and the server report for a connection.
pub(super) type TotalsPair = (Option<ConnectionTotals>, Option<ConnectionTotals>);

impl Coordinator<'_> {
    pub(super) fn is_drained(&self, group: usize) -> bool {
        let pairs = self.connection_pairs(group);
        pairs.values().all(|pair| match pair {
            (Some(client), Some(server)) => client.sent == server.received && server.sent == client.received,
            _ => true,
        })
    }

    /// The totals of each connection from both sides, by host, strand and ordinal.
    pub(super) fn connection_pairs(&self, group: usize) -> BTreeMap<(u32, u32, u32), TotalsPair> {
        let mut pairs: BTreeMap<_, TotalsPair> = BTreeMap::new();
        for (&participant, strands) in &self.groups[group].totals {
            let server = self.host_index(participant);
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

    /// Datagrams from both sides by host and strand; not by connection, which one side may close before the other.
    pub(super) fn datagram_totals(&self, group: usize) -> BTreeMap<(u32, u32), DatagramTotals> {
        let mut all: BTreeMap<(u32, u32), (Option<DatagramTotals>, Option<DatagramTotals>)> = BTreeMap::new();
        for ((host, strand, _), (client, server)) in self.connection_pairs(group) {
            let both = all.entry((host, strand)).or_default();
            if let Some(client) = client.filter(|client| client.datagrams) {
                let sum = both.0.get_or_insert_default();
                sum.client_sent += client.sent;
                sum.client_received += client.received;
            }
            if let Some(server) = server.filter(|server| server.datagrams) {
                let sum = both.1.get_or_insert_default();
                sum.server_sent += server.sent;
                sum.server_received += server.received;
            }
        }
        let both =
            all.into_iter().filter_map(|(key, (client, server))| Some((key, [client?, server?].into_iter().sum())));
        both.collect()
    }

    fn host_index(&self, participant: usize) -> Option<u32> {
        let host = self.participants[participant].host.as_ref()?;
        let client = self.participants.iter().find(|participant| participant.host.is_none())?;
        client.assignment.hosts.keys().position(|other| other == host).map(|position| position as u32)
    }

    /// Sends each server the totals of the client's strands for their connections to it.
    pub(super) fn send_totals_to_servers(
        &self,
        group: usize,
        command: impl Fn(usize, Vec<StrandTotals>) -> EngineCommand,
    ) {
        for participant in self.group_participants(group, true) {
            let position = self.host_index(participant);
            let clients =
                self.group_participants(group, false).filter_map(|client| self.groups[group].totals.get(&client));
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
            (self.participants[participant].send)(command(group, totals.collect()));
        }
    }

    pub(super) fn send_totals_to_clients(
        &self,
        group: usize,
        command: impl Fn(usize, Vec<StrandTotals>) -> EngineCommand,
    ) {
        let mut totals: BTreeMap<u32, StrandTotals> = BTreeMap::new();
        for server in self.group_participants(group, true) {
            let Some(host) = self.host_index(server) else { continue };
            for strand in self.groups[group].totals.get(&server).into_iter().flatten() {
                let entry = totals.entry(strand.strand).or_insert_with(|| StrandTotals {
                    strand: strand.strand,
                    connections: Vec::new(),
                    opened: Vec::new(),
                });
                entry.connections.extend(strand.connections.iter().map(|totals| ConnectionTotals { host, ..*totals }));
            }
        }
        for client in self.group_participants(group, false) {
            let strands = &self.participants[client].assignment.strands[group];
            let own = totals.values().filter(|totals| strands.contains(&totals.strand)).cloned().collect();
            (self.participants[client].send)(command(group, own));
        }
    }
}

//! Why a run has no figures although it ran to its end: nothing in it succeeded.

use super::assembly::{GroupData, is_send};
use crate::engine::{clock::Nanos, tally::TransactionTally};
use crate::session::coordinator::DatagramTotals;

/// How long a message that was lost once may take: the initial retransmission timeout of SCTP (RFC 4960), the longest of
/// all protocols.
const RETRANSMISSION: Nanos = 3_000_000_000;

impl GroupData<'_> {
    /// The reason why a transaction has no figures: nothing in it has succeeded. A run with a time limit may end before
    /// the first round does.
    pub(super) fn describe_lack_of_success(&self, is_limited: bool) -> Option<String> {
        let DatagramTotals { client_sent, server_received, server_sent, client_received } = self.datagrams;
        if client_sent + server_sent > 0 && server_received + client_received == 0 {
            let sent = client_sent + server_sent;
            return Some(format!("group {}: none of {sent} datagrams arrived", self.group.name));
        }
        self.data_transactions().find_map(|position| {
            let tally = self.client_tally(position)?;
            let (failed, open, longest) = (tally.failed_rounds, tally.pending.open_count(), tally.pending.longest());
            let may_arrive = failed == 0 && longest < RETRANSMISSION;
            let nothing_ended = !self.settings.totals_only && tally.rounds.count() == 0;
            if let (0, sent @ 1..) = self.received_and_sent(position, tally)
                && !(nothing_ended && may_arrive)
            {
                let name = &self.group.transactions[position].name;
                return Some(format!("group {}, {name}: none of {sent} sent bytes arrived", self.group.name));
            }
            if self.settings.totals_only || tally.rounds.count() > 0 {
                return None;
            }
            let received: u64 = self
                .server_tallies(position)
                .chain([tally])
                .flat_map(|tally| &tally.flowops)
                .map(|flowop| flowop.count)
                .sum();
            // A long round may have moved a part of its data, and a short window may end before the first one.
            if failed == 0 && (received > 0 || open == 0 || is_limited) {
                return None;
            }
            let mut parts = Vec::new();
            if failed > 0 {
                parts.push(format!("{failed} failed"));
            }
            if open > 0 {
                let milliseconds = longest / 1_000_000;
                parts.push(format!("{open} still open at the end, after {milliseconds} ms"));
            }
            let name = &self.group.transactions[position].name;
            Some(format!("group {}, {name}: no round succeeded: {}", self.group.name, parts.join(", ")))
        })
    }

    /// Bytes that both sides received and sent in complete messages, in a transaction.
    fn received_and_sent(&self, position: usize, client: &TransactionTally) -> (u64, u64) {
        let written = &self.group.transactions[position].flowops;
        let moved = |tally: &TransactionTally, sends: bool| -> u64 {
            let flowops = written.iter().zip(&tally.flowops).filter(|(flowop, _)| is_send(flowop) == Some(sends));
            flowops.map(|(_, tally)| tally.bytes).sum()
        };
        let received = self.server_tallies(position).map(|server| moved(server, true)).sum::<u64>();
        let sent = self.server_tallies(position).map(|server| moved(server, false)).sum::<u64>();
        (received + moved(client, false), sent + moved(client, true))
    }
}

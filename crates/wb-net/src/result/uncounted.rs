//! Bytes that were received before their sender had counted them.

use super::assembly::is_send;
use crate::engine::report::EngineReport;
use crate::engine::tally::FlowopTally;
use wb_net_profile::NetProfile;

/// Counts received bytes as sent. A receiver may have counted a message while its sender's system call had not returned
/// when the sender's window ended. Returns the number of added bytes of each group.
pub(super) fn count_received_as_sent(profile: &NetProfile, reports: &mut [Option<EngineReport>]) -> Vec<u64> {
    let mut added = vec![0; profile.groups.len()];
    let Some((client, servers)) = reports.split_first_mut() else { return added };
    let mut servers: Vec<&mut EngineReport> = servers.iter_mut().flatten().collect();
    let flowops = profile.groups.iter().enumerate().flat_map(|(group, definition)| {
        let transactions = definition.transactions.iter().enumerate();
        transactions.flat_map(move |(transaction, definition)| {
            let flowops = definition.flowops.iter().enumerate();
            flowops.map(move |(flowop, definition)| ((group, transaction, flowop), is_send(definition)))
        })
    });
    for (position, sends) in flowops {
        let Some(client) = client.as_mut().and_then(|client| flowop_tally(client, position)) else { continue };
        let mut servers: Vec<&mut FlowopTally> =
            servers.iter_mut().filter_map(|server| flowop_tally(server, position)).collect();
        let by_servers = |count: fn(&FlowopTally) -> u64| servers.iter().map(|server| count(server)).sum::<u64>();
        let (bytes, count) = (by_servers(|server| server.bytes), by_servers(|server| server.count));
        match sends {
            Some(true) if client.bytes < bytes => {
                added[position.0] += bytes - client.bytes;
                client.bytes = bytes;
                client.count = client.count.max(count);
            }
            Some(false) if client.bytes > bytes => {
                if let Some(server) = servers.first_mut() {
                    added[position.0] += client.bytes - bytes;
                    server.bytes += client.bytes - bytes;
                    server.count += client.count.saturating_sub(count);
                }
            }
            _ => {}
        }
    }
    added
}

fn flowop_tally(
    report: &mut EngineReport,
    (group, transaction, flowop): (usize, usize, usize),
) -> Option<&mut FlowopTally> {
    report.groups.get_mut(group)?.transactions.get_mut(transaction)?.flowops.get_mut(flowop)
}

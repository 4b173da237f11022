use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use wb_model::Nanos;

use crate::{Failure, WorkerContext};

/// Range of the search: below the kernel's ephemeral ports, above most well-known ports.
const PORTS: RangeInclusive<u16> = 20_000..=32_000;

/// State of a listening TCP socket in the tables of `/proc/net`.
const TCP_LISTEN: &str = "0A";

/// Finds a port that no TCP or UDP socket of the worker is bound to.
pub async fn find_free_port(context: &WorkerContext) -> Result<u16, Failure> {
    Ok(context.worker().find_free_port(PORTS).await?)
}

/// Waits until a TCP socket listens on a port, or a UDP socket is bound to it.
pub async fn wait_for_listener(context: &WorkerContext, name: &str, port: u16, limit: Nanos) -> Result<(), Failure> {
    let is_bound =
        || async { bound_ports(context, |state| state == TCP_LISTEN).await.ok()?.contains(&port).then_some(()) };
    context.poll_until(&format!("{name} (port {port})"), limit, is_bound).await
}

/// Ports that sockets are bound to; for TCP, those in a state that `is_counted` accepts.
async fn bound_ports(context: &WorkerContext, is_counted: impl Fn(&str) -> bool) -> Result<BTreeSet<u16>, Failure> {
    let mut ports = BTreeSet::new();
    for (file, is_tcp) in [("tcp", true), ("tcp6", true), ("udp", false), ("udp6", false)] {
        let table = match context.get(&format!("/proc/net/{file}")).await {
            Ok(table) => table,
            // Missing in a kernel without IPv6.
            Err(Failure::Refused { .. }) => continue,
            Err(other) => return Err(other),
        };
        ports.extend(
            sockets(&String::from_utf8_lossy(&table))
                .filter(|(_, state)| !is_tcp || is_counted(state))
                .map(|(port, _)| port),
        );
    }
    Ok(ports)
}

/// Parses local port and state of each socket in a table of `/proc/net`.
fn sockets(table: &str) -> impl Iterator<Item = (u16, &str)> {
    table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        Some((port, state))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_of_sockets_is_parsed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
                        0: 0100007F:2B6D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n\
                        1: 0100007F:C350 0100007F:2B6D 01 00000000:00000000 00:00000000 00000000     0\n";
        assert_eq!(sockets(table).collect::<Vec<_>>(), [(11117, "0A"), (50000, "01")]);
    }

    proptest! {
        #[test]
        fn no_table_panics(table: String) {
            let _ = sockets(&table).count();
        }
    }
}

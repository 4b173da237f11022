//! Ports of a worker, as the kernel lists them: which are free, which are listened on.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use wb_model::Nanos;

use crate::{Failure, WorkerContext};

/// Below what kernels hand out by themselves, above what services are usually given.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 32_000;

/// The state of a TCP socket that listens, in the kernel's numbers.
const TCP_LISTEN: &str = "0A";

/// A port that no TCP or UDP socket of the worker is bound to.
pub(super) async fn find_free_port(site: &WorkerContext) -> Result<u16, Failure> {
    let taken = bound_ports(site, |_| true).await?;
    let span = u64::from(LAST_PORT - FIRST_PORT);
    // Chosen at random, so that two runs on one machine do not both take the first.
    let start = RandomState::new().hash_one(site.group.folder()) % span;
    let all = (0..span).map(|step| FIRST_PORT + ((start + step) % span) as u16);
    all.into_iter()
        .find(|port| !taken.contains(port))
        .ok_or_else(|| Failure::refused(format!("every port from {FIRST_PORT} to {LAST_PORT} is taken")))
}

/// Waits until a TCP socket listens on a port, or a UDP socket is bound to it.
pub(super) async fn wait_for_listener(
    site: &WorkerContext,
    what: &str,
    port: u16,
    limit: Nanos,
) -> Result<(), Failure> {
    let there = || async { bound_ports(site, |state| state == TCP_LISTEN).await.ok()?.contains(&port).then_some(()) };
    site.poll_until(&format!("{what} (port {port})"), limit, there).await
}

/// The ports that sockets are bound to; of TCP, those in a state that `counts`.
async fn bound_ports(site: &WorkerContext, counts: impl Fn(&str) -> bool) -> Result<BTreeSet<u16>, Failure> {
    let mut ports = BTreeSet::new();
    for (file, is_tcp) in [("tcp", true), ("tcp6", true), ("udp", false), ("udp6", false)] {
        let table = match site.get(&format!("/proc/net/{file}")).await {
            Ok(table) => table,
            // A kernel without IPv6 has no such file.
            Err(Failure::Refused { .. }) => continue,
            Err(other) => return Err(other),
        };
        ports.extend(
            sockets(&String::from_utf8_lossy(&table))
                .filter(|(_, state)| !is_tcp || counts(state))
                .map(|(port, _)| port),
        );
    }
    Ok(ports)
}

/// Local port and state of every socket in a table of `/proc/net`.
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
    fn a_table_of_sockets_is_read() {
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

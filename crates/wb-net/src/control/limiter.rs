//! Limits the number of unauthenticated connections, in total and per host.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limits::ControlLimits;

#[derive(Debug)]
pub(super) struct HandshakeLimiter {
    active: Mutex<ActiveHandshakes>,
    max_total: usize,
    max_per_host: usize,
}

#[derive(Debug, Default)]
struct ActiveHandshakes {
    total: usize,
    by_host: HashMap<IpAddr, usize>,
    rejected: u64,
}

/// A permit for one handshake, released when dropped
#[derive(Debug)]
pub(super) struct HandshakePermit {
    limiter: Arc<HandshakeLimiter>,
    host: IpAddr,
}

impl HandshakeLimiter {
    pub(super) fn new(limits: &ControlLimits) -> Arc<Self> {
        Arc::new(Self {
            active: Mutex::default(),
            max_total: limits.max_handshakes,
            max_per_host: limits.max_handshakes_per_host,
        })
    }

    /// Acquires a permit for a connection from this address, unless a limit is reached
    pub(super) fn try_acquire(self: &Arc<Self>, from: IpAddr) -> Option<HandshakePermit> {
        let host = host_key(from);
        let mut active = self.lock();
        let from_host = active.by_host.get(&host).copied().unwrap_or(0);
        if active.total >= self.max_total || from_host >= self.max_per_host {
            active.rejected += 1;
            return None;
        }
        active.total += 1;
        active.by_host.insert(host, from_host + 1);
        Some(HandshakePermit { limiter: Arc::clone(self), host })
    }

    pub(super) fn rejected_count(&self) -> u64 {
        self.lock().rejected
    }

    /// Ignores poisoning: the counters are consistent even if another thread panicked
    fn lock(&self) -> MutexGuard<'_, ActiveHandshakes> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let mut active = self.limiter.lock();
        active.total -= 1;
        match active.by_host.get_mut(&self.host) {
            Some(from_host) if *from_host > 1 => *from_host -= 1,
            // The map holds only hosts with active handshakes, so that untrusted peers cannot grow it.
            _ => drop(active.by_host.remove(&self.host)),
        }
    }
}

/// Identifies a host: an IPv4 address in canonical form, or the /64 in which an IPv6 host chooses its addresses
fn host_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(half_open: usize, half_open_per_host: usize) -> Arc<HandshakeLimiter> {
        HandshakeLimiter::new(&ControlLimits {
            max_handshakes: half_open,
            max_handshakes_per_host: half_open_per_host,
            ..ControlLimits::default()
        })
    }

    fn from(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn a_dropped_permit_can_be_acquired_again() {
        let gate = limiter(1, 1);
        let permit = gate.try_acquire(from("10.0.0.1")).unwrap();
        assert!(gate.try_acquire(from("10.0.0.2")).is_none());
        drop(permit);
        assert!(gate.try_acquire(from("10.0.0.2")).is_some());
        assert_eq!(gate.rejected_count(), 1);
    }

    #[test]
    fn one_host_cannot_take_all_permits() {
        let gate = limiter(8, 2);
        let permits = ["10.0.0.1", "::ffff:10.0.0.1"].map(|address| gate.try_acquire(from(address)).unwrap());
        assert!(gate.try_acquire(from("10.0.0.1")).is_none());
        assert!(gate.try_acquire(from("10.0.0.2")).is_some());
        drop(permits);
        assert!(gate.try_acquire(from("10.0.0.1")).is_some());
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_host() {
        let gate = limiter(8, 1);
        let _permit = gate.try_acquire(from("2001:db8::1")).unwrap();
        assert!(gate.try_acquire(from("2001:db8::ffff:1")).is_none());
        assert!(gate.try_acquire(from("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn hosts_without_permits_are_removed() {
        let gate = limiter(8, 8);
        drop((
            gate.try_acquire(from("10.0.0.1")),
            gate.try_acquire(from("10.0.0.1")),
            gate.try_acquire(from("10.0.0.2")),
        ));
        assert!(gate.lock().by_host.is_empty());
        assert_eq!(gate.lock().total, 0);
    }
}

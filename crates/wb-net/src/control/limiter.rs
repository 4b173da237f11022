//! Limits the number of unauthenticated connections, in total and per host: a new one takes the place of the oldest.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::limits::ControlLimits;

#[derive(Debug)]
pub(super) struct HandshakeLimiter {
    active: Mutex<ActiveHandshakes>,
    max_total: usize,
    max_per_host: usize,
}

#[derive(Debug, Default)]
struct ActiveHandshakes {
    /// The oldest first.
    handshakes: VecDeque<ActiveHandshake>,
    next_number: u64,
    rejected: u64,
}

#[derive(Debug)]
struct ActiveHandshake {
    number: u64,
    host: IpAddr,
    eviction: Arc<Notify>,
}

/// A permit for one handshake, released when dropped
#[derive(Debug)]
pub(super) struct HandshakePermit {
    limiter: Arc<HandshakeLimiter>,
    number: u64,
    eviction: Arc<Notify>,
}

impl HandshakeLimiter {
    pub(super) fn new(limits: &ControlLimits) -> Arc<Self> {
        Arc::new(Self {
            active: Mutex::default(),
            max_total: limits.max_handshakes.max(1),
            max_per_host: limits.max_handshakes_per_host.max(1),
        })
    }

    /// Acquires a permit for this address; at a limit, the oldest connection of its host, or else of all, is evicted
    pub(super) fn acquire(self: &Arc<Self>, from: IpAddr) -> HandshakePermit {
        let host = host_key(from);
        let mut active = self.lock();
        let of_host = active.handshakes.iter().filter(|handshake| handshake.host == host).count();
        let oldest = if of_host >= self.max_per_host {
            active.handshakes.iter().position(|handshake| handshake.host == host)
        } else {
            (active.handshakes.len() >= self.max_total).then_some(0)
        };
        if let Some(evicted) = oldest.and_then(|index| active.handshakes.remove(index)) {
            evicted.eviction.notify_one();
            active.rejected += 1;
        }
        let (number, eviction) = (active.next_number, Arc::new(Notify::new()));
        active.next_number += 1;
        active.handshakes.push_back(ActiveHandshake { number, host, eviction: eviction.clone() });
        HandshakePermit { limiter: Arc::clone(self), number, eviction }
    }

    pub(super) fn rejected_count(&self) -> u64 {
        self.lock().rejected
    }

    /// Ignores poisoning: the counters are consistent even if another thread panicked
    fn lock(&self) -> MutexGuard<'_, ActiveHandshakes> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandshakePermit {
    pub(super) async fn evicted(&self) {
        self.eviction.notified().await;
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        self.limiter.lock().handshakes.retain(|handshake| handshake.number != self.number);
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

    /// Whether a permit has been evicted.
    fn is_evicted(permit: &HandshakePermit) -> bool {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(async { tokio::time::timeout(std::time::Duration::ZERO, permit.evicted()).await.is_ok() })
    }

    #[test]
    fn a_new_connection_takes_the_place_of_the_oldest() {
        let gate = limiter(2, 2);
        let [first, second, third] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|address| gate.acquire(from(address)));
        assert_eq!([&first, &second, &third].map(is_evicted), [true, false, false]);
        assert_eq!(gate.rejected_count(), 1);
        drop(second);
        let fourth = gate.acquire(from("10.0.0.4"));
        assert_eq!([&third, &fourth].map(is_evicted), [false, false]);
    }

    #[test]
    fn a_host_evicts_its_own_connections_first() {
        let gate = limiter(8, 2);
        let other = gate.acquire(from("10.0.0.2"));
        let own = ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"].map(|address| gate.acquire(from(address)));
        assert_eq!((is_evicted(&other), own.each_ref().map(is_evicted)), (false, [true, false, false]));
    }

    // An IPv6 host chooses its addresses in a /64: otherwise it had as many places as it likes.
    #[test]
    fn addresses_of_one_ipv6_network_are_one_host() {
        let gate = limiter(8, 1);
        let first = gate.acquire(from("2001:db8::1"));
        let _other = gate.acquire(from("2001:db8:0:1::1"));
        assert!(!is_evicted(&first));
        let _second = gate.acquire(from("2001:db8::ffff:1"));
        assert!(is_evicted(&first));
    }

    #[test]
    fn ended_handshakes_are_forgotten() {
        let gate = limiter(8, 8);
        drop((gate.acquire(from("10.0.0.1")), gate.acquire(from("10.0.0.1")), gate.acquire(from("10.0.0.2"))));
        assert!(gate.lock().handshakes.is_empty());
    }
}

//! How long and how much strangers and peers may take.

use std::time::Duration;

/// What a frame may hold while nobody has proven anything
pub(super) const FRAME_OF_STRANGERS: usize = 64 * 1024;

/// Limits of control connections
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until a connection is answered
    pub connect: Duration,
    /// From the connection until both sides have proven themselves
    pub handshake: Duration,
    /// Bytes of the longest message, once they have
    pub frame: usize,
    /// Unproven connections at once; what comes beyond them is closed at once
    pub half_open: usize,
    /// Unproven connections at once from one address (one /64 of IPv6), so that no host takes all places
    pub half_open_per_host: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            frame: 16 * 1024 * 1024,
            half_open: 64,
            half_open_per_host: 16,
        }
    }
}

//! How long and how much strangers and peers may take.

use std::time::Duration;

/// What a frame may hold while nobody has proven anything
pub(super) const UNAUTHENTICATED_FRAME_LIMIT: usize = 64 * 1024;

/// Limits of control connections
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlLimits {
    /// Until a connection is answered
    pub connect_timeout: Duration,
    /// From the connection until both sides have proven themselves
    pub handshake_timeout: Duration,
    /// Bytes of the longest message, once they have
    pub max_frame: usize,
    /// Unproven connections at once; what comes beyond them is closed at once
    pub half_open: usize,
    /// Unproven connections at once from one address (one /64 of IPv6), so that no host takes all places
    pub half_open_per_host: usize,
}

impl Default for ControlLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            max_frame: 16 * 1024 * 1024,
            half_open: 64,
            half_open_per_host: 16,
        }
    }
}

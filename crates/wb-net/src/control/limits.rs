//! Time and size limits of control connections.

use std::time::Duration;

/// Bytes of the longest frame before the peer is authenticated
pub(super) const UNAUTHENTICATED_FRAME_LIMIT: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlLimits {
    pub connect_timeout: Duration,
    /// Timeout of the handshake: from the connection until both sides are authenticated
    pub handshake_timeout: Duration,
    /// Bytes of the longest message after authentication
    pub max_frame: usize,
    /// Maximum number of unauthenticated connections; a further one takes the place of the oldest
    pub max_handshakes: usize,
    /// Maximum number of unauthenticated connections per address (per /64 of IPv6), so that one host cannot use all
    pub max_handshakes_per_host: usize,
}

impl Default for ControlLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            max_frame: 16 * 1024 * 1024,
            max_handshakes: 256,
            max_handshakes_per_host: 64,
        }
    }
}

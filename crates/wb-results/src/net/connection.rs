//! What the kernel says of connections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kernel statistics of one connection, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionInfo {
    /// Number of connections.
    pub connections: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Mean of the smoothed round-trip times, in nanoseconds; 0 if the protocol does not measure them.
    pub rtt_ns: u64,
    /// Maximum of the smoothed round-trip times, in nanoseconds.
    pub rtt_max_ns: u64,
    /// Size of the send buffer granted by the kernel, in bytes; the minimum of several.
    pub send_buffer: u64,
    /// Size of the receive buffer granted by the kernel, in bytes; the minimum of several.
    pub receive_buffer: u64,
}

impl ConnectionInfo {
    /// Saturates, as statistics also come from other machines.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        let connections = self.connections.saturating_add(other.connections);
        if connections == 0 {
            return;
        }
        let total_rtt = |info: &Self| u128::from(info.rtt_ns) * u128::from(info.connections);
        let rtts = total_rtt(self).saturating_add(total_rtt(other));
        let smaller_nonzero =
            |left: u64, right: u64| if left == 0 || right == 0 { left.max(right) } else { left.min(right) };
        *self = Self {
            connections,
            retransmits: self.retransmits.saturating_add(other.retransmits),
            rtt_ns: u64::try_from(rtts / u128::from(connections)).unwrap_or(u64::MAX),
            rtt_max_ns: self.rtt_max_ns.max(other.rtt_max_ns),
            send_buffer: smaller_nonzero(self.send_buffer, other.send_buffer),
            receive_buffer: smaller_nonzero(self.receive_buffer, other.receive_buffer),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_any_size_are_summed() {
        let largest = ConnectionInfo {
            connections: u64::MAX,
            retransmits: u64::MAX,
            rtt_ns: u64::MAX,
            rtt_max_ns: u64::MAX,
            send_buffer: u64::MAX,
            receive_buffer: 0,
        };
        let mut sum = largest;
        sum.add(&largest);
        assert_eq!(sum, largest);
        let mut mean = ConnectionInfo { connections: 1, rtt_ns: 100, ..ConnectionInfo::default() };
        mean.add(&ConnectionInfo { connections: 3, rtt_ns: 20, ..ConnectionInfo::default() });
        assert_eq!((mean.connections, mean.rtt_ns), (4, 40));
    }
}

//! Offset between the clocks of two machines.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use wb_model::Nanos;

use crate::protocol::ClockReading;

/// Reads CLOCK_MONOTONIC of this machine, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Reads the wall clock of this machine, in nanoseconds since 1970.
pub(crate) fn wall_ns() -> u64 {
    clock_ns(ClockId::Realtime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Offset of a worker's clocks from ours, estimated from one request and reply (NTP).
///
/// After D. Mills, RFC 5905 (NTP), section 8: the request is sent at T1 and its reply received at T4 by the local
/// clock; the request is received at T2 and replied to at T3 by the remote clock. The remote clock is ahead by ((T2 -
/// T1) + (T3 - T4)) / 2, with an error of at most half the round-trip time (T4 - T1) - (T3 - T2), however unevenly that
/// is split between the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockOffset {
    /// Offset of the worker's CLOCK_MONOTONIC, in nanoseconds; positive if it is ahead.
    pub offset_ns: i64,
    /// Offset of the worker's wall clock, in nanoseconds; positive if it is ahead.
    pub wall_offset_ns: i64,
    /// Maximum error of both offsets, in nanoseconds.
    pub error_ns: u64,
    /// Round-trip time of the exchange.
    pub rtt: Nanos,
}

impl ClockOffset {
    /// Computes the offset from the local send and receive times of an exchange, and the wall clock at receipt.
    pub(crate) fn from_exchange(sent_ns: u64, remote: ClockReading, received_ns: u64, wall_ns: u64) -> Self {
        let difference = |remote: u64, local: u64| i128::from(remote) - i128::from(local);
        let offset = (difference(remote.received_ns, sent_ns) + difference(remote.replied_ns, received_ns)) / 2;
        let walls = difference(remote.wall_ns, remote.replied_ns) - difference(wall_ns, received_ns);
        let processing = remote.replied_ns.saturating_sub(remote.received_ns);
        let rtt = received_ns.saturating_sub(sent_ns).saturating_sub(processing);
        Self {
            offset_ns: saturate_i64(offset),
            wall_offset_ns: saturate_i64(walls + offset),
            error_ns: rtt.div_ceil(2),
            rtt: Nanos(rtt),
        }
    }

    /// Converts a local CLOCK_MONOTONIC time to the worker's.
    pub fn to_remote_ns(&self, local_ns: u64) -> u64 {
        local_ns.saturating_add_signed(self.offset_ns)
    }
}

fn saturate_i64(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the delays in both directions, the true offset is within the error.
        #[test]
        fn the_true_offset_is_within_the_error(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            wall in -1_000_000_000_000_i64..1_000_000_000_000,
            sent in 2_000_000_000_000_u64..3_000_000_000_000,
            request_delay in 0_u64..1_000_000_000,
            processing in 0_u64..1_000_000_000,
            reply_delay in 0_u64..1_000_000_000,
        ) {
            const EPOCH: u64 = 1_700_000_000_000_000_000;
            let remote = |local: u64| local.saturating_add_signed(offset);
            let replied = sent + request_delay + processing;
            let reading = ClockReading {
                received_ns: remote(sent + request_delay),
                replied_ns: remote(replied),
                wall_ns: (EPOCH + replied).saturating_add_signed(wall),
            };
            let received = replied + reply_delay;
            let estimate = ClockOffset::from_exchange(sent, reading, received, EPOCH + received);
            prop_assert_eq!(estimate.rtt.0, request_delay + reply_delay);
            // Rounding to whole nanoseconds loses half of one.
            prop_assert!(estimate.offset_ns.abs_diff(offset) <= estimate.error_ns + 1);
            prop_assert!(estimate.wall_offset_ns.abs_diff(wall) <= estimate.error_ns + 1);
            prop_assert_eq!(estimate.to_remote_ns(sent), sent.saturating_add_signed(estimate.offset_ns));
        }
    }
}

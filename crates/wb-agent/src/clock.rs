//! Clocks of two machines, and how far they are apart.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use wb_model::Nanos;

/// CLOCK_MONOTONIC of this machine, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// The wall clock of this machine, in nanoseconds since 1970.
pub(crate) fn wall_ns() -> u64 {
    clock_ns(ClockId::Realtime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// What an agent's clocks said when it was asked. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// CLOCK_MONOTONIC when the question came.
    pub received_ns: u64,
    /// CLOCK_MONOTONIC when the answer went.
    pub replied_ns: u64,
    /// The wall clock when the answer went.
    pub wall_ns: u64,
}

/// How far a worker's clocks are ahead of this machine's, by one question and its answer.
///
/// After D. Mills, RFC 5905 (NTP), section 8: with the question sent at T1 and its answer received at T4 by our clock,
/// received at T2 and answered at T3 by theirs, theirs is ahead by ((T2 - T1) + (T3 - T4)) / 2, and wrong by at most half
/// of (T4 - T1) - (T3 - T2), the time on the way, however unevenly that is split between both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockOffset {
    /// How far its CLOCK_MONOTONIC is ahead, in nanoseconds.
    pub offset_ns: i64,
    /// How far its wall clock is ahead, in nanoseconds.
    pub wall_offset_ns: i64,
    /// By how much both may be wrong at most, in nanoseconds.
    pub error_ns: u64,
    /// The time on the way, there and back.
    pub rtt: Nanos,
}

impl ClockOffset {
    /// From a question sent and an answer received at these times of ours, the second also by our wall clock.
    pub(crate) fn from_exchange(sent_ns: u64, theirs: ClockReading, received_ns: u64, wall_ns: u64) -> Self {
        let ahead = |theirs: u64, ours: u64| i128::from(theirs) - i128::from(ours);
        let offset = (ahead(theirs.received_ns, sent_ns) + ahead(theirs.replied_ns, received_ns)) / 2;
        let walls = ahead(theirs.wall_ns, theirs.replied_ns) - ahead(wall_ns, received_ns);
        let there = theirs.replied_ns.saturating_sub(theirs.received_ns);
        let rtt = received_ns.saturating_sub(sent_ns).saturating_sub(there);
        Self {
            offset_ns: saturate_i64(offset),
            wall_offset_ns: saturate_i64(walls + offset),
            error_ns: rtt.div_ceil(2),
            rtt: Nanos(rtt),
        }
    }

    /// What the worker's CLOCK_MONOTONIC says when ours says this.
    pub fn to_remote_ns(&self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.offset_ns)
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
        /// Whatever the ways take, the truth is within the error.
        #[test]
        fn the_true_offset_is_within_the_error(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            wall in -1_000_000_000_000_i64..1_000_000_000_000,
            sent in 2_000_000_000_000_u64..3_000_000_000_000,
            there in 0_u64..1_000_000_000,
            work in 0_u64..1_000_000_000,
            back in 0_u64..1_000_000_000,
        ) {
            const EPOCH: u64 = 1_700_000_000_000_000_000;
            let theirs = |ours: u64| ours.saturating_add_signed(offset);
            let answered = sent + there + work;
            let reading = ClockReading {
                received_ns: theirs(sent + there),
                replied_ns: theirs(answered),
                wall_ns: (EPOCH + answered).saturating_add_signed(wall),
            };
            let received = answered + back;
            let found = ClockOffset::from_exchange(sent, reading, received, EPOCH + received);
            prop_assert_eq!(found.rtt.0, there + back);
            // Half a nanosecond is lost to whole numbers.
            prop_assert!(found.offset_ns.abs_diff(offset) <= found.error_ns + 1);
            prop_assert!(found.wall_offset_ns.abs_diff(wall) <= found.error_ns + 1);
            prop_assert_eq!(found.to_remote_ns(sent), sent.saturating_add_signed(found.offset_ns));
        }
    }
}

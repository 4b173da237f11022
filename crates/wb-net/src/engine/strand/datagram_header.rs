//! The header of a datagram: its position in the transaction, by which the receiver detects loss and reordering.
//!
//! Both sides execute the same sequence of positions, so a receiver that was waiting for an earlier one knows that
//! everything in between is lost, and continues from there.

use crate::engine::clock::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DatagramHeader {
    pub(super) transaction: u8,
    /// 24 bits, wrapping.
    pub(super) round: u32,
    pub(super) flowop: u16,
    pub(super) execution: u16,
}

/// Length of the header in bytes.
pub(super) const LENGTH: usize = 8;

/// Length of the header with the time of sending.
const TIMED_LENGTH: usize = 16;

const ROUNDS: u32 = 1 << 24;

impl DatagramHeader {
    pub(super) fn new(transaction: usize, round: u64, flowop: usize, execution: u64) -> Self {
        Self {
            transaction: transaction as u8,
            round: (round % u64::from(ROUNDS)) as u32,
            flowop: flowop as u16,
            execution: execution as u16,
        }
    }

    #[inline]
    pub(super) fn write(self, into: &mut [u8]) {
        let word = u64::from(self.transaction) << 56
            | u64::from(self.round) << 32
            | u64::from(self.flowop) << 16
            | u64::from(self.execution);
        into[..LENGTH].copy_from_slice(&word.to_be_bytes());
    }

    #[inline]
    pub(super) fn read(from: &[u8]) -> Option<Self> {
        let word = u64::from_be_bytes(from.get(..LENGTH)?.try_into().ok()?);
        Some(Self {
            transaction: (word >> 56) as u8,
            round: (word >> 32) as u32 % ROUNDS,
            flowop: (word >> 16) as u16,
            execution: word as u16,
        })
    }

    /// Adds the time of sending, by the sender's clock, to a datagram that has room for it behind the header.
    #[inline]
    pub(super) fn write_time(into: &mut [u8], sent: Nanos) {
        // For the jitter, a difference of differences: the clocks of the two sides need not agree.
        if let Some(place) = into.get_mut(LENGTH..TIMED_LENGTH) {
            place.copy_from_slice(&sent.to_be_bytes());
        }
    }

    /// The time of sending, if the datagram has room for it.
    #[inline]
    pub(super) fn read_time(from: &[u8]) -> Option<Nanos> {
        Some(Nanos::from_be_bytes(from.get(LENGTH..TIMED_LENGTH)?.try_into().ok()?))
    }

    /// Number of rounds that this is ahead of a round; negative if behind.
    pub(super) fn rounds_ahead(self, round: u64) -> i64 {
        // A lost datagram never stalls a run, and does not shift the following ones.
        let ahead = self.round.wrapping_sub((round % u64::from(ROUNDS)) as u32) % ROUNDS;
        if ahead < ROUNDS / 2 { i64::from(ahead) } else { i64::from(ahead) - i64::from(ROUNDS) }
    }
}

/// What a datagram of unknown origin says of its position and time.
pub(crate) fn datagram_position(datagram: &[u8]) -> Option<(i64, Option<Nanos>)> {
    let header = DatagramHeader::read(datagram)?;
    Some((header.rounds_ahead(u64::from(header.round) + 1), DatagramHeader::read_time(datagram)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_ahead_or_behind_across_the_wrap() {
        let at = |round| DatagramHeader::new(1, round, 2, 3);
        assert_eq!(at(5).rounds_ahead(3), 2);
        assert_eq!(at(3).rounds_ahead(5), -2);
        assert_eq!(at(u64::from(ROUNDS) + 1).rounds_ahead(u64::from(ROUNDS) - 1), 2);
        let mut bytes = [0; LENGTH];
        at(77).write(&mut bytes);
        assert_eq!(DatagramHeader::read(&bytes), Some(at(77)));
        assert_eq!(DatagramHeader::read(&bytes[1..]), None);
        let mut timed = [0; TIMED_LENGTH];
        DatagramHeader::write_time(&mut timed, 9);
        DatagramHeader::write_time(&mut bytes, 9);
        assert_eq!((DatagramHeader::read_time(&timed), DatagramHeader::read_time(&bytes)), (Some(9), None));
    }
}

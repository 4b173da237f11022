//! Blocking wait of a thread that has a single strand.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::clock::{self, Nanos};
use crate::transport::{Interest, WaitCondition};

/// Waits for a condition, until a point in time at most, or until a signal.
#[allow(unsafe_code)]
pub(super) fn block_until_ready(wait: &WaitCondition, limit: Option<Nanos>) {
    let until = match (wait.until, limit) {
        (Some(until), Some(limit)) => Some(until.min(limit)),
        (until, limit) => until.or(limit),
    };
    let Some(fd) = wait.fd else {
        if let Some(until) = until {
            clock::sleep_until(until);
        }
        return;
    };
    // SAFETY: the descriptor belongs to a connection of the strand that waits here, and nobody else closes it.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let events = match wait.interest {
        Interest::Readable => PollFlags::IN,
        Interest::Writable => PollFlags::OUT,
        Interest::Both => PollFlags::IN | PollFlags::OUT,
    };
    let timeout = until.map(|until| {
        let left = until.saturating_sub(clock::now());
        Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as _ }
    });
    // A signal ends it early; the strand checks why.
    let _: rustix::io::Result<usize> = poll(&mut [PollFd::from_borrowed_fd(fd, events)], timeout.as_ref());
}

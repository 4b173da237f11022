//! The lines on stdout.

use std::{sync::LazyLock, time::Instant};

use serde_json::{Value, json};

use crate::perf::Counts;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Starts the clock of all times.
pub(crate) fn start_clock() {
    LazyLock::force(&START);
}

/// When the events of an iteration happened.
#[derive(Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) dial: Option<Instant>,
    pub(crate) connect: Option<Instant>,
    pub(crate) open: Option<Instant>,
    pub(crate) last: Option<Instant>,
}

pub(crate) fn print_listening(address: &str) {
    print(&json!({ "listening": address }));
}

pub(crate) fn print_negotiated(protocols: Value) {
    print(&json!({ "negotiated": protocols }));
}

/// A stream that the listener served.
pub(crate) fn print_served(counts: &Counts, error: Option<&str>) {
    print(&json!({ "received": counts.received, "sent": counts.sent, "error": error }));
}

/// What a transfer of a fixed time has moved so far.
pub(crate) fn print_progress(i: u32, counts: &Counts) {
    let at = START.elapsed().as_nanos() as f64 / 1e9;
    print(&json!({ "i": i, "at": at, "sent": counts.sent, "received": counts.received }));
}

/// An iteration of the dialer.
pub(crate) fn print_iteration(i: u32, counts: &Counts, times: Times, error: Option<&str>) {
    let seconds = |time: Option<Instant>| time.map(|time| time.duration_since(*START).as_nanos() as f64 / 1e9);
    print(&json!({
        "i": i,
        "sent": counts.sent,
        "received": counts.received,
        "t_dial": seconds(times.dial),
        "t_connect": seconds(times.connect),
        "t_open": seconds(times.open),
        "t_first": seconds(counts.first),
        "t_last": seconds(times.last),
        "error": error,
    }));
}

/// Prints one line; stdout flushes at its end.
fn print(line: &Value) {
    println!("{line}");
}

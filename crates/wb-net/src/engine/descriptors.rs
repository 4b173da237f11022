//! The limit on file descriptors: strands need many, and a process may raise its own limit.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of this process to its hard limit.
pub(super) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Ignored: the current limit may suffice.
    let _: rustix::io::Result<()> = setrlimit(Resource::Nofile, limit);
}

/// Formats an error, with a remedy where the process ran out of descriptors.
pub(super) fn describe_error(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE) => format!("{error}; raise the limit (`ulimit -n`) or use fewer strands"),
        _ => error.to_string(),
    }
}

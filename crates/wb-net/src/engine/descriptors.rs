//! Descriptors: strands need many, and a process may often have more than it is given at first.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Lets this process have as many as it may.
pub(super) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without, they may be enough all the same.
    let _: rustix::io::Result<()> = setrlimit(Resource::Nofile, limit);
}

/// What went wrong, and the way out where there are too few.
pub(super) fn describe_error(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE) => format!("{error}; raise the limit (`ulimit -n`) or have fewer strands"),
        _ => error.to_string(),
    }
}

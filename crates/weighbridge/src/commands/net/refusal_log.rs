//! The lines of a server's log on refused connections: one for each source and interval, however many there are.

use std::collections::HashMap;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use wb_model::pluralize;

/// Refused connections of one source are logged this often.
const INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of sources; beyond it, those that were logged long ago are forgotten.
const MAX_SOURCES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    sources: HashMap<IpAddr, Source>,
}

#[derive(Debug)]
struct Source {
    logged_at: Instant,
    /// Refused since then.
    unlogged: usize,
}

impl RefusalLog {
    /// The line for a refused connection, if its source has not been logged in this interval.
    pub(super) fn line(&mut self, from: SocketAddr, error: &impl Display) -> Option<String> {
        self.line_at(from, error, Instant::now())
    }

    fn line_at(&mut self, from: SocketAddr, error: &impl Display, now: Instant) -> Option<String> {
        if self.sources.len() >= MAX_SOURCES && !self.sources.contains_key(&from.ip()) {
            self.sources.retain(|_, source| now.duration_since(source.logged_at) < INTERVAL);
        }
        if self.sources.len() >= MAX_SOURCES {
            // A flood from many sources: the log says so by those that it has.
            return None;
        }
        let line = format!("{from}: refused: {error}");
        match self.sources.get_mut(&from.ip()) {
            None => {
                self.sources.insert(from.ip(), Source { logged_at: now, unlogged: 0 });
                Some(line)
            }
            Some(source) if now.duration_since(source.logged_at) < INTERVAL => {
                source.unlogged += 1;
                None
            }
            Some(source) => {
                let unlogged = std::mem::take(&mut source.unlogged);
                source.logged_at = now;
                Some(match unlogged {
                    0 => line,
                    count => {
                        format!("{line} (and {} since the last line)", pluralize(count, "more refused connection"))
                    }
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_is_logged_once_an_interval_with_a_count() {
        let (mut log, start) = (RefusalLog::default(), Instant::now());
        let mut line = |address: &str, seconds| {
            log.line_at(address.parse().unwrap(), &"no token", start + Duration::from_secs(seconds))
        };
        assert_eq!(line("192.0.2.1:1", 0).as_deref(), Some("192.0.2.1:1: refused: no token"));
        assert_eq!((line("192.0.2.1:2", 1), line("192.0.2.1:3", 9)), (None, None));
        assert!(line("192.0.2.2:1", 9).is_some());
        let expected = "192.0.2.1:4: refused: no token (and 2 more refused connections since the last line)";
        assert_eq!(line("192.0.2.1:4", 10).as_deref(), Some(expected));
    }

    #[test]
    fn a_flood_from_many_sources_needs_little_memory() {
        let (mut log, now) = (RefusalLog::default(), Instant::now());
        for number in 0..20_000_u32 {
            log.line_at(SocketAddr::new(std::net::Ipv4Addr::from_bits(number).into(), 1), &"no token", now);
        }
        assert_eq!(log.sources.len(), MAX_SOURCES);
    }
}

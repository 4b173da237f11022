//! Why a cell of a matrix failed, as a word that reports count by.

use std::fmt;

use wb_test::Failure;

const QUOTED_LINES: usize = 3;
/// Longest quoted line, in characters.
const QUOTED_LENGTH: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FailureKind {
    /// The handshake was not completed, for none of the other reasons.
    Handshake,
    Timeout,
    /// A process ended by itself.
    Crash,
    Truncated,
    /// The listener did not accept the connection.
    Refused,
    /// An endpoint does not support what the cell requires.
    Unsupported,
}

impl FailureKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Timeout => "timeout",
            Self::Crash => "crash",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::Unsupported => "unsupported",
        }
    }

    /// The kind of an iteration's failure, from what its dialer reports: whether the handshake was completed, and an error.
    pub(super) fn of_iteration(is_established: bool, error: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| error.to_lowercase().contains(word));
        match is_established {
            _ if has(&["timed out", "timeout", "deadline"]) => Self::Timeout,
            _ if has(&["unsupported", "not supported"]) => Self::Unsupported,
            false if has(&["refused", "unreachable"]) => Self::Refused,
            false => Self::Handshake,
            true => Self::Truncated,
        }
    }

    /// The failure of an attempt: what happened, and the last lines of the logs of both sides.
    pub(super) fn failure(self, what: impl fmt::Display, logs: &[(&str, &[u8])]) -> Failure {
        let mut status = format!("{self}: {what}");
        for (side, log) in logs {
            let quoted = last_lines(log);
            if !quoted.is_empty() {
                status.push_str(&format!("; {side}: {}", quoted.join(" | ")));
            }
        }
        Failure::crashed(status)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The last lines of a log that are not empty, shortened, without control characters.
fn last_lines(log: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(log);
    let lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(QUOTED_LINES).collect();
    let clean = |line: &&str| line.trim().chars().take(QUOTED_LENGTH).flat_map(char::escape_debug).collect::<String>();
    lines.iter().rev().map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_kind_and_quotes_the_logs() {
        let failure = FailureKind::Crash
            .failure("exit status 2", &[("dialer", b"one\ntwo\n\nthree\nfour\x1b[m\n"), ("listener", b"")]);
        let text = failure.to_string();
        assert_eq!(text, r"crash: exit status 2; dialer: two | three | four\u{1b}[m");
    }

    #[test]
    fn the_kind_of_an_iteration_follows_its_error() {
        for (is_connected, error, kind) in [
            (false, "connection refused", FailureKind::Refused),
            (false, "no mutual protocol", FailureKind::Handshake),
            (true, "stream reset", FailureKind::Truncated),
            (true, "i/o timeout", FailureKind::Timeout),
            (false, "muxer not supported", FailureKind::Unsupported),
        ] {
            assert_eq!(FailureKind::of_iteration(is_connected, error), kind, "{error}");
        }
    }
}

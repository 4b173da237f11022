//! Why an agent did not fulfil a request.

use serde::{Deserialize, Serialize};

/// Why an agent did not fulfil a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Fault {
    /// The program was not found on the search path, or at its own path.
    #[error("no such program: `{program}`{}", searched(path))]
    ProgramNotFound {
        /// Name or path of the program.
        program: String,
        /// Search path; none if the program was given by path.
        path: Option<String>,
    },
    /// The process could not be started as requested.
    #[error("cannot start `{program}`: {reason}")]
    SpawnFailed {
        program: String,
        /// The step that failed, and the system's error.
        reason: String,
    },
    /// An operation on a file or folder failed.
    #[error("`{path}`: {why}")]
    File {
        path: String,
        /// The system's error.
        why: String,
        /// Whether the file does not exist.
        missing: bool,
    },
    #[error("process {pid} survived SIGKILL: it hangs inside the kernel")]
    Unkillable { pid: u32 },
    /// An id that does not exist, or no longer.
    #[error("no such {noun}: {id}")]
    NoSuchId {
        /// Noun for the kind of object.
        noun: String,
        id: u32,
    },
    #[error("cannot change system settings: the agent runs without root privileges")]
    NotRoot,
    /// The agent refuses the request.
    #[error("{why}")]
    Refused {
        /// The request and the reason.
        why: String,
    },
}

fn searched(path: &Option<String>) -> String {
    path.as_ref().map(|path| format!(" on PATH `{path}`")).unwrap_or_default()
}

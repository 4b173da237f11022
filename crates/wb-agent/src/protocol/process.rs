//! Processes on a worker: what to start, how they ended, what they wrote.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos, Placement, Quantity, Sha256};
use wb_sys::process::{EffectivePlacement, ResourceUsage};

/// Ids of a started process.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProcessHandle {
    pub id: u32,
    /// Process id on the worker.
    pub pid: u32,
}

/// Report about a process that has exited. Times are CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExitReport {
    /// Why it ended.
    pub exit_reason: ExitReason,
    /// Time right before exec, when it is in its cgroup, has its placement and, if it was suspended, was released.
    pub started_ns: u64,
    /// Time of its exit.
    pub ended_ns: u64,
    pub usage: ResourceUsage,
    /// Names of its descendants that were still running, sorted; known only where it had a cgroup of its own.
    #[serde(default)]
    pub outlived_by: Vec<String>,
    /// Result of capturing its standard output.
    pub stdout: CapturedOutput,
    /// When its standard output arrived, if the command requested this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<Arrival>,
    #[serde(flatten)]
    pub placement: PlacementReport,
}

/// How many bytes of a stream had arrived at a time of the worker's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// Number of bytes.
    pub bytes: u64,
    /// The time, in nanoseconds.
    pub at_ns: u64,
}

/// How to capture the standard output of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capture {
    /// Keep all of it, up to the limit of the command.
    #[default]
    Keep,
    /// Compute its length and SHA-256 as it arrives, and keep the last 16 KiB or more, which come with the exit report.
    /// Its length has no limit.
    Hash,
    /// Redirect it to `/dev/null`.
    Discard,
}

/// Result of capturing the standard output of a process that has exited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum CapturedOutput {
    /// It was kept and can be fetched.
    Kept,
    Hashed(OutputDigest),
    Discarded,
}

/// Length and hash of everything a process wrote to a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputDigest {
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 hash.
    pub sha256: Sha256,
}

impl OutputDigest {
    /// Computes the digest of a byte slice.
    pub fn digest(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: Sha256::digest(bytes) }
    }
}

/// Effective placement of a process and its descendants.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PlacementReport {
    pub effective: EffectivePlacement,
    /// Later violations of the requested placement by it or a descendant: one sentence each.
    pub escapes: BTreeSet<String>,
}

/// Description of a process to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Command {
    /// The program (searched for on `PATH` if it contains no slash) and its arguments.
    pub argv: Vec<String>,
    /// Environment variables to add or override. The base environment is `PATH` (behind the group's programs) and `HOME`
    /// of the agent, `LANG=C`, `LC_ALL=C`, `TMPDIR` (the group's folder) and `WEIGHBRIDGE_GROUP`, then the inherited
    /// variables and those of the group; of two values, the last one is used.
    pub env: Vec<(String, String)>,
    /// Variables to copy from the agent's environment, if set there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherit: Vec<String>,
    /// Working directory; the group's folder by default.
    pub cwd: Option<String>,
    /// Folder of the existing cgroup (version 2) to run in; by default a new one inside that of the group, if one can be
    /// made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Contents of standard input; empty means immediate end of file.
    #[serde(skip)]
    pub stdin: Vec<u8>,
    /// CPUs, memory nodes, huge pages and address randomisation.
    pub placement: Placement,
    /// How to capture its standard output.
    pub stdout: Capture,
    /// Maximum size of each stream that is kept.
    pub output_limit: Bytes,
    /// What happens if a stream that is kept exceeds the limit.
    #[serde(default)]
    pub overflow: Overflow,
    /// Whether to report when its standard output arrived, unless it is discarded; for a long one, at fewer points.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub times_output: bool,
}

/// What happens if a process writes more than is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// It is killed: no figure can be read from a part of its output.
    #[default]
    Kill,
    /// It goes on, and the middle of its output is replaced by a line that says how much was cut.
    CutMiddle,
}

impl Command {
    /// Creates a command from its arguments, the program first.
    pub fn new<A: Into<String>>(argv: impl IntoIterator<Item = A>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            inherit: Vec::new(),
            cwd: None,
            cgroup: None,
            stdin: Vec::new(),
            placement: Placement::default(),
            stdout: Capture::Keep,
            output_limit: Bytes(64 << 20),
            overflow: Overflow::Kill,
            times_output: false,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.argv.push(argument.into());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Copies environment variables from the agent.
    pub fn inherit<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.inherit.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory.
    pub fn cwd(mut self, folder: impl Into<String>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Sets the cgroup of version 2 to run in, by its folder.
    pub fn cgroup(mut self, folder: impl Into<String>) -> Self {
        self.cgroup = Some(folder.into());
        self
    }

    /// Sets the contents of standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets the placement.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets how standard output is captured.
    pub fn stdout(mut self, capture: Capture) -> Self {
        self.stdout = capture;
        self
    }

    /// Keeps the beginning and the end of each stream that exceeds the limit, instead of killing the process.
    pub fn cut_output(mut self) -> Self {
        self.overflow = Overflow::CutMiddle;
        self
    }

    /// Requests that it is reported when its standard output arrived.
    pub fn times_output(mut self) -> Self {
        self.times_output = true;
        self
    }

    /// Sets the maximum size of each kept stream.
    pub fn output_limit(mut self, limit: Bytes) -> Self {
        self.output_limit = limit;
        self
    }
}

/// An output stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Why a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum ExitReason {
    /// It exited.
    Exited {
        /// The exit status.
        status: i32,
    },
    /// It was killed by a signal.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// It was terminated at its time limit: SIGTERM first, then SIGKILL.
    TimedOut {
        /// The time limit.
        limit: Nanos,
    },
    /// It was killed because it exceeded the output limit.
    TooMuchOutput {
        /// The stream.
        stream: OutputStream,
        /// The output limit.
        limit: Bytes,
    },
}

impl ExitReason {
    /// Whether it exited with status 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited { status: 0 }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { status } => write!(f, "exit status {status}"),
            Self::Signalled { signal } => write!(f, "killed by signal {signal}"),
            Self::TimedOut { limit } => write!(f, "timeout after {limit}"),
            Self::TooMuchOutput { stream, limit } => {
                let stream = match stream {
                    OutputStream::Stdout => "standard output",
                    OutputStream::Stderr => "standard error",
                };
                let limit = Quantity { value: limit.0 as f64, unit: "B" };
                write!(f, "killed for writing more than {limit} to {stream}")
            }
        }
    }
}

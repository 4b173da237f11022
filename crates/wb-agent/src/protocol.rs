//! Message types of the agent protocol: calls from the controller and responses from the agent, matched by id, in any
//! order. Each side sends [`Hello`] first; the agent then accepts or refuses the controller's session configuration.

use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos, Placement, ProcessEnvironment, Sha256};
use wb_sys::process::{EffectivePlacement, ResourceUsage};

use crate::session::{Controller, SessionConfig};
use crate::worker::ExitReason;

/// Protocol version: covers every type in this module. Different versions are incompatible.
pub const VERSION: u32 = 7;

/// Name under which a group can replace the weighbridge program itself.
pub const OWN_PROGRAM: &str = "weighbridge";

/// First message of each side: protocol version, release and session configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The sender's [`VERSION`].
    pub protocol: u32,
    /// The sender's release.
    pub release: String,
    /// Path of the sender's program.
    pub program: String,
    /// Session configuration; only the controller's is used.
    #[serde(default)]
    pub terms: SessionConfig,
}

impl Hello {
    /// The hello of this program with a session configuration.
    pub fn new(terms: SessionConfig) -> Self {
        Self { protocol: VERSION, release: env!("CARGO_PKG_VERSION").to_owned(), program: own_program(), terms }
    }
}

/// Returns the path of this program.
pub(crate) fn own_program() -> String {
    std::env::current_exe().unwrap_or_default().display().to_string()
}

/// A request with the id of its response.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the caller, unique on this pipe.
    pub id: u64,
    /// The request.
    pub request: Request,
}

/// The response to the call with the same id.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// Id of the call.
    pub id: u64,
    /// The value documented at the [`Request`], or the fault.
    pub result: Result<serde_json::Value, Fault>,
}

/// A request to an agent. The response is empty unless documented otherwise.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Request {
    /// Keepalive: resets the idle timeouts of both sides.
    Ping,
    /// Reads the clocks: returns a [`crate::clock::Reading`].
    Clock,
    /// Reads the machine's facts: returns [`wb_model::Facts`].
    Facts,
    /// Reads the machine's environment: the payload is a [`wb_sys::Environment`] in JSON.
    Environment {
        /// Programs whose versions to record, with the arguments that print the version.
        programs: wb_sys::environment::tools::VersionQueries,
    },
    /// Diagnoses sources of noise: the payload is a [`wb_knobs::doctor::Diagnosis`] in JSON.
    Doctor,
    /// Searches the agent's `PATH` for a program: returns `Option<Tool>`.
    Which {
        /// Name or path of the program.
        program: String,
    },
    /// Creates a private folder: returns a [`Place`].
    Scratch {
        /// Parent folder; the agent's own by default.
        base: Option<String>,
    },
    /// Removes a private folder.
    RemoveScratch {
        /// Id of the folder.
        id: u32,
    },
    /// Writes the payload into a file.
    Put {
        /// The file.
        path: String,
        /// Offset in bytes; at 0 the file is created or truncated.
        offset: u64,
        /// Permissions of a new file.
        mode: u32,
    },
    /// Reads a chunk of a file into the payload: returns the file's length, `u64`.
    Get {
        /// The file.
        path: String,
        /// Offset in bytes.
        offset: u64,
    },
    /// Lists a folder: the payload is a `Vec<FileEntry>` in JSON.
    List {
        /// The folder.
        path: String,
    },
    /// Removes a file, or a folder inside a private one with its contents.
    Remove {
        /// The file or folder.
        path: String,
    },
    /// Creates a process group: returns the [`Place`] of its private folder.
    Group {
        /// Environment variables and program replacements of all its processes.
        overrides: ProcessEnvironment,
    },
    /// Checks, without writing, whether knobs (`NAME` or `NAME@TARGET`) can be set to these values: returns
    /// `Vec<(String, String)>`, key and reason of each that cannot.
    CheckKnobs {
        /// Values by knob.
        knobs: std::collections::BTreeMap<String, String>,
    },
    /// Checks, without writing, whether an undo step can be applied: returns the reason against it, `Option<String>`.
    Refusal {
        /// The step.
        step: Box<wb_sys::undo::Step>,
    },
    /// Sets knobs (`NAME` or `NAME@TARGET`) until the group is torn down: returns a list of [`wb_knobs::tune::Tuned`].
    Tune {
        /// The group.
        group: u32,
        /// Values by knob.
        knobs: std::collections::BTreeMap<String, String>,
        /// Whether a knob that cannot be set is a fault; otherwise it is only reported in the result.
        strict: bool,
    },
    /// Reports the recovery done at this agent's start of changes that killed agents left: returns a
    /// [`crate::LeftBehind`].
    RecoveryReport,
    /// Applies an undo step until the group is torn down: returns whether anything had to be changed, `bool`.
    ApplyStep {
        /// The group.
        group: u32,
        /// The step.
        step: Box<wb_sys::undo::Step>,
        /// Target state; none if the target must not exist.
        state: Option<String>,
    },
    /// Kills the processes of a group and removes it: returns a [`crate::Teardown`].
    Teardown {
        /// The group.
        group: u32,
    },
    /// Starts a process: returns a [`Spawned`]. The payload is its standard input.
    Spawn {
        /// The group to start it in.
        group: u32,
        /// The command.
        command: Command,
        /// Whether to hold it until [`Request::Release`].
        hold: bool,
    },
    /// Lets a held process start.
    Release {
        /// The process.
        process: u32,
    },
    /// Lets a held process start at a given time: returns the actual start time by the same clock, `u64`.
    ReleaseAt {
        /// The process.
        process: u32,
        /// Start time by the machine's CLOCK_MONOTONIC, in nanoseconds.
        at_ns: u64,
    },
    /// Waits for a process to exit: returns an [`Ended`]. The payload is the tail of standard output if that is hashed.
    Wait {
        /// The process.
        process: u32,
        /// Time from now after which the process is terminated.
        limit: Option<Nanos>,
    },
    /// Inspects the effective placement of a process and its descendants now: returns a [`Ran`].
    Inspect {
        /// The process.
        process: u32,
    },
    /// Sends a signal to the process and its process group.
    Signal {
        /// The process.
        process: u32,
        /// The signal's number.
        signal: i32,
    },
    /// Reads the output of a process into the payload: returns whether more may come, `bool`.
    Output {
        /// The process.
        process: u32,
        /// The stream.
        stream: Stream,
        /// Offset in bytes.
        offset: u64,
        /// Whether to wait until there is output or the process has exited.
        follow: bool,
    },
    /// Discards a process that has exited, and its output.
    Forget {
        /// The process.
        process: u32,
    },
    /// Starts recording telemetry: returns the recording's id, `u32`.
    StartRecording {
        /// The group whose processes are the workload.
        group: u32,
        /// Time between two readings.
        interval: Nanos,
    },
    /// Ends a recording: returns the other runs that were active meanwhile, a list of [`crate::Holder`]; the payload is
    /// a [`wb_sys::telemetry::Telemetry`] in JSON.
    FinishRecording {
        /// The recording.
        recording: u32,
    },
    /// Announces a run to the other agents on the machine until this agent exits: returns an [`crate::Announced`].
    Announce {
        /// The run's controller.
        controller: Controller,
    },
    /// Kills all processes and removes all files; the agent exits after the response.
    Close,
}

/// A folder created by the agent, and its id.
#[derive(Debug, Serialize, Deserialize)]
pub struct FolderHandle {
    /// The id.
    pub id: u32,
    /// The folder.
    pub path: String,
    /// The cgroup of a group, if one could be created.
    #[serde(default)]
    pub cgroup: Option<String>,
}

/// Ids of a started process.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProcessHandle {
    /// Id on this pipe.
    pub id: u32,
    /// Process id on the worker.
    pub pid: u32,
}

/// Report about a process that has exited. Times are CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExitReport {
    /// Why it ended.
    pub exit_reason: ExitReason,
    /// Time right before exec: in its cgroup, placed and released.
    pub started_ns: u64,
    /// Time of its exit.
    pub ended_ns: u64,
    /// Resources it used.
    pub usage: ResourceUsage,
    /// Result of capturing its standard output.
    pub stdout: CapturedOutput,
    /// Its effective placement.
    #[serde(flatten)]
    pub placement: PlacementReport,
}

/// How to capture the standard output of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capture {
    /// Keep all of it, up to the limit of the command.
    #[default]
    Keep,
    /// Compute its length and SHA-256 as it arrives; keep only its tail.
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
    /// It was hashed.
    Hashed(OutputDigest),
    /// It was discarded.
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
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: Sha256::of(bytes) }
    }
}

/// Effective placement of a process and its descendants.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PlacementReport {
    /// Placement right after exec.
    pub effective: EffectivePlacement,
    /// Later violations of the requested placement by it or a descendant: one sentence each.
    pub escapes: std::collections::BTreeSet<String>,
}

/// Description of a process to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Command {
    /// The program (searched for on `PATH` if it contains no slash) and its arguments.
    pub argv: Vec<String>,
    /// Environment variables to add or override. The base environment is `PATH` and `HOME` of the agent, `LANG=C`,
    /// `LC_ALL=C`, `TMPDIR` (the group's folder) and the inherited variables, nothing else.
    pub env: Vec<(String, String)>,
    /// Variables to copy from the agent's environment, if set there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherit: Vec<String>,
    /// Working directory; the group's folder by default.
    pub cwd: Option<String>,
    /// Contents of standard input; empty means immediate end of file.
    #[serde(skip)]
    pub stdin: Vec<u8>,
    /// CPUs, memory nodes, huge pages and address randomisation.
    pub placement: Placement,
    /// How to capture its standard output.
    pub stdout: Capture,
    /// Maximum size of each stream that is kept; a process that writes more is killed.
    pub output_limit: Bytes,
}

impl Command {
    /// Creates a command from its arguments, the program first.
    pub fn new<A: Into<String>>(argv: impl IntoIterator<Item = A>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            inherit: Vec::new(),
            cwd: None,
            stdin: Vec::new(),
            placement: Placement::default(),
            stdout: Capture::Keep,
            output_limit: Bytes(64 << 20),
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

    /// Sets the maximum size of each kept stream.
    pub fn output_limit(mut self, limit: Bytes) -> Self {
        self.output_limit = limit;
        self
    }
}

/// An output stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: EntryKind,
    /// Its size in bytes.
    pub size: u64,
}

/// Type of a folder entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Anything else: a link, a device, a socket.
    Other,
}

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
        /// The program.
        program: String,
        /// The step that failed, and the system's error.
        reason: String,
    },
    /// An operation on a file or folder failed.
    #[error("`{path}`: {why}")]
    File {
        /// Its path.
        path: String,
        /// The system's error.
        why: String,
        /// Whether the file does not exist.
        missing: bool,
    },
    /// A process survived SIGKILL: it hangs inside the kernel.
    #[error("process {pid} survived SIGKILL: it hangs inside the kernel")]
    Unkillable {
        /// The process.
        pid: u32,
    },
    /// An id that does not exist, or no longer.
    #[error("no such {noun}: {id}")]
    NoSuchId {
        /// Noun for the kind of object.
        noun: String,
        /// The id.
        id: u32,
    },
    /// Changing system settings requires root privileges.
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

//! What is said on the pipe: calls from the controller, answers from the agent, each with an id, in any
//! order. Both sides say [`Hello`] first, and the agent then what it says to the controller's terms.

use serde::{Deserialize, Serialize};
use wb_model::{Bytes, Nanos, Placement, ProcessEnvironment, Sha256};
use wb_sys::process::{EffectivePlacement, ResourceUsage};

use crate::session::{Controller, SessionConfig};
use crate::worker::ExitReason;

/// The version of everything in this module. Two versions do not talk to each other.
pub const VERSION: u32 = 7;

/// The name under which this program itself can be replaced in a group.
pub const OWN_PROGRAM: &str = "weighbridge";

/// The first message of each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Its [`VERSION`].
    pub protocol: u32,
    /// The release of the program that speaks.
    pub release: String,
    /// Where the program lies.
    pub program: String,
    /// A controller's terms.
    #[serde(default)]
    pub terms: SessionConfig,
}

impl Hello {
    /// Of this program, on these terms.
    pub fn new(terms: SessionConfig) -> Self {
        Self { protocol: VERSION, release: env!("CARGO_PKG_VERSION").to_owned(), program: own_program(), terms }
    }
}

/// Where this program lies.
pub(crate) fn own_program() -> String {
    std::env::current_exe().unwrap_or_default().display().to_string()
}

/// A request, and the id that its answer will have.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the caller, unique on this pipe.
    pub id: u64,
    /// What is asked.
    pub request: Request,
}

/// The answer to the call of the same id.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// The call's.
    pub id: u64,
    /// What the request's documentation says, or why not.
    pub result: Result<serde_json::Value, Fault>,
}

/// What an agent can be asked. Where nothing is said, the answer is empty.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Request {
    /// A word, so that the agent hears something, and its controller something of it.
    Ping,
    /// What its clocks say: a [`crate::clock::Reading`].
    Clock,
    /// The machine's facts: [`wb_model::Facts`].
    Facts,
    /// The machine's world: the payload is a [`wb_sys::Environment`] in JSON.
    Environment {
        /// The programs whose versions count, and with which arguments they tell it.
        programs: wb_sys::environment::tools::VersionQueries,
    },
    /// What makes the machine noisy: the payload is a [`wb_knobs::doctor::Diagnosis`] in JSON.
    Doctor,
    /// Where a program lies, by the agent's `PATH`: `Option<Tool>`.
    Which {
        /// Its name or path.
        program: String,
    },
    /// A private folder: a [`Place`].
    Scratch {
        /// The folder to make it in; the agent's own without.
        base: Option<String>,
    },
    /// Removes a private folder.
    RemoveScratch {
        /// The folder's.
        id: u32,
    },
    /// Writes the payload into a file.
    Put {
        /// The file.
        path: String,
        /// Where to; at zero the file is made, or emptied.
        offset: u64,
        /// Its permissions when it is made.
        mode: u32,
    },
    /// Reads a file into the payload: its length, `u64`.
    Get {
        /// The file.
        path: String,
        /// Where from.
        offset: u64,
    },
    /// What is in a folder: the payload is a `Vec<FileEntry>` in JSON.
    List {
        /// The folder.
        path: String,
    },
    /// Removes a file, or a folder and all in it when it lies in a private one.
    Remove {
        /// What.
        path: String,
    },
    /// A new group: a [`Place`], of its private folder.
    Group {
        /// What all its processes find.
        overrides: ProcessEnvironment,
    },
    /// Why knobs, by name or `NAME@TARGET`, cannot be set to these values, from reading alone: `Vec<(String, String)>`, a
    /// key and a reason each.
    CheckKnobs {
        /// Their values.
        knobs: std::collections::BTreeMap<String, String>,
    },
    /// Why a thing cannot be changed, from reading alone: an `Option<String>`.
    Refusal {
        /// The thing.
        step: Box<wb_sys::undo::Step>,
    },
    /// Sets knobs, by name or `NAME@TARGET`, until the group is torn down: a list of [`wb_knobs::tune::Tuned`].
    Tune {
        /// The group.
        group: u32,
        /// Their values.
        knobs: std::collections::BTreeMap<String, String>,
        /// Whether one that cannot be set is a fault, and not only told.
        strict: bool,
    },
    /// What agents that were killed had changed, and what became of it when this one started: a [`crate::LeftBehind`].
    RecoveryReport,
    /// Makes one thing so until the group is torn down: whether anything had to be changed, `bool`.
    ApplyStep {
        /// The group.
        group: u32,
        /// The thing.
        step: Box<wb_sys::undo::Step>,
        /// What it is to be; none for one that is not to be there.
        state: Option<String>,
    },
    /// Ends and removes a group: a [`crate::Teardown`].
    Teardown {
        /// The group.
        group: u32,
    },
    /// Starts a process: a [`Spawned`]. The payload is its standard input.
    Spawn {
        /// The group it belongs to.
        group: u32,
        /// What and how.
        command: Command,
        /// Whether it waits for [`Request::Release`].
        hold: bool,
    },
    /// Lets a held process start.
    Release {
        /// The process.
        process: u32,
    },
    /// The same at a time: when it really was, by the same clock, `u64`.
    ReleaseAt {
        /// The process.
        process: u32,
        /// The time, by the machine's CLOCK_MONOTONIC in nanoseconds.
        at_ns: u64,
    },
    /// The end of a process, when it comes: an [`Ended`]. The payload is the end of standard output where that is hashed.
    Wait {
        /// The process.
        process: u32,
        /// After which it is ended, counted from now.
        limit: Option<Nanos>,
    },
    /// How a process and those that it started really run, now: a [`Ran`].
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
    /// What a process has written: the payload, and whether more may come, `bool`.
    Output {
        /// The process.
        process: u32,
        /// Which stream.
        stream: Stream,
        /// From where.
        offset: u64,
        /// Whether to wait until there is something, or the process has ended.
        follow: bool,
    },
    /// Forgets an ended process and its output.
    Forget {
        /// The process.
        process: u32,
    },
    /// Starts to record telemetry: the recording's id, `u32`.
    StartRecording {
        /// The group whose processes are the workload.
        group: u32,
        /// The time between two readings.
        interval: Nanos,
    },
    /// Ends a recording: the other runs that were under way meanwhile, a list of [`crate::Holder`]; the payload is a
    /// [`wb_sys::telemetry::Telemetry`] in JSON.
    FinishRecording {
        /// The recording.
        recording: u32,
    },
    /// Announces a run to other agents of the machine, until this agent ends: an [`crate::Announced`].
    Announce {
        /// The run's controller.
        controller: Controller,
    },
    /// Ends and removes everything; the agent ends after its answer.
    Close,
}

/// A folder of the agent's, and its id.
#[derive(Debug, Serialize, Deserialize)]
pub struct FolderHandle {
    /// The id.
    pub id: u32,
    /// The folder.
    pub path: String,
    /// Of a group: the cgroup, where there is one.
    #[serde(default)]
    pub cgroup: Option<String>,
}

/// A process that was started.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProcessHandle {
    /// Its id on this pipe.
    pub id: u32,
    /// The system's id of it.
    pub pid: u32,
}

/// A process that has ended. Times by CLOCK_MONOTONIC, in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExitReport {
    /// How.
    pub ending: ExitReason,
    /// When nothing was left between it and its program: in its cgroup, placed, released.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// What it used.
    pub usage: ResourceUsage,
    /// What became of its standard output.
    pub stdout: CapturedOutput,
    /// How it really ran.
    #[serde(flatten)]
    pub placement: PlacementReport,
}

/// What becomes of the standard output of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capture {
    /// It is kept whole, up to the limit of the command.
    #[default]
    Keep,
    /// Its length and its SHA-256 are taken as it comes; of its bytes only the last are kept.
    Hash,
    /// It goes to `/dev/null`.
    Discard,
}

/// What became of the standard output of a process that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum CapturedOutput {
    /// It can be fetched.
    Kept,
    /// It was hashed.
    Hashed(OutputDigest),
    /// Nothing is known of it.
    Discarded,
}

/// Length and hash of all that a process wrote to a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputDigest {
    /// The length in bytes.
    pub bytes: u64,
    /// The hash.
    pub sha256: Sha256,
}

impl OutputDigest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: Sha256::of(bytes) }
    }
}

/// How a process really ran, and those that it started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PlacementReport {
    /// Right after it had become its program.
    pub effective: EffectivePlacement,
    /// Where it, or one that it started, was seen later outside of what was asked: a sentence each.
    pub escapes: std::collections::BTreeSet<String>,
}

/// A process to be started, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Command {
    /// The program (searched for on `PATH` when it has no slash) and its arguments.
    pub argv: Vec<String>,
    /// More environment variables, or others of the same name. Every process has `PATH` and `HOME` as
    /// the agent has them, `LANG=C`, `LC_ALL=C`, `TMPDIR` (its group's folder), what it inherits, and nothing else.
    pub env: Vec<(String, String)>,
    /// Variables that it has as the agent has them, those of them that the agent has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherit: Vec<String>,
    /// The folder that it starts in; its group's without.
    pub cwd: Option<String>,
    /// Its standard input; at once at its end when empty.
    #[serde(skip)]
    pub stdin: Vec<u8>,
    /// Where and how it runs.
    pub placement: Placement,
    /// What becomes of its standard output.
    pub stdout: Capture,
    /// What it may write to each stream that is kept before it is ended.
    pub output_limit: Bytes,
}

impl Command {
    /// A command with nothing but its arguments, the program first.
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

    /// With one more argument.
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.argv.push(argument.into());
        self
    }

    /// With one more environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// With these environment variables as the agent has them.
    pub fn inherit<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.inherit.extend(names.into_iter().map(Into::into));
        self
    }

    /// In this folder.
    pub fn cwd(mut self, folder: impl Into<String>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// With this on its standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Placed so.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// With its standard output kept, hashed or discarded.
    pub fn stdout(mut self, capture: Capture) -> Self {
        self.stdout = capture;
        self
    }

    /// With another limit of what it may write.
    pub fn output_limit(mut self, limit: Bytes) -> Self {
        self.output_limit = limit;
        self
    }
}

/// One of the streams that a process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes.
    pub size: u64,
}

/// What a folder can hold.
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

/// Why an agent did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Fault {
    /// The program is nowhere on the path, or not at its path.
    #[error("there is no program `{program}`{}", searched(path))]
    ProgramNotFound {
        /// What was asked for.
        program: String,
        /// Where it was searched for; none for a path.
        path: Option<String>,
    },
    /// The process could not be started as asked.
    #[error("`{program}` was not started: {why}")]
    SpawnFailed {
        /// The program.
        program: String,
        /// What could not be done, and what the system said.
        why: String,
    },
    /// A file or folder.
    #[error("`{path}`: {why}")]
    File {
        /// Its path.
        path: String,
        /// What the system said.
        why: String,
        /// Whether it is simply not there.
        missing: bool,
    },
    /// A process that does not end, not even by SIGKILL: it hangs inside the kernel.
    #[error("process {pid} does not end, not even when killed: it hangs inside the kernel")]
    Unkillable {
        /// The process.
        pid: u32,
    },
    /// An id of something that is not, or no longer, there.
    #[error("there is no {what} {id} any more")]
    NoSuchId {
        /// What kind of thing.
        what: String,
        /// Its id.
        id: u32,
    },
    /// Something of the machine was to be changed, and only root may.
    #[error("changing the machine takes root's rights, and the agent has a user's")]
    NotRoot,
    /// Something that an agent never does.
    #[error("{why}")]
    Refused {
        /// What, and why not.
        why: String,
    },
}

fn searched(path: &Option<String>) -> String {
    path.as_ref().map(|path| format!(" on the path `{path}`")).unwrap_or_default()
}

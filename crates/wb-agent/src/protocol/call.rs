//! The calls that an agent answers: a type for each, with the type of its reply.

use serde::{Deserialize, Serialize};
use wb_knobs::doctor::Diagnosis;
use wb_knobs::tune::{KnobRefusal, KnobSetting};
use wb_model::{Nanos, ProcessEnvironment};
use wb_sys::environment::tools::VersionQueries;
use wb_sys::telemetry::Telemetry;
use wb_sys::undo::ManagedResource;

use super::{
    ActiveRuns, AgentSession, CleanupCommand, ClockReading, Command, Controller, EncodedReply, ExitReport, Fault,
    FileEntry, GroupHandle, InstalledProgram, OutputStream, PlacementReport, ProcessHandle, RecoveryReport, Reply,
    ScratchHandle, TeardownReport, TuneReport, WithBytes,
};

/// A call to an agent.
pub trait Call: Into<Request> {
    type Reply: Reply;

    /// Answers the call.
    ///
    /// # Errors
    /// If the reply cannot be encoded.
    fn reply(&self, reply: Self::Reply) -> Result<EncodedReply, Fault> {
        reply.encode().map_err(|error| Fault::Refused { why: error.to_string() })
    }

    /// Decodes the reply to this type of call.
    ///
    /// # Errors
    /// If it is of another type.
    fn decode_reply(reply: EncodedReply) -> serde_json::Result<Self::Reply> {
        Self::Reply::decode(reply)
    }
}

/// Defines the calls, and [`Request`] with a variant for each.
macro_rules! calls {
    ($(
        $(#[$attribute:meta])*
        $name:ident { $($(#[$field_attribute:meta])* $field:ident: $type:ty,)* } -> $reply:ty;
    )+) => {
        $(
            #[derive(Debug, Serialize, Deserialize)]
            #[serde(rename_all = "kebab-case")]
            $(#[$attribute])*
            pub struct $name { $($(#[$field_attribute])* pub $field: $type,)* }

            impl Call for $name {
                type Reply = $reply;
            }

            impl From<$name> for Request {
                fn from(call: $name) -> Self {
                    Self::$name(call)
                }
            }
        )+

        /// A call of any type, as it is sent.
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Request { $($(#[$attribute])* $name($name),)+ }
    };
}

calls! {
    /// Keepalive: resets the idle timeouts of both sides.
    Ping {} -> ();
    /// Reads the clocks.
    Clock {} -> ClockReading;
    /// Reads the machine's facts.
    Facts {} -> wb_model::Facts;
    /// Reads the machine's environment.
    Environment {
        /// Programs whose versions to record, with the arguments that print the version.
        programs: VersionQueries,
    } -> wb_sys::Environment;
    /// Diagnoses sources of noise.
    Doctor {} -> Diagnosis;
    /// Searches the agent's `PATH` for a program; none if it is not installed.
    Which {
        /// Name or path of the program.
        program: String,
    } -> Option<InstalledProgram>;
    /// Creates a scratch folder.
    Scratch {
        /// Parent folder; the agent's own by default.
        base: Option<String>,
    } -> ScratchHandle;
    /// Removes a scratch folder.
    RemoveScratch {
        /// Id of the folder.
        id: u32,
    } -> ();
    /// Writes a part of a file.
    Put {
        /// The file.
        path: String,
        /// Offset in bytes; at 0 the file is created or truncated.
        offset: u64,
        /// Permissions of a new file.
        mode: u32,
        /// The part.
        #[serde(skip)]
        bytes: Vec<u8>,
    } -> ();
    /// Reads a part of a file: its bytes, with the length of the whole file in bytes. A part that is shorter than
    /// [`CHUNK`](super::CHUNK) is the last one.
    Get {
        /// The file.
        path: String,
        /// Offset in bytes.
        offset: u64,
    } -> WithBytes<u64>;
    /// Finds a port that no TCP or UDP socket is bound to.
    FreePort {
        /// First port of the range.
        first: u16,
        /// Last port of the range.
        last: u16,
    } -> u16;
    /// Lists a folder.
    List {
        /// The folder.
        path: String,
    } -> Vec<FileEntry>;
    /// Removes a file, or a folder inside a scratch folder with its contents.
    Remove {
        /// The file or folder.
        path: String,
    } -> ();
    /// Creates a group, and its scratch folder.
    Group {
        /// Environment variables and program replacements of all its processes.
        overrides: ProcessEnvironment,
    } -> GroupHandle;
    /// Checks, without writing, whether knobs can be set: each setting that cannot be made, with the reason.
    CheckKnobs {
        /// The settings.
        knobs: Vec<KnobSetting>,
    } -> Vec<(KnobSetting, KnobRefusal)>;
    /// Checks, without writing, whether a resource can be changed: the reason against it.
    Refusal {
        /// The resource.
        resource: Box<ManagedResource>,
    } -> Option<String>;
    /// Sets knobs until the group is torn down.
    Tune {
        /// The group.
        group: u32,
        /// The settings; of several for one target, the last is made.
        knobs: Vec<KnobSetting>,
        /// Whether a knob that cannot be set is a fault; otherwise it is only reported in the result.
        strict: bool,
    } -> TuneReport;
    /// Reports the recovery done at this agent's start of changes that killed agents left.
    Recovery {} -> RecoveryReport;
    /// Makes a reversible change, which is reverted when the group is torn down: whether anything had to be changed.
    ApplyChange {
        /// The group.
        group: u32,
        /// What is changed.
        resource: Box<ManagedResource>,
        /// Its new state; none if it must not exist.
        state: Option<String>,
    } -> bool;
    /// Sets the commands that undo what a group's processes do outside of its folder: they run when the group is torn
    /// down or, if this agent is killed, when the next one of its user starts.
    SetCleanup {
        /// The group.
        group: u32,
        /// The commands; they replace those set before.
        commands: Vec<CleanupCommand>,
    } -> ();
    /// Kills the processes of a group, runs its cleanup commands, reverts its changes and removes it.
    Teardown {
        /// The group.
        group: u32,
    } -> TeardownReport;
    /// Starts a process.
    Spawn {
        /// The group to start it in.
        group: u32,
        /// The command.
        command: Command,
        /// Whether to suspend it before it executes its program, until [`Release`] or [`ReleaseAt`].
        #[serde(rename = "hold")]
        suspended: bool,
    } -> ProcessHandle;
    /// Lets a suspended process start.
    Release {
        /// The process.
        process: u32,
    } -> ();
    /// Lets a suspended process start at a given time: the actual start time by the same clock.
    ReleaseAt {
        /// The process.
        process: u32,
        /// Start time by the machine's CLOCK_MONOTONIC, in nanoseconds.
        at_ns: u64,
    } -> u64;
    /// Waits for a process to exit: its report, with the tail of its standard output if that is hashed.
    Wait {
        /// The process.
        process: u32,
        /// Time from now after which the process is terminated.
        limit: Option<Nanos>,
    } -> WithBytes<ExitReport>;
    /// Inspects the effective placement of a process and its descendants now.
    Inspect {
        /// The process.
        process: u32,
    } -> PlacementReport;
    /// Sends a signal to the process and its process group.
    Signal {
        /// The process.
        process: u32,
        /// The signal's number.
        signal: i32,
    } -> ();
    /// Reads a part of the output of a process: its bytes, with whether more may come.
    Output {
        /// The process.
        process: u32,
        /// The stream.
        stream: OutputStream,
        /// Offset in bytes.
        offset: u64,
        /// Whether to wait until there is output or the process has exited.
        follow: bool,
    } -> WithBytes<bool>;
    /// Discards a process that has exited, and its output.
    Forget {
        /// The process.
        process: u32,
    } -> ();
    /// Starts recording telemetry: the recording's id.
    StartRecording {
        /// The group whose processes are the workload.
        group: u32,
        /// Time between two readings.
        interval: Nanos,
    } -> u32;
    /// Ends a recording: its telemetry, and the other runs that were active meanwhile.
    FinishRecording {
        /// The recording.
        recording: u32,
    } -> (Telemetry, Vec<AgentSession>);
    /// Announces a run to the other agents on the machine until this agent exits.
    Announce {
        /// The run's controller.
        controller: Controller,
    } -> ActiveRuns;
    /// Kills all processes and removes all files; the agent exits after the reply.
    Close {} -> ();
}

impl Request {
    /// Takes the raw bytes that are sent beside the request.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        self.bytes().map(std::mem::take).unwrap_or_default()
    }

    /// Sets the raw bytes that were received beside the request.
    pub(crate) fn set_bytes(&mut self, received: Vec<u8>) {
        if let Some(bytes) = self.bytes() {
            *bytes = received;
        }
    }

    fn bytes(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Put(put) => Some(&mut put.bytes),
            Self::Spawn(spawn) => Some(&mut spawn.command.stdin),
            _ => None,
        }
    }
}

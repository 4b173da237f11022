//! Types of the agent protocol: calls from the controller and replies from the agent, matched by id, in any order. Each
//! side sends [`Hello`] first; the agent then accepts or refuses the controller's session configuration.
//!
//! Start with [`call`]: one type per call, which determines its reply.

pub mod call;
mod changes;
mod fault;
mod file;
mod message;
mod process;
mod session;

pub use call::{Call, Request};
pub use changes::{CleanupCommand, RecoveryReport, RevertedChange, TeardownReport, TuneReport, UnrevertedChanges};
pub use fault::Fault;
pub use file::{EntryKind, FileEntry, GroupHandle, InstalledProgram, ScratchHandle};
pub use message::{EncodedReply, Reply, WithBytes};
pub(crate) use message::{RequestMessage, ResponseMessage};
pub use process::{
    Arrival, Capture, CapturedOutput, Command, ExitReason, ExitReport, OutputDigest, OutputStream, Overflow,
    PlacementReport, ProcessHandle,
};
pub use session::{ActiveRuns, AgentSession, ClockReading, Controller, Hello, HelloReply, SessionConfig};

/// Protocol version: covers every type in this module. Different versions are incompatible.
pub const VERSION: u32 = 12;

/// Maximum part of a file or of an output in one message, in bytes.
pub const CHUNK: usize = 4 << 20;

/// Name under which a group can replace the agent's program, where it is what is measured.
pub const OWN_PROGRAM: &str = "weighbridge";

/// Returns the path of this program.
pub(crate) fn own_program() -> String {
    std::env::current_exe().unwrap_or_default().display().to_string()
}

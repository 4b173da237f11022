//! The agent on a worker, its protocol, and the [`Worker`] handle that everything above drives.
//!
//! Everything that is measured is a child process of an agent; the agent is a process of its own, also
//! on the local machine, so that the end of whoever drives it is the end of its input, and it then ends
//! and removes whatever it started and made. It knows processes, files, telemetry and facts, and no
//! test. Here is no retry, no schedule and no judgement.
//!
//! Start with [`worker`] (what can be asked), then [`protocol`] (how it is asked) and [`serve`] (how it
//! is done).

pub mod clock;
pub mod frame;
mod keepalive;
pub mod protocol;
mod server;
pub mod session;
mod stdio;
pub mod worker;

pub use clock::ClockOffset;
pub use protocol::{Capture, Command, EntryKind, Fault, FileEntry, OutputDigest, PlacementReport, Stream};
pub use server::{AgentError, RUN, announced_runs, serve};
pub use session::{ActiveRuns, AgentSession, Controller, SessionConfig};
pub use stdio::stdio;
pub use worker::{
    Connection, ExitReason, Group, InstalledProgram, Process, ProcessOutput, ProcessStart, Recording, RecoveryReport,
    Reply, RestoredChange, Scratch, SynchronizedStart, TeardownReport, TelemetryRecord, UnrevertedChanges, Worker,
    WorkerError, start_synchronized,
};

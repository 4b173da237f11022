//! The agent on a worker, its protocol, and the [`Worker`] handle that all higher layers use.
//!
//! Every measured process is a child of an agent. The agent is a process of its own, also on the local machine: when
//! its controller exits, its input ends, and it then kills its processes and removes its files. It deals with
//! processes, files, telemetry and machine facts and knows nothing of tests; retries, scheduling and evaluation belong
//! to higher layers. `ssh` carries the same pipe.
//!
//! Start with [`worker`] (the client interface), then read [`protocol`] (the messages) and [`serve`] (the
//! implementation).

#![forbid(unsafe_code)]

pub mod clock;
pub mod frame;
mod keepalive;
pub mod protocol;
mod server;
pub mod signal;
mod stdio;
pub mod worker;

pub use clock::ClockOffset;
pub use protocol::{
    ActiveRuns, AgentSession, Arrival, Capture, CleanupCommand, Command, Controller, EntryKind, ExitReason, Fault,
    FileEntry, InstalledProgram, OutputDigest, OutputStream, PlacementReport, RecoveryReport, RevertedChange,
    SessionConfig, TeardownReport, TuneReport, UnrevertedChanges,
};
pub use server::{AgentError, RUN, announced_runs, serve};
pub use stdio::stdio;
pub use worker::{
    Connection, Process, ProcessOutput, ProcessStart, Recording, Scratch, SynchronizedStart, TeardownGroup,
    TelemetryRecord, Worker, WorkerError, start_synchronized,
};

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
pub mod protocol;
mod server;
mod silence;
mod stdio;
pub mod terms;
pub mod worker;

pub use clock::ClockOffset;
pub use protocol::{Capture, Command, EntryKind, Fault, FileEntry, OutputDigest, Ran, Stream};
pub use server::{AgentError, RUN, announced_runs, serve};
pub use stdio::stdio;
pub use terms::{Announced, Controller, Holder, Terms};
pub use worker::{
    Connection, Ending, Finished, Group, LeftBehind, Process, PutBack, Recorded, Recording, Reply, Scratch, Start,
    StillChanged, Teardown, Together, Tool, Worker, WorkerError, start_together,
};

//! Hosts: from what a user calls a machine to a [`Worker`](wb_agent::Worker) on it.
//!
//! The system's own ssh is the only way to a host, with the user's configuration, keys, agents, jump hosts and known
//! hosts; the agent is this program, put there once. Here is no test, no profile and no schedule, and nothing is changed
//! on a host but its cache folder.
//!
//! Start with [`inventory`] (what hosts there are), then [`connect`] (the way to one) and [`Program`] (what is put there).

mod background;
pub mod cache;
pub mod connect;
mod deploy;
mod elf;
pub mod error;
pub mod inventory;
mod program;
mod progress;
mod ssh;

pub use connect::{ConnectOptions, ConnectWarning, ConnectedHost, Privileges, connect, connect_all};
pub use error::{ConnectErrorKind, FleetError};
pub use inventory::{Address, CpuSpec, Host, HostParams, Inventory, ParamMismatch};
pub use program::Program;
pub use progress::{Progress, Transfer};

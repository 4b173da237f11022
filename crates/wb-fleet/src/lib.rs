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
mod elf;
pub mod error;
pub mod inventory;
mod program;
mod progress;
mod push;
mod ssh;

pub use connect::{Connected, Note, Options, Rights, connect, connect_all};
pub use error::{FleetError, Why};
pub use inventory::{Address, Contradiction, Cpus, Host, Inventory, Params};
pub use program::Program;
pub use progress::{Progress, Transfer};

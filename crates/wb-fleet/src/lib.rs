//! Connects to hosts: from the name of a machine to a [`Worker`](wb_agent::Worker) on it.
//!
//! Hosts are reached only through the system's ssh, with the user's configuration, keys, agents, jump hosts and known
//! hosts. The agent is a program that is deployed to a host once. This crate knows nothing of tests, profiles and
//! schedules, and changes nothing on a host but its cache folder.
//!
//! Start with [`inventory`] (the known hosts), then read [`connect()`] (connecting to one) and [`Program`] (what is
//! deployed).

#![forbid(unsafe_code)]

mod background;
pub mod cache;
pub mod connect;
mod deploy;
mod elf;
pub mod error;
pub mod inventory;
pub mod limits;
mod program;
mod progress;
mod ssh;

pub use connect::{ConnectOptions, ConnectWarning, ConnectedHost, connect, connect_all};
pub use deploy::Privileges;
pub use error::{ConnectErrorKind, FleetError, SEPARATE_HOSTS};
pub use inventory::{Address, CpuSpec, Host, HostParamMismatch, HostParams, Inventory};
pub use program::Program;
pub use progress::{Progress, Transfer};

//! Access to the local system: facts, environment, processes, cgroups, telemetry and reversible changes.
//!
//! Everything is read through a [`SysRoot`], which is `/` or a fake root, so that a laptop, a server and an
//! ARM board can be tested on any machine. This crate does not depend on tests, plans or records, and does not
//! judge what it reads: that is the knobs' job. Every change to the system goes through [`undo`].
//!
//! Start with [`SysRoot`], then [`mod@facts`] (the input of plan expansion) and [`environment`] (the configuration of
//! the system, compared before and after a run); [`mod@system`] combines both into the table that reports show.
//! [`mod@proc`] has the parsers of `/proc`. [`file_lock`], [`atomic_file`], [`contained_file`], [`output_file`],
//! [`trusted_path`], [`programs`] and [`user_folders`] serve every crate.

pub mod agent_program;
pub mod atomic_file;
pub mod cgroup;
pub mod clock;
pub mod contained_file;
pub mod environment;
mod extended_attributes;
pub mod facts;
pub mod fake_root;
pub mod file_lock;
pub mod output_file;
mod path_error;
pub mod proc;
pub mod process;
pub mod programs;
pub mod sys_root;
pub mod system;
pub mod telemetry;
pub mod trusted_path;
pub mod undo;
mod unnamed_file;
pub mod user_folders;
pub mod users;

pub use atomic_file::AtomicFile;
pub use environment::Environment;
pub use facts::facts;
pub use file_lock::{FileLock, LockError};
pub use output_file::{OutputFile, OutputTarget};
pub use path_error::PathError;
pub use sys_root::{SysError, SysRoot};
pub use system::system;
pub use trusted_path::UntrustedPath;
pub use undo::UndoLog;

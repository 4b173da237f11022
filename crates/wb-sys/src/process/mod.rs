//! Processes: launched with an exact placement, verified while they run, and always cleaned up.
//!
//! Start with [`launch()`] (placement between fork and exec, suspended or running), then [`effective_placement`] (the
//! effective placement), [`exit_time`] (the end time), [`reap()`] (exit status and resource usage) and [`tree`]
//! (descendants, to find and kill them).

pub mod effective_placement;
pub mod exit_time;
mod fork_exec;
pub mod huge_pages;
pub mod launch;
pub mod owner;
pub mod reap;
mod starter;
pub mod tree;

pub use effective_placement::EffectivePlacement;
pub use exit_time::ExitTimer;
pub use huge_pages::HugePagesMethod;
pub use launch::{LaunchError, LaunchSpec, LaunchState, LaunchStep, LaunchedProcess, SuspendedProcess, launch};
pub use owner::{Owner, ProcessUser};
pub use reap::{ExitStatus, ReapedChild, ResourceUsage, find_ended, has_ended, reap};
pub use tree::ProcessStat;

//! Processes: started exactly as asked, seen afterwards as they really are, and never left behind.
//!
//! Start with [`launch`] (placed between fork and exec, held or running), then [`verify`] (what the
//! kernel says of its placement), [`end`] (when it ended), [`reap`] (how, and what it used) and [`tree`] (who
//! descends from whom, to find and to end).

pub mod effective_placement;
pub mod exit_time;
mod fork_exec;
pub mod huge_pages;
pub mod launch;
pub mod owner;
pub mod reap;
pub mod tree;

pub use effective_placement::EffectivePlacement;
pub use exit_time::ExitTimer;
pub use huge_pages::HugePagesMethod;
pub use launch::{HeldProcess, LaunchError, LaunchSpec, LaunchState, LaunchStep, LaunchedProcess, launch};
pub use owner::Owner;
pub use reap::{ExitStatus, ReapedChild, ResourceUsage, reap, reap_any};
pub use tree::ProcessStat;

//! Processes: started exactly as asked, seen afterwards as they really are, and never left behind.
//!
//! Start with [`launch`] (placed between fork and exec, held or running), then [`verify`] (what the
//! kernel says of its placement), [`end`] (when it ended), [`reap`] (how, and what it used) and [`tree`] (who
//! descends from whom, to find and to end).

pub mod end;
pub mod huge_pages;
pub mod launch;
pub mod owner;
mod raw;
pub mod reap;
pub mod tree;
pub mod verify;

pub use end::EndTime;
pub use huge_pages::HugePagesMeans;
pub use launch::{Held, Launch, LaunchError, Launched, Start, Step, launch};
pub use owner::Owner;
pub use reap::{Reaped, ResourceUse, Status, reap, reap_any};
pub use tree::Entry;
pub use verify::Verified;

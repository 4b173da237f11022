//! The undo log: a write-ahead log of all changes to a machine, from which they are reverted.
//!
//! All changes of settings go through [`UndoLog::change`]. The previous value is logged and synced to disk before the
//! first byte is changed, so that the next process can restore it after a crash ([`UndoLog::revert`]). Settings that
//! another process changed meanwhile are left as they are, and reported.
//!
//! A change of one setting may reset others: the kernel gives a disk's queue a new depth with a new scheduler. Such
//! [`Dependent`]s are saved with the change ([`UndoLog::change_with`]) and restored after it.
//!
//! One process at a time holds the log of a machine ([`UndoLog::open`]). The kernel releases its lock (flock) when the
//! holder ends, so that no lock is ever stale.

mod dependents;
mod lock;
mod log;
mod record;
mod resource;
mod revert;
mod store;

pub use dependents::ResetSetting;
pub use lock::LockHolder;
pub use log::{ConflictPolicy, UndoError, UndoLog};
pub use record::{Change, Dependent, RevertOutcome};
pub use resource::{ManagedResource, Refusal, ResourceError};
pub use revert::RevertError;

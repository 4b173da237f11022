//! The one undo log: what is changed on a machine, and how it is put back.
//!
//! Whatever changes a setting of a machine asks [`UndoLog::change`]. The value that is there is written to the log, and
//! reaches the device, before the first byte is changed, so that whoever comes after a crash can put it back:
//! [`UndoLog::revert`]. What somebody else changed meanwhile is left as it is, and said.
//!
//! A change of one setting may reset others: the kernel gives a disk's queue a new depth with a new scheduler. Such
//! [`Dependent`]s are saved with the change ([`UndoLog::change_with`]) and restored after it is.
//!
//! One process at a time holds the log of a machine ([`UndoLog::open`]); a lock of the kernel's goes with its holder, so
//! that none is ever stale.

mod dependents;
mod lock;
mod log;
mod record;
mod revert;
mod step;
mod store;

pub use dependents::ResetSetting;
pub use lock::LockHolder;
pub use log::{ConflictPolicy, UndoError, UndoLog};
pub use record::{Change, Dependent, RevertOutcome};
pub use revert::RevertError;
pub use step::{Refusal, Step, StepError};

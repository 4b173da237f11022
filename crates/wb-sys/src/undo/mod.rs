//! The one undo log: what is changed on a machine, and how it is put back.
//!
//! Whatever changes a setting of a machine asks [`UndoLog::change`]. The value that is there is written to the log, and
//! reaches the device, before the first byte is changed, so that whoever comes after a crash can put it back:
//! [`UndoLog::revert`]. What somebody else changed meanwhile is left as it is, and said.
//!
//! One process at a time holds the log of a machine ([`UndoLog::open`]); a lock of the kernel's goes with its holder, so
//! that none is ever stale.

mod entry;
mod lock;
mod log;
mod step;
mod store;

pub use entry::{Change, Undone};
pub use lock::Holder;
pub use log::{UndoError, UndoLog};
pub use step::{Step, StepError};

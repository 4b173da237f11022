//! Sets of knobs: what they want, what that means on a machine, and setting it.

mod apply;
mod plan;
mod sets;

pub use apply::{apply, apply_all};
pub use plan::{AmbiguousTarget, KnobOutcome, KnobResult, check_settable, plan, plan_all, require_target};
pub(crate) use plan::{WriteCheck, compare};
pub use sets::{KnobSet, KnobSetError, KnobSetting, find};

//! Sets of knobs: definitions, dry runs and application.

mod apply;
mod plan;
mod sets;

pub use apply::{apply, apply_all};
pub use plan::{AmbiguousTarget, KnobOutcome, KnobRefusal, KnobResult, check_settable, plan, plan_all, require_target};
pub(crate) use plan::{WriteCheck, compare};
pub use sets::{KnobSet, KnobSetError, KnobSetting, find};

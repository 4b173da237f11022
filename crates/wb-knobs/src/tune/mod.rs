//! Sets of knobs: what they want, what that means on a machine, and setting it.

mod apply;
mod plan;
mod sets;

pub use apply::{apply, apply_all};
pub use plan::{Ambiguous, Outcome, Tuned, plan, plan_all, require_target, settable};
pub(crate) use plan::{Compared, compare};
pub use sets::{BadSet, KnobSet, Wanted, find};

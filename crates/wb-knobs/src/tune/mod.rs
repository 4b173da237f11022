//! Sets of knobs: what they want, what that means on a machine, and setting it.

mod apply;
mod plan;
mod sets;

pub use apply::apply;
pub use plan::{Ambiguous, Outcome, Tuned, plan, require_target, settable};
pub(crate) use plan::{Compared, compare};
pub use sets::{BadSet, KnobSet, Wanted, find};

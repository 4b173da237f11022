//! Sets of knobs: what they want, what that means on a machine, and setting it.

mod apply;
mod plan;
mod sets;

pub use apply::apply;
pub use plan::{Outcome, Tuned, plan, settable};
pub use sets::{BadSet, KnobSet, Wanted, find};

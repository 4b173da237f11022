//! The engine: strands, the threads that carry them out, and what is counted.
//!
//! Start with [`work`] (what a site is told and tells), then [`site`] (who drives), [`strand`] (what a strand does
//! next) and [`hand`] and [`event`] (on which threads). [`tally`] is what is counted, [`times`] how long things took.

pub mod clock;
mod counters;
mod descriptors;
mod event;
mod hand;
pub(crate) mod histogram;
mod interrupt;
mod jots;
mod plan;
pub mod raw;
pub mod report;
pub mod site;
mod sizes;
mod strand;
pub mod tally;
pub mod team;
pub mod times;
pub mod usage;
mod wait;
pub mod work;

pub use counters::{EVENTS, USUAL, probe};
pub use strand::files;

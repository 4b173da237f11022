//! The settings and conditions that make measurements noisy: what they are here, why they matter, and
//! how to change them.
//!
//! A [`Knob`] is a setting that somebody chose; a [`Condition`] is what the system does at the moment.
//! Each is one small type, and whatever lists, prints or restores them knows no single one. This crate
//! knows no test and no result, changes nothing, and prints nothing.
//!
//! Start with [`doctor()`], then [`knob`] and any file of [`knobs`].

pub mod condition;
pub mod conditions;
pub mod doctor;
pub mod knob;
pub mod knobs;
pub mod target;

mod change;
mod moment;

pub use condition::{Condition, Observation, Observed};
pub use doctor::{Diagnosis, Finding, doctor};
pub use knob::{Knob, Quiet, Unsupported, Value};
pub use target::Target;

//! The settings and conditions that make measurements noisy: their state, why they matter, and how to change them.
//!
//! A [`Knob`] is a setting; a [`Condition`] is current activity of the system. Each is a small type, and the code that
//! lists, prints or restores them is independent of any single one. This crate does not depend on tests and results,
//! prints nothing, and changes the system only through the undo log when a [`tune`] set is applied.
//!
//! Start with [`doctor()`], then [`knob`] and any file of [`knobs`].

#![forbid(unsafe_code)]

pub mod condition;
pub mod conditions;
pub mod doctor;
pub mod file_knob;
pub mod knob;
pub mod knobs;
pub mod target;
pub mod tune;
pub mod unsupported;
pub mod verdict;
pub mod writes;

mod counters;
mod dependents;
mod shell_commands;

pub use condition::{Condition, ConditionReport, SystemSample};
pub use doctor::{Diagnosis, Finding, doctor};
pub use knob::{Assessment, Knob, KnobValue};
pub use target::KnobTarget;
pub use tune::KnobSet;
pub use unsupported::Unsupported;
pub use verdict::NoiseVerdict;
pub use writes::KnobWrite;

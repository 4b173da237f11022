//! The settings and conditions that make measurements noisy: what they are here, why they matter, and
//! how to change them.
//!
//! A [`Knob`] is a setting that somebody chose; a [`Condition`] is what the system does at the moment.
//! Each is one small type, and whatever lists, prints or restores them knows no single one. This crate
//! knows no test and no result, prints nothing, and changes nothing but through the undo log, when a [`tune`] set is applied.
//!
//! Start with [`doctor()`], then [`knob`] and any file of [`knobs`].

pub mod condition;
pub mod conditions;
pub mod doctor;
pub mod knob;
pub mod knobs;
pub mod target;
pub mod tune;
pub mod writes;

mod counters;
mod dependents;
mod shell_commands;

pub use condition::{Condition, ConditionReport, SystemSample};
pub use doctor::{Diagnosis, Finding, doctor};
pub use knob::{Assessment, Knob, KnobValue, Unsupported};
pub use target::KnobTarget;
pub use tune::KnobSet;
pub use writes::KnobWrite;

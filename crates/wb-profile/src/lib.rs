//! Profiles: states that a host is put into and brought back from.
//!
//! A profile is a list of reversible steps on a host, made through its agent and the one undo log there, and, where it
//! has guests, the machines that measure in the host's place. Here is no test and no schedule; how hosts are reached is
//! `wb-fleet`'s.
//!
//! Start with [`image`]: what a guest's disk is made from; and [`provision`], [`script`] and [`reboot`]: what is done to a
//! host before any profile.

pub mod controller;
pub mod image;
pub mod provision;
pub mod reboot;
pub mod script;

pub use controller::Controller;

//! Profiles: states that a host is put into and brought back from.
//!
//! A profile is a list of reversible steps on a host, made through its agent and the one undo log there, and, where it
//! has guests, the machines that measure in the host's place. Here is no test and no schedule; how hosts are reached is
//! `wb-fleet`'s.
//!
//! Start with [`profile`] (what a profile is), then [`apply()`] (what is done on a host) and [`image`] (what a guest's
//! disk is made from); [`mod@preflight`] finds out beforehand whether that can be done; and [`provision`], [`script`], [`mod@reboot`] and [`boot`], what is
//! done to a host before any profile.

pub mod apply;
mod apply_site;
pub mod boot;
pub mod catalog;
pub mod controller;
pub mod error;
mod guest;
mod host;
pub mod image;
pub mod preflight;
pub mod profile;
pub mod provision;
pub mod reboot;
pub mod script;
pub mod selection;

pub use apply::{ActiveProfile, AppliedProfile, ApplyContext, ProfileHost, apply, profile_folders, set_values};
pub use catalog::{ProfileCatalog, ProfileCatalogError};
pub use controller::Controller;
pub use error::{ProfileError, ProfileErrorKind};
pub use guest::{GuestLog, GuestLogs, GuestRecord, PlannedGuest, console, guest_logs, remove_guest_logs};
pub use preflight::{Preflight, preflight};
pub use profile::{NamedProfile, Profile};
pub use selection::{ProfileSelectionError, parse_profiles};

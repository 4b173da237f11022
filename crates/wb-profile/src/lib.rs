//! Profiles: states that are applied to a host and reverted.
//!
//! A profile is a list of reversible steps on a host, made through its agent and recorded in the host's undo log, and
//! optionally guests (virtual machines) that measure in place of the host. Tests and scheduling are in other crates;
//! connecting to hosts is in `wb-fleet`.
//!
//! Start with [`profile`] (the data of a profile), then [`apply()`] (its application to a host) and [`image`] (base
//! images for guests' disks). [`mod@preflight`] checks beforehand whether a profile can be applied; [`provision`],
//! [`script`], [`mod@reboot`] and [`boot`] prepare a host before any profile.

#![forbid(unsafe_code)]

pub mod apply;
pub mod boot;
pub mod catalog;
pub mod controller;
pub mod error;
mod guest;
mod host;
mod host_context;
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

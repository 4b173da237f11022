//! Checks whether a profile is valid and this system supports it.

use std::collections::BTreeSet;

use super::diagnostic::{ProfileDiagnostics, ProfileNote};
use super::parser::{ParsedProfile, parse};
use super::profile::NetProfile;
use super::variables::Variables;
use crate::support::{UnsupportedFeature, unsupported_features};

/// The result of checking a profile's text.
#[derive(Debug)]
pub enum ProfileCheck {
    /// It can be run on this system.
    Valid {
        /// The parsed profile.
        profile: NetProfile,
        /// Notes on the profile.
        notes: Vec<ProfileNote>,
        /// The variables that it uses.
        variables: BTreeSet<String>,
    },
    /// It is not valid.
    Invalid(ProfileDiagnostics),
    /// It is valid, but this system does not support all of it.
    Unsupported {
        /// The parsed profile.
        profile: NetProfile,
        /// Notes on the profile.
        notes: Vec<ProfileNote>,
        /// The variables that it uses.
        variables: BTreeSet<String>,
        /// The missing features.
        unsupported: Vec<UnsupportedFeature>,
    },
}

/// Parses a profile and probes whether this system supports its features.
pub fn check(name: &str, text: &str, variables: &Variables) -> ProfileCheck {
    match parse(name, text, variables) {
        Err(diagnostics) => ProfileCheck::Invalid(diagnostics),
        Ok(ParsedProfile { profile, notes, variables }) => match unsupported_features(&profile) {
            lacks if lacks.is_empty() => ProfileCheck::Valid { profile, notes, variables },
            lacks => ProfileCheck::Unsupported { profile, notes, variables, unsupported: lacks },
        },
    }
}

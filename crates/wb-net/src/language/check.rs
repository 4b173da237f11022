//! Whether a profile is fit to be run on this system.

use std::collections::BTreeSet;

use super::diagnostic::{ProfileDiagnostics, ProfileNote};
use super::parser::{ParsedProfile, parse};
use super::profile::NetProfile;
use super::variables::Variables;
use crate::support::{UnsupportedFeature, unsupported_features};

/// What a profile's text is fit for.
#[derive(Debug)]
pub enum ProfileCheck {
    /// It can be run here.
    Valid {
        /// What it says.
        profile: NetProfile,
        /// What is to be known of it.
        notes: Vec<ProfileNote>,
        /// The variables that it uses.
        variables: BTreeSet<String>,
    },
    /// It cannot be understood.
    Invalid(ProfileDiagnostics),
    /// It is understood, but this system cannot do all of it.
    Unsupported {
        /// What it says.
        profile: NetProfile,
        /// What is to be known of it.
        notes: Vec<ProfileNote>,
        /// The variables that it uses.
        variables: BTreeSet<String>,
        /// What this system cannot do.
        lacks: Vec<UnsupportedFeature>,
    },
}

/// Reads a profile and asks this system whether it can do what that says.
pub fn check(name: &str, text: &str, variables: &Variables) -> ProfileCheck {
    match parse(name, text, variables) {
        Err(faults) => ProfileCheck::Invalid(faults),
        Ok(ParsedProfile { profile, notes, variables }) => match unsupported_features(&profile) {
            lacks if lacks.is_empty() => ProfileCheck::Valid { profile, notes, variables },
            lacks => ProfileCheck::Unsupported { profile, notes, variables, lacks },
        },
    }
}

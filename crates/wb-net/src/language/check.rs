//! Whether a profile is fit to be run on this system.

use std::collections::BTreeSet;

use super::fault::{Faults, Note};
use super::profile::Profile;
use super::read::{Read, parse};
use super::variables::Variables;
use crate::support::{Lack, lacks};

/// What a profile's text is fit for.
#[derive(Debug)]
pub enum Check {
    /// It can be run here.
    Fine {
        /// What it says.
        profile: Profile,
        /// What is to be known of it.
        notes: Vec<Note>,
        /// The variables that it uses.
        variables: BTreeSet<String>,
    },
    /// It cannot be understood.
    Wrong(Faults),
    /// It is understood, but this system cannot do all of it.
    Lacks {
        /// What it says.
        profile: Profile,
        /// What is to be known of it.
        notes: Vec<Note>,
        /// The variables that it uses.
        variables: BTreeSet<String>,
        /// What this system cannot do.
        lacks: Vec<Lack>,
    },
}

/// Reads a profile and asks this system whether it can do what that says.
pub fn check(name: &str, text: &str, variables: &Variables) -> Check {
    match parse(name, text, variables) {
        Err(faults) => Check::Wrong(faults),
        Ok(Read { profile, notes, variables }) => match lacks(&profile) {
            lacks if lacks.is_empty() => Check::Fine { profile, notes, variables },
            lacks => Check::Lacks { profile, notes, variables, lacks },
        },
    }
}

//! From a profile's text to a [`Profile`], with everything that is wrong or worth knowing.

use std::collections::BTreeSet;
use std::path::Path;

use super::fault::{Faults, Note};
use super::markup::tags;
use super::profile::Profile;
use super::scope::{Scope, Wrong};
use super::tree::{ELEMENTS, no_profile, tree};
use super::variables::Variables;

/// Larger files are no profiles.
const LARGEST: usize = 1024 * 1024;

/// A profile that was understood.
#[derive(Debug)]
pub struct Read {
    /// What it says.
    pub profile: Profile,
    /// What is to be known of it, in the text's order.
    pub notes: Vec<Note>,
    /// The variables that it uses.
    pub variables: BTreeSet<String>,
}

/// Reads a profile as uperf 1.0.8 does, but reports all that is wrong with it.
///
/// `source_name` is what its file is called; a profile without a name is called by its stem.
pub fn parse(source_name: &str, text: &str, variables: &Variables) -> Result<Read, Faults> {
    if text.len() > LARGEST {
        return Err(too_large(source_name));
    }
    let mut scope = Scope::new(text, variables);
    let tags = tags(&mut scope);
    let is_element = |name: &str| ELEMENTS.iter().any(|element| element.eq_ignore_ascii_case(name));
    if !tags.iter().any(|tag| is_element(&tag.name)) {
        // What else is wrong with a text that is something else helps nobody.
        return Err(single(source_name, text, text.len(), no_profile()));
    }
    let stem = Path::new(source_name).file_stem().map_or(source_name.into(), |stem| stem.to_string_lossy());
    let profile = tree(&mut scope, &tags, &stem);
    let variables = scope.used();
    let notes = scope.finish().map_err(|faults| Faults::new(source_name, text, faults))?;
    Ok(Read { profile, notes, variables })
}

/// The text of a profile's file.
pub fn text_of<'a>(source_name: &str, bytes: &'a [u8]) -> Result<&'a str, Faults> {
    if bytes.len() > LARGEST {
        return Err(too_large(source_name));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let end = error.valid_up_to();
        let sound = String::from_utf8_lossy(&bytes[..end]);
        let wrong = Wrong::new("this file is not UTF-8", "from here on").help("profiles are text in UTF-8");
        single(source_name, &sound, end, wrong)
    })
}

fn too_large(source_name: &str) -> Faults {
    let wrong = Wrong::new(format!("`{source_name}` is larger than 1 MiB"), "").help("a profile is a short text");
    single(source_name, "", 0, wrong)
}

fn single(source_name: &str, text: &str, at: usize, wrong: Wrong) -> Faults {
    let variables = Variables::new();
    let mut scope = Scope::new(text, &variables);
    scope.fault(at..at, wrong);
    Faults::new(source_name, text, scope.finish().err().unwrap_or_default())
}

//! From a profile's text to a [`Profile`], with everything that is wrong or worth knowing.

use std::collections::BTreeSet;
use std::path::Path;

use super::builder::{ELEMENTS, build_profile, missing_profile};
use super::context::{ParseContext, ParseError};
use super::diagnostic::{ProfileDiagnostics, ProfileNote};
use super::markup::scan_tags;
use super::profile::NetProfile;
use super::variables::Variables;

/// Larger files are no profiles.
const MAX_FILE_SIZE: usize = 1024 * 1024;

/// A profile that was understood.
#[derive(Debug)]
pub struct ParsedProfile {
    /// What it says.
    pub profile: NetProfile,
    /// What is to be known of it, in the text's order.
    pub notes: Vec<ProfileNote>,
    /// The variables that it uses.
    pub variables: BTreeSet<String>,
}

/// Reads a profile as uperf 1.0.8 does, but reports all that is wrong with it.
///
/// `source_name` is what its file is called; a profile without a name is called by its stem.
pub fn parse(source_name: &str, text: &str, variables: &Variables) -> Result<ParsedProfile, ProfileDiagnostics> {
    if text.len() > MAX_FILE_SIZE {
        return Err(too_large_error(source_name));
    }
    let mut scope = ParseContext::new(text, variables);
    let tags = scan_tags(&mut scope);
    let is_element = |name: &str| ELEMENTS.iter().any(|element| element.eq_ignore_ascii_case(name));
    if !tags.iter().any(|tag| is_element(&tag.name)) {
        // What else is wrong with a text that is something else helps nobody.
        return Err(single_error(source_name, text, text.len(), missing_profile()));
    }
    let stem = Path::new(source_name).file_stem().map_or(source_name.into(), |stem| stem.to_string_lossy());
    let profile = build_profile(&mut scope, &tags, &stem);
    let variables = scope.used_variables();
    let notes = scope.finish().map_err(|faults| ProfileDiagnostics::new(source_name, text, faults))?;
    Ok(ParsedProfile { profile, notes, variables })
}

/// The text of a profile's file.
pub fn decode_text<'a>(source_name: &str, bytes: &'a [u8]) -> Result<&'a str, ProfileDiagnostics> {
    if bytes.len() > MAX_FILE_SIZE {
        return Err(too_large_error(source_name));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let end = error.valid_up_to();
        let sound = String::from_utf8_lossy(&bytes[..end]);
        let wrong = ParseError::new("this file is not UTF-8", "from here on").help("profiles are text in UTF-8");
        single_error(source_name, &sound, end, wrong)
    })
}

fn too_large_error(source_name: &str) -> ProfileDiagnostics {
    let wrong = ParseError::new(format!("`{source_name}` is larger than 1 MiB"), "").help("a profile is a short text");
    single_error(source_name, "", 0, wrong)
}

fn single_error(source_name: &str, text: &str, at: usize, wrong: ParseError) -> ProfileDiagnostics {
    let variables = Variables::new();
    let mut scope = ParseContext::new(text, &variables);
    scope.report(at..at, wrong);
    ProfileDiagnostics::new(source_name, text, scope.finish().err().unwrap_or_default())
}

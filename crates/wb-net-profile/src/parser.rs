//! Parses a profile's text into a [`NetProfile`], with all errors and notes.

use std::collections::BTreeSet;
use std::path::Path;

use wb_diagnostics::{Diagnostic, SourceText};

use super::builder::{ELEMENTS, build_profile, missing_profile};
use super::context::ParseContext;
use super::diagnostic::{ProfileDiagnostics, ProfileNote};
use super::markup::scan_tags;
use super::profile::NetProfile;
use super::variables::Variables;

/// Bytes.
const MAX_FILE_SIZE: usize = 1024 * 1024;

/// A profile that was parsed without errors.
#[derive(Debug)]
pub struct ParsedProfile {
    pub profile: NetProfile,
    /// In the order of the text.
    pub notes: Vec<ProfileNote>,
    pub variables: BTreeSet<String>,
}

/// Parses a profile in the language of uperf 1.0.8, but reports all its errors. `source_name` is the name of its file;
/// a profile without a name is named after the file's stem.
pub fn parse(source_name: &str, text: &str, variables: &Variables) -> Result<ParsedProfile, ProfileDiagnostics> {
    if text.len() > MAX_FILE_SIZE {
        return Err(too_large_error(source_name));
    }
    let source = SourceText::new(source_name, text);
    let mut scope = ParseContext::new(&source, variables);
    let tags = scan_tags(&mut scope);
    let is_element = |name: &str| ELEMENTS.iter().any(|element| element.eq_ignore_ascii_case(name));
    if !tags.iter().any(|tag| is_element(&tag.name)) {
        // Further errors are of no use for a text that is not a profile.
        return Err(single_error(&source, text.len(), missing_profile()));
    }
    let stem = Path::new(source_name).file_stem().map_or(source_name.into(), |stem| stem.to_string_lossy());
    let profile = build_profile(&mut scope, &tags, &stem);
    let variables = scope.used_variables();
    Ok(ParsedProfile { profile, notes: scope.finish()?, variables })
}

pub fn decode_text<'a>(source_name: &str, bytes: &'a [u8]) -> Result<&'a str, ProfileDiagnostics> {
    if bytes.len() > MAX_FILE_SIZE {
        return Err(too_large_error(source_name));
    }
    std::str::from_utf8(bytes).map_err(|utf8_error| {
        let end = utf8_error.valid_up_to();
        let valid = String::from_utf8_lossy(&bytes[..end]);
        let error =
            Diagnostic::labelled("this file is not UTF-8", "from here on").with_help("profiles are text in UTF-8");
        single_error(&SourceText::new(source_name, &valid), end, error)
    })
}

fn too_large_error(source_name: &str) -> ProfileDiagnostics {
    let error = Diagnostic::labelled(format!("`{source_name}` is larger than 1 MiB"), "")
        .with_help("a profile is a short text");
    single_error(&SourceText::new(source_name, ""), 0, error)
}

fn single_error(source: &SourceText, position: usize, error: Diagnostic) -> ProfileDiagnostics {
    ProfileDiagnostics::new(source, vec![source.locate(position..position, error)])
}

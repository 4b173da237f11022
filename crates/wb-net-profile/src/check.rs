//! Checks whether a profile is valid and this system supports it.

use super::diagnostic::ProfileDiagnostics;
use super::parser::{ParsedProfile, parse};
use super::variables::Variables;
use crate::support::{UnsupportedFeature, unsupported_features};

#[derive(Debug)]
pub enum ProfileCheck {
    Valid(ParsedProfile),
    Invalid(ProfileDiagnostics),
    Unsupported { parsed: ParsedProfile, unsupported: Vec<UnsupportedFeature> },
}

/// Parses a profile and probes whether this system supports its features.
pub fn check(name: &str, text: &str, variables: &Variables) -> ProfileCheck {
    match parse(name, text, variables) {
        Err(diagnostics) => ProfileCheck::Invalid(diagnostics),
        Ok(parsed) => match unsupported_features(&parsed.profile) {
            lacks if lacks.is_empty() => ProfileCheck::Valid(parsed),
            lacks => ProfileCheck::Unsupported { parsed, unsupported: lacks },
        },
    }
}

//! Files that define a matrix: TOML or YAML of our own, and the YAML of libp2p's performance suites.

mod endpoint;
mod entry_error;
mod peers_file;
mod places;
mod suite;

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::IgnoredAny;
use wb_diagnostics::{Diagnostic, SourceText, humanize_serde_error};

use self::places::Places;
use crate::matrix::Matrix;

#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    #[error("cannot read `{path}`: {source}")]
    Unreadable { path: String, source: std::io::Error },
    #[error(transparent)]
    Invalid(#[from] Diagnostic),
}

/// Reads a file: TOML if its name ends in `.toml`, YAML otherwise. A YAML file with `implementations` is one of
/// libp2p's suites: with `servers` that of test-plans (`impls.yaml`), without that of unified-testing (`images.yaml`).
pub fn read_matrix(path: &Path) -> Result<Matrix, MatrixError> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| MatrixError::Unreadable { path: name.clone(), source })?;
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    Ok(parse_matrix(&SourceText::new(&name, &text), is_toml)?)
}

pub fn parse_matrix(source: &SourceText, is_toml: bool) -> Result<Matrix, Diagnostic> {
    let text = &source.text;
    if is_toml {
        let file = toml::from_str(text).map_err(|error| {
            let message = humanize_serde_error(error.message());
            Diagnostic::at(source, error.span().unwrap_or(0..0), message, "here")
        })?;
        return peers_file::to_matrix(file).map_err(|error| error.into_diagnostic(source, Places::from_toml(source)));
    }
    let matrix = if suite::is_suite(text) {
        suite::to_matrix(parse_yaml(source)?)
    } else {
        peers_file::to_matrix(parse_yaml(source)?)
    };
    matrix.map_err(|error| error.into_diagnostic(source, Places::from_yaml(source)))
}

/// Whether a text is a YAML mapping, or invalid YAML; many other texts are a single YAML value.
fn is_mapping(text: &str) -> bool {
    serde_saphyr::from_str::<IgnoredAny>(text).is_err()
        || serde_saphyr::from_str::<BTreeMap<String, IgnoredAny>>(text).is_ok()
}

fn parse_yaml<T: serde::de::DeserializeOwned>(source: &SourceText) -> Result<T, Diagnostic> {
    serde_saphyr::from_str(&source.text).map_err(|error| {
        let span = error.location().and_then(|location| source.rest_of_line(location.line(), location.column()));
        let message = if is_mapping(&source.text) {
            humanize_serde_error(&error.without_snippet().to_string())
        } else {
            "invalid peers file: expected TOML or YAML".to_owned()
        };
        Diagnostic::at(source, span.unwrap_or(0..0), message, "here")
    })
}

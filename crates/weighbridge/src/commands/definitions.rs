//! Builds the registry of tests: built-in, shipped, and defined by the user's files.

use std::path::{Path, PathBuf};

use wb_diagnostics::SourceText;
use wb_plan::Catalog;
use wb_tests::net::Net;
use wb_tests::{DefinitionError, Registry};

use crate::error::Error;

/// The registry of tests. An unreadable definition causes a warning and is skipped.
pub(crate) fn registry(tests_d: &[PathBuf], beside_plan: Option<&Path>) -> Result<Registry, Error> {
    registry_for(&[], tests_d, beside_plan)
}

/// The registry of tests. An unreadable definition is an error if it may define one of the requested tests.
pub(crate) fn registry_for(
    requested: &[&str],
    tests_d: &[PathBuf],
    beside_plan: Option<&Path>,
) -> Result<Registry, Error> {
    let user_folder = wb_sys::user_folders::config().map(|config| config.join("tests.d"));
    let optional = user_folder.into_iter().chain(beside_plan.map(Path::to_owned)).filter(|folder| folder.is_dir());
    let mut registry = Registry::built_in();
    if let Some(folder) = beside_plan.and_then(Path::parent) {
        registry.add(Net::with_profile_folder(folder));
    }
    let mut unreadable = Vec::new();
    for folder in optional.chain(tests_d.iter().cloned()) {
        unreadable.extend(registry.add_folder(&folder).map_err(|error| definition_error(&error))?);
    }
    for error in unreadable {
        let may_be_requested = |test: &&str| may_define(&error, test).unwrap_or(registry.declaration(test).is_none());
        if requested.iter().any(may_be_requested) {
            return Err(definition_error(&error));
        }
        crate::console::message!("warning: {error}; definition skipped");
    }
    Ok(registry)
}

/// Whether an unreadable definition would define this test; `None` if unknown.
fn may_define(error: &DefinitionError, test: &str) -> Option<bool> {
    let named = |path: &Path| path.file_stem().is_some_and(|stem| stem.to_string_lossy() == test);
    match error {
        DefinitionError::Duplicate { test: duplicate, .. } => Some(duplicate == test),
        DefinitionError::Read { path, .. } => Some(named(path)),
        DefinitionError::Record(_) => None,
        DefinitionError::Invalid(diagnostic) => {
            let SourceText { name: file, text } = &diagnostic.location()?.source;
            let value = text.lines().find_map(|line| line.trim().strip_prefix("name")?.trim().strip_prefix('='));
            Some(value?.trim().trim_matches(['"', '\'']) == test || named(Path::new(&**file)))
        }
    }
}

/// Converts a definition error, with its source position if it has one.
fn definition_error(error: &DefinitionError) -> Error {
    const DEFINITION_HELP: &str = "fix or remove the file; docs/tests.md describes the format";
    match error {
        DefinitionError::Invalid(diagnostic) => {
            let label = diagnostic.help().unwrap_or("here");
            diagnostic.clone().with_label(label).with_help(DEFINITION_HELP).into()
        }
        other => Error::Usage { what: other.to_string(), help: DEFINITION_HELP.to_owned() },
    }
}

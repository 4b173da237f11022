//! The tests there are: built in, shipped, and defined by files of the user's.

use std::path::{Path, PathBuf};

use wb_plan::{Catalog, PlanError, SourceText};
use wb_tests::net::Net;
use wb_tests::{DefinitionError, Registry};

use crate::error::Error;

/// The tests there are; a definition that cannot be read is told, and hinders no other test.
pub(crate) fn registry(tests_d: &[PathBuf], beside_plan: Option<&Path>) -> Result<Registry, Error> {
    registry_for(&[], tests_d, beside_plan)
}

/// The tests there are; a definition that cannot be read is an error where one of these tests may be its.
pub(crate) fn registry_for(asked: &[&str], tests_d: &[PathBuf], beside_plan: Option<&Path>) -> Result<Registry, Error> {
    let own = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))
        .map(|config| config.join("weighbridge/tests.d"));
    let optional = own.into_iter().chain(beside_plan.map(Path::to_owned)).filter(|folder| folder.is_dir());
    let mut registry = Registry::built_in();
    if let Some(folder) = beside_plan.and_then(Path::parent) {
        registry.add(Net::with_profile_folder(folder));
    }
    let mut unreadable = Vec::new();
    for folder in optional.chain(tests_d.iter().cloned()) {
        unreadable.extend(registry.add_folder(&folder).map_err(|error| definition_error(&error))?);
    }
    for error in unreadable {
        let may_be_asked_for = |test: &&str| may_define(&error, test).unwrap_or(registry.declaration(test).is_none());
        if asked.iter().any(may_be_asked_for) {
            return Err(definition_error(&error));
        }
        crate::console::tell!("warning: {error}; this definition is passed over");
    }
    Ok(registry)
}

/// Whether a definition is meant to define this test, as far as that can be told.
fn may_define(error: &DefinitionError, test: &str) -> Option<bool> {
    let named = |path: &Path| path.file_stem().is_some_and(|stem| stem.to_string_lossy() == test);
    match error {
        DefinitionError::Duplicate { test: twice, .. } => Some(twice == test),
        DefinitionError::Read { path, .. } => Some(named(path)),
        DefinitionError::Record(_) => None,
        DefinitionError::Invalid { file, .. } => {
            let text = std::fs::read_to_string(file).ok()?;
            let value = text.lines().find_map(|line| line.trim().strip_prefix("name")?.trim().strip_prefix('='));
            Some(value?.trim().trim_matches(['"', '\'']) == test || named(Path::new(file)))
        }
    }
}

/// As an error, with its place where it has one.
fn definition_error(error: &DefinitionError) -> Error {
    const DEFINITION_HELP: &str = "mend or remove the file; docs/tests.md says what it may hold";
    match error {
        DefinitionError::Invalid { file, span, fault, .. } => {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let label = fault.way_out.as_deref().unwrap_or("here");
            let source = SourceText::new(file, &text);
            PlanError::at(&source, span.clone(), fault.what.as_str(), label).with_help(DEFINITION_HELP).into()
        }
        other => Error::Usage { what: other.to_string(), help: DEFINITION_HELP.to_owned() },
    }
}

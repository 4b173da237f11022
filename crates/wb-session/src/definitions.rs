//! The registry of tests: built-in, shipped, and defined by the user's files.

use std::path::{Path, PathBuf};

use wb_declarative::{DefinitionError, add_folder, add_run};
use wb_diagnostics::SourceText;
use wb_peers_worker::Peers;
use wb_plan::Catalog;
use wb_record::RunFolder;
use wb_test::Registry;
use wb_workloads::net::Net;

use crate::error::SessionError;
use crate::event::{EventSink, SessionEvent};

pub(crate) const HELP: &str = "fix or remove the file; docs/tests.md describes the format";

/// The registry of tests. An unreadable definition causes a warning and is skipped.
pub fn registry(tests_d: &[PathBuf], beside_plan: Option<&Path>, events: &EventSink) -> Result<Registry, SessionError> {
    registry_for(&[], tests_d, beside_plan, events)
}

/// The registry of tests for the results of a run, with the tests that it recorded. An unreadable definition causes a
/// warning and is skipped.
pub fn registry_of_run(run: &RunFolder, tests_d: &[PathBuf], events: &EventSink) -> Result<Registry, SessionError> {
    let mut registry = wb_tests::built_in();
    let mut unreadable = Vec::new();
    if let Some(folder) = user_folder() {
        unreadable.extend(add_folder(&mut registry, &folder).map_err(definition_error)?);
    }
    unreadable.extend(add_run(&mut registry, run).map_err(definition_error)?);
    for folder in tests_d {
        unreadable.extend(add_folder(&mut registry, folder).map_err(definition_error)?);
    }
    unreadable.into_iter().for_each(|error| events.emit(SessionEvent::DefinitionSkipped(error)));
    Ok(registry)
}

fn user_folder() -> Option<PathBuf> {
    wb_sys::user_folders::config().map(|config| config.join("tests.d")).filter(|folder| folder.is_dir())
}

/// The registry of tests. An unreadable definition is an error if it may define one of the requested tests.
pub fn registry_for(
    requested: &[&str],
    tests_d: &[PathBuf],
    beside_plan: Option<&Path>,
    events: &EventSink,
) -> Result<Registry, SessionError> {
    let beside = beside_plan.map(Path::to_owned).filter(|folder| folder.is_dir());
    let optional = user_folder().into_iter().chain(beside);
    let mut registry = wb_tests::built_in();
    if let Some(folder) = beside_plan.and_then(Path::parent) {
        registry.add(Net::with_profile_folder(folder));
        registry.add(Peers::with_folder(folder));
    }
    let mut unreadable = Vec::new();
    for folder in optional.chain(tests_d.iter().cloned()) {
        unreadable.extend(add_folder(&mut registry, &folder).map_err(definition_error)?);
    }
    for error in unreadable {
        let may_be_requested = |test: &&str| may_define(&error, test).unwrap_or(registry.declaration(test).is_none());
        if requested.iter().any(may_be_requested) {
            return Err(definition_error(error));
        }
        events.emit(SessionEvent::DefinitionSkipped(error));
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
fn definition_error(error: DefinitionError) -> SessionError {
    match error {
        DefinitionError::Invalid(diagnostic) => {
            let label = diagnostic.help().unwrap_or("here").to_owned();
            diagnostic.with_label(label).with_help(HELP).into()
        }
        other => SessionError::Definition(other),
    }
}

/// Studies a run as `weighbridge study` does, without writing the results.
pub fn study_in_memory(run: &RunFolder, events: &EventSink) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let registry = registry_of_run(run, &[], events).map_err(|error| error.to_string())?;
    wb_study::render_results(run, &registry).map_err(|error| error.to_string())
}

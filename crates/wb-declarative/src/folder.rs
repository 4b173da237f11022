//! Folders of definitions, of users and of runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wb_record::RunFolder;
use wb_test::{Registry, Test};

use crate::foreign::ForeignTest;
use crate::{DeclarativeTest, DefinitionError};

/// Adds every test that a `*.toml` file in a folder defines, in the order of file names. Skips files that are invalid,
/// or define a test that an earlier file of the folder defines, and returns their errors.
pub fn add_folder(registry: &mut Registry, folder: &Path) -> Result<Vec<DefinitionError>, DefinitionError> {
    add_definitions(registry, folder, None)
}

/// Adds the tests that a run recorded, as [`add_folder`] does; none if it recorded no tests. The run may come from
/// somebody else, so nothing outside of its folder is read.
pub fn add_run(registry: &mut Registry, run: &RunFolder) -> Result<Vec<DefinitionError>, DefinitionError> {
    if run.tests_folder().is_dir() {
        add_definitions(registry, &run.tests_folder(), Some(run.path()))
    } else {
        Ok(Vec::new())
    }
}

fn add_definitions(
    registry: &mut Registry,
    folder: &Path,
    run: Option<&Path>,
) -> Result<Vec<DefinitionError>, DefinitionError> {
    let unreadable = |source| DefinitionError::Read { path: folder.to_owned(), source };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut skipped = Vec::new();
    for path in paths {
        let test = match read_definition(&path, run) {
            Ok(test) => test,
            Err(error) => {
                skipped.push(error);
                continue;
            }
        };
        let (name, file) = (test.name().to_owned(), path.display().to_string());
        match files.get(&name) {
            Some(first) => {
                skipped.push(DefinitionError::Duplicate { test: name, first: first.clone(), second: file });
            }
            None => {
                registry.insert(&name, || test);
                files.insert(name, file);
            }
        }
    }
    Ok(skipped)
}

/// `run` is the run folder that contains the definition, if any.
fn read_definition(path: &Path, run: Option<&Path>) -> Result<Arc<dyn Test>, DefinitionError> {
    match ForeignTest::read(path, run)? {
        Some(test) => Ok(Arc::new(test)),
        None => Ok(Arc::new(DeclarativeTest::read(path, run)?)),
    }
}

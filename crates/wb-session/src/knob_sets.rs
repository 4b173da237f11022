//! The available knob sets: built-in ones and files of the user.

use std::path::{Path, PathBuf};

use wb_knobs::KnobSet;

use crate::error::SessionError;

fn sets_folder() -> Option<PathBuf> {
    Some(wb_sys::user_folders::config()?.join("knobs.d"))
}

pub fn user_set_file(name: &str) -> Option<PathBuf> {
    sets_folder().map(|folder| folder.join(format!("{name}.toml"))).filter(|file| file.is_file())
}

/// All sets: built-in ones and the user's, which override built-in ones of the same name.
pub fn all_sets() -> Result<Vec<KnobSet>, SessionError> {
    let mut sets = KnobSet::builtin();
    for path in sets_folder().map_or(Ok(Vec::new()), |folder| set_files(&folder))? {
        let set = read_set(&path)?;
        sets.retain(|existing| existing.name != set.name);
        sets.push(set);
    }
    Ok(sets)
}

/// Sorted by name; none if the folder does not exist.
fn set_files(folder: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let cannot_read = SessionError::file("read", folder);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(cannot_read)?,
    };
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(cannot_read)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    Ok(files)
}

/// Reads a set, which is named after its file.
pub fn read_set(path: &Path) -> Result<KnobSet, SessionError> {
    let text = std::fs::read_to_string(path).map_err(SessionError::file("read", path))?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    KnobSet::parse(&name, &text).map_err(|error| SessionError::KnobSet { path: path.to_owned(), reason: error.reason })
}

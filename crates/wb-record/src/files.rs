//! Reading and atomic writing of files.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_model::secrets;
use wb_sys::{atomic_file, contained_file};

use crate::RecordError;

/// The maximum size of a file whose size is not recorded. It bounds the memory that a damaged or hostile run can occupy,
/// for example by a sparse file; the largest journals of imports have a tenth of it.
pub const MAX_FILE: u64 = 1 << 30;

/// Writes a file atomically, as [`atomic_file::replace`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    atomic_file::replace(path, bytes).map_err(RecordError::io("write", path))
}

/// Writes a value atomically as indented JSON, with declared secrets masked.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), RecordError> {
    write_atomic(path, &json_text(path, value)?)
}

/// The text that [`write_json`] writes to `path`.
///
/// # Errors
/// If the value cannot be represented in JSON.
pub fn json_text<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>, RecordError> {
    // Where records are written, in every text of a value.
    let text = mask_declared_in(value).and_then(|masked| match masked {
        Some(masked) => serde_json::to_vec_pretty(&masked),
        None => serde_json::to_vec_pretty(value),
    });
    let mut text = text.map_err(|error| RecordError::io("write", path)(error.into()))?;
    text.push(b'\n');
    Ok(text)
}

/// A value with declared secrets masked; `None` if no secret is declared.
pub(crate) fn mask_declared_in<T: Serialize>(value: &T) -> serde_json::Result<Option<serde_json::Value>> {
    secrets::has_declared_secrets().then(|| serde_json::to_value(value).map(secrets::mask_declared_json)).transpose()
}

/// The path of a file below `root`, relative to it.
///
/// # Errors
/// If it is not below `root`.
pub fn relative_to<'a>(root: &Path, path: &'a Path) -> io::Result<&'a Path> {
    path.strip_prefix(root).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "it is outside of the folder"))
}

/// Reads a regular file below `root`, of at most [`MAX_FILE`] bytes; `None` if it does not exist. The folder may come
/// from somebody else: see [`contained_file`].
///
/// # Errors
/// If the path leads out of `root`, or the file is no regular file, too large or unreadable.
pub fn read(root: &Path, path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    match relative_to(root, path).and_then(|relative| contained_file::read(root, relative, MAX_FILE)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError::io("read", path)(error)),
    }
}

/// Reads a value from a JSON file below `root`, as [`read`] does; `None` if the file does not exist.
///
/// # Errors
/// As for [`read`], or if it has other content.
pub fn read_json<T: DeserializeOwned>(root: &Path, path: &Path) -> Result<Option<T>, RecordError> {
    let Some(text) = read(root, path)? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|error| RecordError::Damaged {
        path: path.to_owned(),
        line: error.line(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_atomically_without_leaving_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_json(&path, &[1, 2]).unwrap();
        write_json(&path, &[3]).unwrap();
        assert_eq!(read_json::<Vec<i32>>(folder.path(), &path).unwrap().unwrap(), [3]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(read_json::<Vec<i32>>(folder.path(), &folder.path().join("none")).unwrap(), None);
    }

    #[test]
    fn invalid_json_is_reported_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "[1,\n}").unwrap();
        let error = read_json::<Vec<i32>>(folder.path(), &path).unwrap_err();
        assert!(error.to_string().contains("a.json:2"), "{error}");
    }
}

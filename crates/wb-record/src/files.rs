//! Reading and atomic writing of files.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_model::secrets;
use wb_sys::atomic_file;

use crate::RecordError;

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
    let text = mask_declared_in(value).and_then(|masked| match masked {
        Some(masked) => serde_json::to_vec_pretty(&masked),
        None => serde_json::to_vec_pretty(value),
    });
    let mut text =
        text.map_err(|error| RecordError::Io { operation: "write", path: path.to_owned(), source: error.into() })?;
    text.push(b'\n');
    Ok(text)
}

/// A value with declared secrets masked; `None` if no secret is declared.
pub(crate) fn mask_declared_in<T: Serialize>(value: &T) -> serde_json::Result<Option<serde_json::Value>> {
    secrets::has_declared_secrets().then(|| serde_json::to_value(value).map(secrets::mask_declared_json)).transpose()
}

/// Reads a value from a JSON file; `None` if the file does not exist.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RecordError::io("read", path)(error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| RecordError::Damaged {
        path: path.to_owned(),
        line: error.line(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_atomically_without_leaving_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_json(&path, &[1, 2]).unwrap();
        write_json(&path, &[3]).unwrap();
        assert_eq!(read_json::<Vec<i32>>(&path).unwrap().unwrap(), [3]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(read_json::<Vec<i32>>(&folder.path().join("none")).unwrap(), None);
    }

    #[test]
    fn invalid_json_is_reported_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "[1,\n}").unwrap();
        let error = read_json::<Vec<i32>>(&path).unwrap_err();
        assert!(error.to_string().contains("a.json:2"), "{error}");
    }
}

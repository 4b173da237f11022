//! Writing so that a file is either the old one or the new one, also after a power cut.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_model::secrets;

use crate::RecordError;

/// Writes a file whole: beside it first, flushed to the device, then put in its place.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let beside = path.with_file_name(format!(
        ".{}.{}.new",
        path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default(),
        std::process::id()
    ));
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    if written.is_err() {
        // What was begun beside it is of no use to anyone; the error to tell is the first one.
        let _ = fs::remove_file(&beside);
    }
    written.map_err(RecordError::io("write", path))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    sync_folder(folder.unwrap_or(Path::new(".")))
}

/// Makes the entries of a folder lasting.
pub fn sync_folder(path: &Path) -> Result<(), RecordError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(RecordError::io("sync", path))
}

/// Writes a value as JSON that people can read, whole, and with every declared secret masked.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), RecordError> {
    write_atomic(path, &json_text(path, value)?)
}

/// The text that [`write_json`] writes to `path`.
///
/// # Errors
/// When the value has no form in JSON.
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

/// A value with every declared secret masked, where any is declared.
pub(crate) fn mask_declared_in<T: Serialize>(value: &T) -> serde_json::Result<Option<serde_json::Value>> {
    secrets::has_declared_secrets().then(|| serde_json::to_value(value).map(secrets::mask_declared_json)).transpose()
}

/// Reads a value from JSON; nothing where there is no file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RecordError::io("read", path)(error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| RecordError::Damaged {
        path: path.to_owned(),
        line: error.line(),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_json(&path, &[1, 2]).unwrap();
        write_json(&path, &[3]).unwrap();
        assert_eq!(read_json::<Vec<i32>>(&path).unwrap().unwrap(), [3]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(read_json::<Vec<i32>>(&folder.path().join("none")).unwrap(), None);
    }

    #[test]
    fn what_is_no_json_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "[1,\n}").unwrap();
        let error = read_json::<Vec<i32>>(&path).unwrap_err();
        assert!(error.to_string().contains("a.json:2"), "{error}");
    }
}

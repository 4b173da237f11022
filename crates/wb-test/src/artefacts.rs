//! Access to the files of one attempt.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use wb_record::files::MAX_FILE;
use wb_sys::contained_file;

use crate::Rejection;

/// The folder of one attempt. Only regular files in it are read: a run may come from somebody else.
#[derive(Debug, Clone)]
pub struct Artefacts {
    root: PathBuf,
    /// Relative to the root.
    folder: PathBuf,
}

impl Artefacts {
    pub fn new(folder: &Path) -> Self {
        Self::of_run(folder, Path::new(""))
    }

    /// Artefacts in a folder of a run; `folder` is relative to the run folder.
    pub fn of_run(run: &Path, folder: &Path) -> Self {
        Self { root: run.to_owned(), folder: folder.to_owned() }
    }

    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, Rejection> {
        contained_file::read(&self.root, &self.folder.join(name), MAX_FILE)
            .map_err(|error| Rejection::output(format!("missing artefact `{name}`: {error}")))
    }

    /// Length of a file in bytes.
    pub fn length(&self, name: &str) -> Result<u64, Rejection> {
        let metadata = contained_file::metadata(&self.root, &self.folder.join(name));
        Ok(metadata.map_err(|error| Rejection::output(format!("missing artefact `{name}`: {error}")))?.len())
    }

    /// Text of a file; bytes that are not UTF-8 become replacement characters.
    pub fn text(&self, name: &str) -> Result<String, Rejection> {
        Ok(String::from_utf8_lossy(&self.bytes(name)?).into_owned())
    }

    pub fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Rejection> {
        serde_json::from_slice(&self.bytes(name)?)
            .map_err(|error| Rejection::output(format!("invalid `{name}`: {error}")))
    }

    /// Run time of a process in seconds, from its `NAME.process.json`; none if it was not recorded.
    pub fn process_seconds(&self, name: &str) -> Result<Option<f64>, Rejection> {
        let process: serde_json::Value = self.json(&format!("{name}.process.json"))?;
        Ok(process.get("elapsed-seconds").and_then(serde_json::Value::as_f64))
    }

    /// Names that start with `prefix`, sorted.
    pub fn names_with_prefix(&self, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(&self.folder)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort();
        names
    }
}

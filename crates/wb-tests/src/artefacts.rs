//! Access to the files of one attempt.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::Rejection;

/// The folder of one attempt.
#[derive(Debug, Clone)]
pub struct Artefacts {
    folder: PathBuf,
}

impl Artefacts {
    /// The artefacts in this folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// A file's bytes.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, Rejection> {
        std::fs::read(self.folder.join(name))
            .map_err(|error| Rejection::output(format!("missing artefact `{name}`: {error}")))
    }

    /// A file's length in bytes.
    pub fn length(&self, name: &str) -> Result<u64, Rejection> {
        let metadata = std::fs::metadata(self.folder.join(name));
        Ok(metadata.map_err(|error| Rejection::output(format!("missing artefact `{name}`: {error}")))?.len())
    }

    /// A file's text; bytes that are not UTF-8 become replacement characters.
    pub fn text(&self, name: &str) -> Result<String, Rejection> {
        Ok(String::from_utf8_lossy(&self.bytes(name)?).into_owned())
    }

    /// A file's JSON.
    pub fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Rejection> {
        serde_json::from_slice(&self.bytes(name)?)
            .map_err(|error| Rejection::output(format!("invalid `{name}`: {error}")))
    }

    /// The names of files that start with `prefix`, sorted.
    pub fn names_with_prefix(&self, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort();
        names
    }
}

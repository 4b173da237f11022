//! Copies of result folders of run-perf, which have no hash of what was recorded.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::runperf::folder::ResultFolder;

/// The result files of a folder, by which a copy of it is recognized.
pub(super) struct ResultFiles {
    folder: PathBuf,
    /// Each file below the folder, with its length in bytes.
    files: Vec<(PathBuf, u64)>,
}

impl ResultFiles {
    /// Lists the result files of a folder; reads none of them.
    ///
    /// # Errors
    /// When the length of one cannot be read.
    pub(super) fn of(folder: &Path, listed: &ResultFolder) -> io::Result<Self> {
        let file = |path: &PathBuf| {
            let below = path.strip_prefix(folder).unwrap_or(path).to_owned();
            Ok((below, fs::metadata(path)?.len()))
        };
        let files = listed.results.iter().map(|result| file(&result.path)).collect::<io::Result<_>>()?;
        Ok(Self { folder: folder.to_owned(), files })
    }

    /// Whether both have the same result files, byte by byte. Folders without results are no copies.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn is_copy_of(&self, other: &Self) -> io::Result<bool> {
        if self.files.is_empty() || self.files != other.files {
            return Ok(false);
        }
        for (file, _) in &self.files {
            if fs::read(self.folder.join(file))? != fs::read(other.folder.join(file))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

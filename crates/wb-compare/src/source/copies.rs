//! Detection of copied run-perf result folders, which have no hash of their records.

use std::io;
use std::path::{Path, PathBuf};

use wb_record::files::MAX_FILE;
use wb_sys::contained_file;

use super::folder::ResultFolder;

/// The result files of a folder, by which copies are recognised.
pub(super) struct ResultFiles {
    folder: PathBuf,
    /// Path relative to the folder, and length in bytes.
    files: Vec<(PathBuf, u64)>,
}

impl ResultFiles {
    pub(super) fn new(folder: &Path, listed: &ResultFolder) -> io::Result<Self> {
        let file = |path: &PathBuf| {
            let relative = path.strip_prefix(folder).unwrap_or(path).to_owned();
            let length = contained_file::metadata(folder, &relative)?.len();
            Ok((relative, length))
        };
        let files = listed.results.iter().map(|result| file(&result.path)).collect::<io::Result<_>>()?;
        Ok(Self { folder: folder.to_owned(), files })
    }

    /// Whether both have identical result files. Folders without results are not copies.
    pub(super) fn is_copy_of(&self, other: &Self) -> io::Result<bool> {
        if self.files.is_empty() || self.files != other.files {
            return Ok(false);
        }
        for (file, _) in &self.files {
            let read = |folder: &Path| contained_file::read(folder, file, MAX_FILE);
            if read(&self.folder)? != read(&other.folder)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

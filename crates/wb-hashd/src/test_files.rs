//! The files that requests read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::work_folder::WorkFolder;
use crate::{HashdError, PAGE};

/// Files are as large as this, or larger if there would be too many of them: each needs a descriptor.
const MIN_FILE: u64 = 64 << 20;
const MAX_FILES: u64 = 256;
/// Bytes that are written at once while a file is filled.
const BLOCK: usize = 1 << 20;
/// What must stay free beside the test files and the log.
const RESERVE: u64 = 256 << 20;

/// Files of random data, addressed as one sequence of pages.
#[derive(Debug)]
pub(crate) struct TestFiles {
    files: Vec<File>,
    file_bytes: u64,
    pages: u64,
}

impl TestFiles {
    /// Opens files of `bytes` in total. Those that exist with the right size are used as they are; the others are
    /// created, which `is_cancelled` ends early.
    pub(crate) fn open(folder: &WorkFolder, bytes: u64, is_cancelled: &dyn Fn() -> bool) -> Result<Self, HashdError> {
        let layout = Layout::new(bytes);
        let mut files = Vec::new();
        for (index, name) in layout.names().enumerate() {
            let (file, is_complete) = folder.open_file(&name, Some(layout.file_bytes))?;
            if !is_complete {
                fill(&file, layout.file_bytes, index as u64, is_cancelled).map_err(|error| match error {
                    Some(source) => HashdError::File { path: folder.path().join(&name), source },
                    None => HashdError::Cancelled,
                })?;
            }
            files.push(file);
        }
        // Writing back what was created must not disturb what is measured.
        for (file, name) in files.iter().zip(layout.names()) {
            file.sync_data().map_err(|source| HashdError::File { path: folder.path().join(name), source })?;
        }
        Ok(Self { files, file_bytes: layout.file_bytes, pages: layout.pages() })
    }

    /// Bytes that have to be written for files of `bytes` in total.
    ///
    /// # Errors
    /// If the file system does not have room for them.
    pub(crate) fn missing_bytes(folder: &WorkFolder, bytes: u64) -> Result<u64, HashdError> {
        let layout = Layout::new(bytes);
        let names: Vec<String> = layout.names().collect();
        let reusable = folder.reusable_bytes(names.iter().map(String::as_str), layout.file_bytes);
        let required = layout.count * layout.file_bytes - reusable;
        let free = folder.free_bytes()?;
        if required > 0 && required + RESERVE > free {
            return Err(HashdError::DiskSpace { required, free, path: folder.path().to_owned() });
        }
        Ok(required)
    }

    /// Pages of all files.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Reads a chunk that begins with the page `first`, and returns a checksum of the first words of its pages.
    pub(crate) fn read_chunk(&self, first: u64, buffer: &mut [u8]) -> io::Result<u64> {
        let mut position = first * PAGE as u64;
        let mut rest = &mut buffer[..];
        while !rest.is_empty() {
            let (index, offset) = (position / self.file_bytes, position % self.file_bytes);
            let length = rest.len().min((self.file_bytes - offset) as usize);
            let (part, after) = rest.split_at_mut(length);
            let file = self.files.get(index as usize).ok_or(io::ErrorKind::UnexpectedEof)?;
            file.read_exact_at(part, offset)?;
            position += length as u64;
            rest = after;
        }
        let first_words =
            buffer.chunks_exact(PAGE).filter_map(|page| page.first_chunk().copied().map(u64::from_ne_bytes));
        Ok(first_words.fold(0, |checksum: u64, word| checksum.rotate_left(1) ^ word))
    }
}

/// Number and size of the files for a total size.
struct Layout {
    count: u64,
    file_bytes: u64,
}

impl Layout {
    fn new(bytes: u64) -> Self {
        let bytes = bytes.max(PAGE as u64).next_multiple_of(PAGE as u64);
        let file_bytes = MIN_FILE.min(bytes).max(bytes.div_ceil(MAX_FILES)).next_multiple_of(PAGE as u64);
        Self { count: bytes.div_ceil(file_bytes), file_bytes }
    }

    fn names(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.count).map(|index| format!("hashd-{index:03}.data"))
    }

    fn pages(&self) -> u64 {
        self.count * self.file_bytes / PAGE as u64
    }
}

/// Writes random data. The error is `None` if it was cancelled.
fn fill(file: &File, bytes: u64, seed: u64, is_cancelled: &dyn Fn() -> bool) -> Result<(), Option<io::Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut block = vec![0; BLOCK];
    let mut offset = 0;
    while offset < bytes {
        if is_cancelled() {
            return Err(None);
        }
        let length = (bytes - offset).min(BLOCK as u64) as usize;
        rng.fill_bytes(&mut block[..length]);
        file.write_all_at(&block[..length], offset).map_err(Some)?;
        offset += length as u64;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    fn never() -> bool {
        false
    }

    #[test]
    fn layout_covers_the_size_with_few_files() {
        for bytes in [1, 4096, 10 << 20, 64 << 20, (64 << 20) + 1, 1 << 40] {
            let layout = Layout::new(bytes);
            assert!(layout.count * layout.file_bytes >= bytes && layout.count <= MAX_FILES, "{bytes}");
            assert!(layout.file_bytes.is_multiple_of(PAGE as u64));
        }
        assert_eq!(Layout::new(10 << 20).count, 1);
    }

    #[test]
    fn chunks_continue_in_the_next_file() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), false).unwrap();
        let mut files = TestFiles::open(&folder, 8 << 12, &never).unwrap();
        // The same file twice: what follows its end is its beginning.
        files.files.push(files.files[0].try_clone().unwrap());
        files.pages *= 2;
        let mut chunk = vec![0; 2 * PAGE];
        files.read_chunk(7, &mut chunk).unwrap();
        let mut beginning = vec![0; PAGE];
        files.read_chunk(0, &mut beginning).unwrap();
        assert_eq!(chunk[PAGE..], beginning);
        assert!(files.read_chunk(15, &mut chunk).is_err(), "beyond the last page");
    }

    #[test]
    fn kept_files_are_not_written_again() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), true).unwrap();
        assert_eq!(TestFiles::missing_bytes(&folder, 1 << 20).unwrap(), 1 << 20);
        TestFiles::open(&folder, 1 << 20, &never).unwrap();
        assert_eq!(TestFiles::missing_bytes(&folder, 1 << 20).unwrap(), 0);
        TestFiles::open(&folder, 1 << 20, &|| true).unwrap();
        assert_eq!(TestFiles::missing_bytes(&folder, 2 << 20).unwrap(), 2 << 20, "another size");
    }

    #[test]
    fn creation_can_be_cancelled_and_checks_the_free_space() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), false).unwrap();
        assert!(matches!(TestFiles::open(&folder, 1 << 20, &|| true), Err(HashdError::Cancelled)));
        assert!(matches!(TestFiles::missing_bytes(&folder, 1 << 60), Err(HashdError::DiskSpace { .. })));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}

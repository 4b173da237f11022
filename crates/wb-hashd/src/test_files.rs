//! The files that requests read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::content::PageContent;
use crate::work_folder::WorkFolder;
use crate::{HashdError, PAGE};

/// Bytes of a file: smaller if there is only one, larger if there would be too many of them.
const FILE_BYTES: u64 = 64 << 20;
/// Maximum number of files that are created at once: each needs a descriptor.
const MAX_NEW_FILES: u64 = 256;
/// Bytes that are written at once.
const BLOCK: usize = 1 << 20;
/// Bytes that must stay free beside the test files and the log.
const RESERVE: u64 = 256 << 20;

/// Files of random data, addressed as one sequence of pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestFiles {
    extents: Vec<Extent>,
}

/// A file, with its place in the sequence in bytes.
#[derive(Clone, Debug)]
struct Extent {
    file: Arc<File>,
    start: u64,
    bytes: u64,
}

impl TestFiles {
    /// These files and further ones, of at least `bytes` in total. Existing files of the right size are used as they
    /// are; the others are created, until `is_cancelled`.
    pub(crate) fn extend_to(
        &self,
        bytes: u64,
        folder: &WorkFolder,
        content: PageContent,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, HashdError> {
        let mut files = self.clone();
        let Some(layout) = self.missing(bytes, content) else { return Ok(files) };
        for name in layout.names() {
            let path = folder.path().join(&name);
            let failed = HashdError::file("write", &path);
            let start = files.bytes();
            let (file, is_complete) = folder.open_file(&name, Some(layout.file_bytes))?;
            if !is_complete {
                fill(&file, start / PAGE as u64, layout.file_bytes, content, is_cancelled)
                    .map_err(|error| error.map_or(HashdError::Cancelled, failed))?;
            }
            files.extents.push(Extent { file: Arc::new(file), start, bytes: layout.file_bytes });
        }
        // Writing back what was created must not disturb what is measured.
        for (extent, name) in files.extents[layout.first..].iter().zip(layout.names()) {
            extent.file.sync_data().map_err(HashdError::file("write", &folder.path().join(&name)))?;
        }
        Ok(files)
    }

    /// Bytes that have to be written until there are `bytes` in total. Fails if the file system has no room for them.
    pub(crate) fn missing_bytes(
        &self,
        bytes: u64,
        folder: &WorkFolder,
        content: PageContent,
    ) -> Result<u64, HashdError> {
        let Some(layout) = self.missing(bytes, content) else { return Ok(0) };
        let names: Vec<String> = layout.names().collect();
        let reusable = folder.reusable_bytes(names.iter().map(String::as_str), layout.file_bytes);
        let required = layout.count.saturating_mul(layout.file_bytes).saturating_sub(reusable);
        let free = folder.free_bytes()?;
        if required > 0 && required.saturating_add(RESERVE) > free {
            return Err(HashdError::DiskSpace { required, free, path: folder.path().to_owned() });
        }
        Ok(required)
    }

    fn missing(&self, bytes: u64, content: PageContent) -> Option<Layout> {
        let missing = bytes.max(PAGE as u64).checked_sub(self.bytes()).filter(|missing| *missing > 0)?;
        Some(Layout::new(missing, self.extents.len(), content))
    }

    fn bytes(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.start + extent.bytes)
    }

    pub(crate) fn pages(&self) -> u64 {
        self.bytes() / PAGE as u64
    }

    /// Reads a chunk that begins with the page `first`, and returns a checksum of the first words of its pages.
    pub(crate) fn read_chunk(&self, first: u64, buffer: &mut [u8]) -> io::Result<u64> {
        self.for_each_part(first, buffer, |file, part, offset| file.read_exact_at(part, offset))?;
        Ok(first_words(buffer).fold(0, |checksum: u64, word| checksum.rotate_left(1) ^ word))
    }

    /// Writes a chunk that was read back, with another first word in each page.
    pub(crate) fn rewrite_chunk(&self, first: u64, buffer: &mut [u8]) -> io::Result<()> {
        for page in buffer.chunks_exact_mut(PAGE) {
            if let Some(word) = page.first_chunk_mut() {
                *word = u64::from_ne_bytes(*word).wrapping_add(1).to_ne_bytes();
            }
        }
        self.for_each_part(first, buffer, |file, part, offset| file.write_all_at(part, offset))
    }

    /// Calls `transfer` for each part of a chunk that lies in one file.
    fn for_each_part(
        &self,
        first: u64,
        buffer: &mut [u8],
        transfer: impl Fn(&File, &mut [u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut position = first * PAGE as u64;
        let mut index = self.extents.partition_point(|extent| extent.start + extent.bytes <= position);
        let mut rest = buffer;
        while !rest.is_empty() {
            let extent = self.extents.get(index).ok_or(io::ErrorKind::UnexpectedEof)?;
            let offset = position - extent.start;
            let length = rest.len().min((extent.bytes - offset) as usize);
            let (part, after) = rest.split_at_mut(length);
            transfer(&extent.file, part, offset)?;
            position += length as u64;
            index += 1;
            rest = after;
        }
        Ok(())
    }
}

fn first_words(buffer: &[u8]) -> impl Iterator<Item = u64> {
    buffer.chunks_exact(PAGE).filter_map(|page| page.first_chunk().copied().map(u64::from_ne_bytes))
}

/// Number and size of new files, of which the first has the number `first`.
struct Layout {
    first: usize,
    count: u64,
    file_bytes: u64,
    content: PageContent,
}

impl Layout {
    fn new(bytes: u64, first: usize, content: PageContent) -> Self {
        // More than any file system has; rounding up must not overflow.
        let bytes = bytes.clamp(PAGE as u64, 1 << 62).next_multiple_of(PAGE as u64);
        let file_bytes = FILE_BYTES.min(bytes).max(bytes.div_ceil(MAX_NEW_FILES)).next_multiple_of(PAGE as u64);
        Self { first, count: bytes.div_ceil(file_bytes), file_bytes, content }
    }

    /// The names tell what the files are filled with, so that no other content is used again.
    fn names(&self) -> impl Iterator<Item = String> + use<> {
        let suffix = match self.content.zero_words() {
            0 => String::new(),
            words => format!("-zero-{words}"),
        };
        let first = self.first as u64;
        (first..first + self.count).map(move |index| format!("hashd-{index:03}{suffix}.data"))
    }
}

/// Writes the pages from `first` on. The error is `None` if it was cancelled.
fn fill(
    file: &File,
    first: u64,
    bytes: u64,
    content: PageContent,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<(), Option<io::Error>> {
    let mut block = vec![0; BLOCK];
    let mut offset = 0;
    while offset < bytes {
        if is_cancelled() {
            return Err(None);
        }
        let block = &mut block[..(bytes - offset).min(BLOCK as u64) as usize];
        content.fill(first + offset / PAGE as u64, block);
        file.write_all_at(block, offset).map_err(Some)?;
        offset += block.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    const RANDOM: fn() -> PageContent = || PageContent::new(0.0);

    fn never() -> bool {
        false
    }

    fn open(folder: &WorkFolder, bytes: u64) -> TestFiles {
        TestFiles::default().extend_to(bytes, folder, RANDOM(), &never).unwrap()
    }

    #[test]
    fn layout_covers_the_size_with_few_files() {
        for bytes in [1, 4096, 10 << 20, 64 << 20, (64 << 20) + 1, 1 << 40] {
            let layout = Layout::new(bytes, 0, RANDOM());
            assert!(layout.count * layout.file_bytes >= bytes && layout.count <= MAX_NEW_FILES, "{bytes}");
            assert!(layout.file_bytes.is_multiple_of(PAGE as u64));
        }
        assert_eq!(Layout::new(10 << 20, 0, RANDOM()).count, 1);
    }

    #[test]
    fn chunks_continue_in_files_that_were_added() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), false).unwrap();
        let files = open(&folder, 8 << 12);
        let mut chunk = vec![0; 2 * PAGE];
        assert!(files.read_chunk(7, &mut chunk).is_err(), "beyond the last page");
        let larger = files.extend_to(13 << 12, &folder, RANDOM(), &never).unwrap();
        assert_eq!((files.pages(), larger.pages()), (8, 13));
        larger.read_chunk(7, &mut chunk).unwrap();
        let mut expected = vec![0; 2 * PAGE];
        RANDOM().fill(7, &mut expected);
        assert_eq!(chunk, expected);
        assert!(larger.read_chunk(12, &mut chunk).is_err());
    }

    #[test]
    fn rewritten_pages_differ_in_their_first_word() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), false).unwrap();
        let files = open(&folder, 8 << 12).extend_to(16 << 12, &folder, RANDOM(), &never).unwrap();
        let mut chunk = vec![0; 3 * PAGE];
        let before = files.read_chunk(6, &mut chunk).unwrap();
        files.rewrite_chunk(6, &mut chunk).unwrap();
        assert_ne!(files.read_chunk(6, &mut chunk).unwrap(), before);
        let expected = RANDOM().word(7, 0).wrapping_add(1);
        assert_eq!(chunk[PAGE..PAGE + 8], expected.to_ne_bytes());
        assert_eq!(chunk[PAGE + 8..PAGE + 16], RANDOM().word(7, 1).to_ne_bytes());
    }

    #[test]
    fn kept_files_are_not_written_again() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), true).unwrap();
        let missing = |bytes, content| TestFiles::default().missing_bytes(bytes, &folder, content).unwrap();
        assert_eq!(missing(1 << 20, RANDOM()), 1 << 20);
        open(&folder, 1 << 20);
        assert_eq!(missing(1 << 20, RANDOM()), 0);
        TestFiles::default().extend_to(1 << 20, &folder, RANDOM(), &|| true).unwrap();
        assert_eq!(missing(2 << 20, RANDOM()), 2 << 20, "another size");
        assert_eq!(missing(1 << 20, PageContent::new(0.5)), 1 << 20, "another content");
    }

    #[test]
    fn creation_can_be_cancelled_and_checks_the_free_space() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(parent.path(), false).unwrap();
        let files = TestFiles::default();
        let cancelled = files.extend_to(1 << 20, &folder, RANDOM(), &|| true);
        assert!(matches!(cancelled, Err(HashdError::Cancelled)));
        let refused = files.missing_bytes(1 << 60, &folder, RANDOM());
        assert!(matches!(refused, Err(HashdError::DiskSpace { .. })));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}

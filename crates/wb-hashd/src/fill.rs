//! Fills the footprint before it is used, so that its growth is not measured.
//!
//! It is filled as far as memory permits without swapping, beginning with its rarely used edge, so that the pages that
//! requests use most are the most recently used.

use crate::anonymous_memory::AnonymousMemory;
use crate::size::SystemMemory;
use crate::test_files::TestFiles;
use crate::{HashdError, PAGE};

/// Pages of files that are read at once.
const BLOCK_PAGES: u64 = 256;
/// Pages of memory after which a cancellation is noticed.
const CHECK_INTERVAL: u64 = 1024;

/// The centre of the footprint that is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FillPlan {
    anon_pages: u64,
    file_pages: u64,
}

impl FillPlan {
    /// As much of the footprint as fits into memory, where `resident` bytes are filled already. Anonymous memory has
    /// precedence: files can be read again.
    pub(crate) fn new(memory: &AnonymousMemory, file_pages: u64, resident: u64) -> Self {
        let footprint = Self { anon_pages: memory.pages(), file_pages };
        footprint.within(SystemMemory::read().map_or(0, |system| system.available + resident))
    }

    /// The part that fits into this memory, in bytes.
    fn within(self, available: u64) -> Self {
        let pages = available / PAGE as u64;
        let anon_pages = self.anon_pages.min(pages);
        Self { anon_pages, file_pages: self.file_pages.min(pages - anon_pages) }
    }

    pub(crate) fn bytes(self) -> u64 {
        (self.anon_pages + self.file_pages) * PAGE as u64
    }

    /// Fails if it is cancelled, or a file cannot be read.
    pub(crate) fn fill(
        self,
        memory: &AnonymousMemory,
        files: &TestFiles,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), HashdError> {
        for page in (0..self.anon_pages).rev() {
            if page.is_multiple_of(CHECK_INTERVAL) && is_cancelled() {
                return Err(HashdError::Cancelled);
            }
            memory.fill_page(page);
        }
        let mut buffer = vec![0; BLOCK_PAGES as usize * PAGE];
        for first in (0..self.file_pages.div_ceil(BLOCK_PAGES)).rev().map(|block| block * BLOCK_PAGES) {
            if is_cancelled() {
                return Err(HashdError::Cancelled);
            }
            let pages = BLOCK_PAGES.min(self.file_pages - first);
            files
                .read_chunk(first, &mut buffer[..pages as usize * PAGE])
                .map_err(|source| HashdError::Read { source })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_get_what_anonymous_memory_leaves() {
        let footprint = FillPlan { anon_pages: 10, file_pages: 10 };
        let within = |pages: u64| {
            let FillPlan { anon_pages, file_pages } = footprint.within(pages * PAGE as u64);
            (anon_pages, file_pages)
        };
        assert_eq!([within(100), within(13), within(4)], [(10, 10), (10, 3), (4, 0)]);
        assert_eq!(footprint.bytes(), 20 * PAGE as u64);
    }
}

//! Anonymous memory that all requests share, and that grows and shrinks while they use it.
//!
//! Address space is reserved once, and only the number of pages in use changes. So a request needs no lock: one that
//! still touches a page beyond a smaller size gets an empty page, which is released at the next period.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::mm;

use crate::content::{PageContent, WORDS};
use crate::{HashdError, PAGE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Whole,
    /// Reads the first word of each page: enough to need the page.
    FirstWord,
}

/// Anonymous memory in pages, filled with random data as pages are touched.
#[derive(Debug)]
pub(crate) struct AnonymousMemory {
    base: *mut c_void,
    content: PageContent,
    capacity: usize,
    pages: AtomicUsize,
}

// SAFETY: the mapping belongs to this value alone, lives as long as it, and is only accessed as atomic words.
unsafe impl Send for AnonymousMemory {}
// SAFETY: as above.
unsafe impl Sync for AnonymousMemory {}

impl AnonymousMemory {
    /// Reserves address space for `bytes`, at least a page; no page is in use.
    pub(crate) fn reserve(bytes: u64, content: PageContent) -> Result<Self, HashdError> {
        let length = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX).checked_next_multiple_of(PAGE);
        let length = length.unwrap_or(usize::MAX - (PAGE - 1));
        let (protection, flags) =
            (mm::ProtFlags::READ | mm::ProtFlags::WRITE, mm::MapFlags::PRIVATE | mm::MapFlags::NORESERVE);
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { mm::mmap_anonymous(ptr::null_mut(), length, protection, flags) }
            .map_err(|errno| HashdError::Map { bytes: length, source: errno.into() })?;
        Ok(Self { base, content, capacity: length / PAGE, pages: AtomicUsize::new(0) })
    }

    /// Sets the size in use, within the capacity, and releases the pages beyond it.
    pub(crate) fn resize(&self, bytes: u64) {
        let pages = usize::try_from(bytes / PAGE as u64).unwrap_or(usize::MAX).clamp(1, self.capacity);
        self.pages.store(pages, Ordering::Relaxed);
        self.release_unused();
    }

    /// Releases the pages beyond the size in use, which requests that began before it shrank may have touched.
    pub(crate) fn release_unused(&self) {
        let granularity = rustix::param::page_size().max(PAGE);
        let (used, length) = (self.bytes().next_multiple_of(granularity), self.capacity * PAGE);
        if used >= length {
            return;
        }
        // SAFETY: the range lies within the mapping, and its content is accessed as atomic words only, for which it is
        // as if another thread had written zeros.
        let released =
            unsafe { mm::madvise(self.base.cast::<u8>().add(used).cast(), length - used, mm::Advice::LinuxDontNeed) };
        debug_assert!(released.is_ok());
    }

    /// Pages in use.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed) as u64
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.load(Ordering::Relaxed) * PAGE
    }

    /// Reads pages into `buffer` from the page `first` on, as far as there are pages, and writes to each if `is_write`.
    /// Returns a checksum of the first words of the pages.
    pub(crate) fn touch_chunk(&self, first: u64, is_write: bool, touch: Touch, buffer: &mut [u8]) -> u64 {
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let mut checksum = 0u64;
        for (page, target) in (first..self.capacity).zip(buffer.chunks_exact_mut(PAGE)) {
            let words = self.filled_words(page);
            if is_write {
                // Zero marks an empty page.
                words[0].store(words[0].load(Ordering::Relaxed).wrapping_add(1).max(1), Ordering::Relaxed);
            }
            if touch == Touch::Whole {
                for (word, bytes) in words.iter().zip(target.chunks_exact_mut(size_of::<u64>())) {
                    bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
                }
            }
            checksum = checksum.rotate_left(1) ^ words[0].load(Ordering::Relaxed);
        }
        checksum
    }

    pub(crate) fn fill_page(&self, page: u64) {
        if page < self.pages() {
            self.filled_words(page as usize);
        }
    }

    /// Fills the page first if it is empty.
    fn filled_words(&self, page: usize) -> &[AtomicU64; WORDS] {
        let words = self.words(page);
        if words[0].load(Ordering::Relaxed) == 0 {
            // The first word comes last: it marks the page as filled.
            for (index, word) in words.iter().enumerate().rev() {
                word.store(self.content.word(page as u64, index), Ordering::Relaxed);
            }
        }
        words
    }

    fn words(&self, page: usize) -> &[AtomicU64; WORDS] {
        assert!(page < self.capacity);
        // SAFETY: the page lies within the mapping, which is readable, writable and aligned to a page, and lives as long
        // as `self`; zeroed memory is a valid AtomicU64, and nothing accesses it otherwise.
        unsafe { &*self.base.cast::<u8>().add(page * PAGE).cast::<[AtomicU64; WORDS]>() }
    }
}

impl Drop for AnonymousMemory {
    fn drop(&mut self) {
        // SAFETY: the whole mapping belongs to this value, and nothing can borrow from it any more.
        let outcome = unsafe { mm::munmap(self.base, self.capacity * PAGE) };
        debug_assert!(outcome.is_ok());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    const PAGES: usize = 512;

    fn memory(pages: usize) -> AnonymousMemory {
        let memory = AnonymousMemory::reserve((PAGES * PAGE) as u64, PageContent::new(0.0)).unwrap();
        memory.resize((pages * PAGE) as u64);
        memory
    }

    #[test]
    fn touched_pages_hold_random_data_until_they_are_written() {
        let memory = memory(PAGES);
        let mut chunk = vec![0; 3 * PAGE];
        let read = memory.touch_chunk(7, false, Touch::Whole, &mut chunk);
        assert!(chunk.chunks(PAGE).all(|page| page.iter().filter(|&&byte| byte == 0).count() < 64));
        assert_eq!(memory.touch_chunk(7, false, Touch::Whole, &mut chunk), read);
        assert_ne!(memory.touch_chunk(7, true, Touch::Whole, &mut chunk), read);
        let written = memory.touch_chunk(7, false, Touch::Whole, &mut chunk);
        assert_ne!(written, read);
    }

    #[test]
    fn chunk_ends_with_the_memory() {
        let memory = memory(PAGES);
        let mut chunk = vec![0; 4 * PAGE];
        memory.touch_chunk(PAGES as u64 - 1, false, Touch::Whole, &mut chunk);
        assert!(chunk[..PAGE].iter().any(|&byte| byte != 0));
        assert!(chunk[PAGE..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn size_follows_within_the_capacity_and_unused_pages_are_released() {
        let memory = memory(PAGES);
        let mut page = vec![0; PAGE];
        memory.touch_chunk(400, true, Touch::Whole, &mut page);
        let before = memory.words(400)[0].load(Ordering::Relaxed);
        memory.resize((100 * PAGE) as u64);
        assert_eq!(memory.pages(), 100);
        assert_eq!(memory.words(400)[0].load(Ordering::Relaxed), 0, "released pages are zero again, not {before}");
        // A request that began before is not disturbed.
        memory.touch_chunk(400, false, Touch::Whole, &mut page);
        memory.resize(u64::MAX);
        assert_eq!(memory.pages(), PAGES as u64);
    }

    #[test]
    fn page_is_filled_once_and_only_within_the_size() {
        let memory = memory(10);
        memory.fill_page(9);
        memory.fill_page(10);
        let first = |page: usize| memory.words(page)[0].load(Ordering::Relaxed);
        assert_eq!((first(9), first(10)), (PageContent::new(0.0).word(9, 0), 0));
        let mut page = vec![0; PAGE];
        memory.touch_chunk(9, true, Touch::FirstWord, &mut page);
        let written = first(9);
        memory.fill_page(9);
        assert_eq!(first(9), written);
        assert!(page.iter().all(|&byte| byte == 0), "only the first word was read");
    }

    #[test]
    fn threads_share_the_memory_while_its_size_changes() {
        let memory = memory(PAGES);
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let memory = &memory;
                scope.spawn(move || {
                    let mut chunk = vec![0; 8 * PAGE];
                    for round in 0..200 {
                        memory.touch_chunk((thread * 31 + round) % 500, round % 3 == 0, Touch::Whole, &mut chunk);
                    }
                });
            }
            for pages in (1..PAGES).step_by(50) {
                memory.resize((pages * PAGE) as u64);
            }
        });
    }
}

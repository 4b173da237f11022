//! What files and memory are filled with.

use crate::PAGE;

pub(crate) const WORDS: usize = PAGE / size_of::<u64>();
/// A block of 512 bytes has a random and an empty part.
const BLOCK_WORDS: usize = 64;

/// Pseudo-random pages (SplitMix64), of which a part is zero so that they compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageContent {
    random_words: usize,
}

impl PageContent {
    /// `compressibility` is the part that is zero, from 0 to 1.
    pub(crate) fn new(compressibility: f64) -> Self {
        Self { random_words: (BLOCK_WORDS as f64 * (1.0 - compressibility)).round() as usize }
    }

    /// Words of each block of 64 that are zero.
    pub(crate) fn zero_words(self) -> usize {
        BLOCK_WORDS - self.random_words
    }

    /// The first word of a page is never zero, which marks an empty page.
    pub(crate) fn word(self, page: u64, index: usize) -> u64 {
        if index % BLOCK_WORDS >= self.random_words {
            return u64::from(index == 0);
        }
        let state = page
            .wrapping_mul(0xd134_2543_de82_ef95)
            .wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = mixed ^ (mixed >> 31);
        if index == 0 { word.max(1) } else { word }
    }

    /// Fills whole pages, numbered from `first`.
    pub(crate) fn fill(self, first: u64, bytes: &mut [u8]) {
        for (page, bytes) in (first..).zip(bytes.chunks_exact_mut(PAGE)) {
            for (index, word) in bytes.chunks_exact_mut(size_of::<u64>()).enumerate() {
                word.copy_from_slice(&self.word(page, index).to_ne_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_part_of_each_block_is_zero_and_the_first_word_is_not() {
        for (compressibility, zeros) in [(0.0, 0), (0.25, 16), (0.5, 32), (1.0, 64)] {
            let content = PageContent::new(compressibility);
            assert_eq!(content.zero_words(), zeros);
            let words: Vec<u64> = (0..WORDS).map(|index| content.word(7, index)).collect();
            for (block, words) in words.chunks(BLOCK_WORDS).enumerate() {
                let expected = if block == 0 && zeros == BLOCK_WORDS { zeros - 1 } else { zeros };
                assert_eq!(words.iter().filter(|&&word| word == 0).count(), expected, "block {block}");
            }
            assert_ne!(words[0], 0);
        }
    }

    #[test]
    fn pages_differ_and_are_the_same_each_time() {
        let content = PageContent::new(0.5);
        let mut pages = vec![0; 2 * PAGE];
        content.fill(3, &mut pages);
        assert_ne!(pages[..PAGE], pages[PAGE..]);
        let mut again = vec![0; PAGE];
        content.fill(4, &mut again);
        assert_eq!(pages[PAGE..], again);
    }
}

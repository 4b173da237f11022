//! The measured loops of the block-size sweep.

use super::sweep::Access;
use super::words::Words;
use super::words::scalar::Word;
use crate::{Isa, opaque};

/// Reads or writes a block; the arguments are the block, its words and the passes. Reading returns the wrapping sum of
/// all words over all passes, writing sets every word to the number of passes and returns 0.
///
/// # Safety
/// The CPU has the instruction set; the block is valid for that many words and no other thread uses it.
pub(super) type BlockLoop = unsafe fn(*mut u64, usize, u64) -> u64;

/// The loop of an instruction set that [`Isa::require`] has accepted.
pub(super) fn select_loop(op: Access, isa: Isa) -> BlockLoop {
    let (read, write): (BlockLoop, BlockLoop) = match isa {
        Isa::Scalar => (read_scalar, write_scalar),
        #[cfg(target_arch = "x86_64")]
        Isa::Sse2 => (read_sse2, write_sse2),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => (read_avx2, write_avx2),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => (read_avx512, write_avx512),
        #[cfg(not(target_arch = "x86_64"))]
        other => unreachable!("instruction set {other} is checked beforehand"),
    };
    match op {
        Access::Read => read,
        Access::Write => write,
    }
}

macro_rules! blocks {
    ($read:ident, $write:ident, $words:ty $(, $features:literal)?) => {
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn $read(block: *mut u64, words: usize, passes: u64) -> u64 {
            // SAFETY: the caller's promise.
            unsafe { read::<$words>(block, words, passes) }
        }
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn $write(block: *mut u64, words: usize, passes: u64) -> u64 {
            // SAFETY: the caller's promise.
            unsafe { write::<$words>(block, words, passes) }
        }
    };
}

blocks!(read_scalar, write_scalar, Word);
#[cfg(target_arch = "x86_64")]
blocks!(read_sse2, write_sse2, super::words::x86::Words2);
#[cfg(target_arch = "x86_64")]
blocks!(read_avx2, write_avx2, super::words::x86::Words4, "avx2,fma");
#[cfg(target_arch = "x86_64")]
blocks!(read_avx512, write_avx512, super::words::x86::Words8, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma");

/// Vectors per iteration: as many independent sums, so that the additions keep up with two loads per cycle.
const TURN: usize = 8;

/// # Safety
/// As [`BlockLoop`].
#[inline(always)]
unsafe fn read<W: Words>(block: *mut u64, words: usize, passes: u64) -> u64 {
    // SAFETY: no load reaches beyond `words`.
    unsafe {
        let mut sums = [W::splat(0); TURN];
        let mut rest = 0u64;
        for _ in 0..passes {
            let block = opaque::pointer(block);
            let mut k = 0;
            while k + TURN * W::N <= words {
                for (vector, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.add_integer(W::load(block.wrapping_add(k + vector * W::N)));
                }
                k += TURN * W::N;
            }
            while k < words {
                rest = rest.wrapping_add(Word::load(block.wrapping_add(k)).reduce_sum());
                k += 1;
            }
        }
        sums.into_iter().fold(rest, |total, sum| total.wrapping_add(sum.reduce_sum()))
    }
}

/// # Safety
/// As [`BlockLoop`].
#[inline(always)]
unsafe fn write<W: Words>(block: *mut u64, words: usize, passes: u64) -> u64 {
    // SAFETY: no store reaches beyond `words`.
    unsafe {
        for pass in 1..=passes {
            let block = opaque::pointer(block);
            let value = W::splat(pass);
            let mut k = 0;
            while k + TURN * W::N <= words {
                for vector in 0..TURN {
                    value.store(block.wrapping_add(k + vector * W::N));
                }
                k += TURN * W::N;
            }
            while k < words {
                Word::splat(pass).store(block.wrapping_add(k));
                k += 1;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_isa_reads_and_writes_exactly_the_words_of_the_block(words in 0usize..400, passes in 0u64..5) {
            for isa in Isa::available() {
                let mut all: Vec<u64> = (0..410).map(|k| k * k).collect();
                // SAFETY: 410 words are valid, and this CPU has the instruction set.
                let sum = unsafe { select_loop(Access::Read, isa)(all.as_mut_ptr(), words, passes) };
                prop_assert_eq!(sum, passes * all[..words].iter().sum::<u64>(), "{}", isa);
                let before = all.clone();
                // SAFETY: as above.
                unsafe { select_loop(Access::Write, isa)(all.as_mut_ptr(), words, passes) };
                for (k, (&now, &then)) in all.iter().zip(&before).enumerate() {
                    prop_assert_eq!(now, if k < words && passes > 0 { passes } else { then }, "{} at {}", isa, k);
                }
            }
        }
    }
}

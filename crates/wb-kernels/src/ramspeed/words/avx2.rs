//! Four words in 256 bits, with fused multiply-add.

use super::{Words, sse2::Words2};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(in crate::ramspeed) struct Words4(__m256i);

// SAFETY: callers run only where AVX2 and FMA exist, and pointers are valid, both by the trait's contract.
unsafe impl Words for Words4 {
    const N: usize = 4;
    type Narrower = Words2;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: AVX2 and FMA exist.
        Self(unsafe { _mm256_set1_epi64x(word.cast_signed()) })
    }
    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: AVX2 and FMA exist; valid for four words, any alignment.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: AVX2 and FMA exist; valid for four words, any alignment.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut u64) {
        // SAFETY: AVX2 and FMA exist; valid for four words, aligned to their size.
        unsafe { _mm256_stream_si256(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn add_integer(self, other: Self) -> Self {
        // SAFETY: AVX2 and FMA exist.
        Self(unsafe { _mm256_add_epi64(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn add_floating(self, other: Self) -> Self {
        // SAFETY: AVX2 and FMA exist.
        unsafe { Self::bits(_mm256_add_pd(self.floating(), other.floating())) }
    }
    #[inline(always)]
    unsafe fn mul_floating(self, other: Self) -> Self {
        // SAFETY: AVX2 and FMA exist.
        unsafe { Self::bits(_mm256_mul_pd(self.floating(), other.floating())) }
    }
    #[inline(always)]
    unsafe fn mul_add_floating(self, factor: Self, term: Self) -> Self {
        // SAFETY: AVX2 and FMA exist.
        unsafe { Self::bits(_mm256_fmadd_pd(self.floating(), factor.floating(), term.floating())) }
    }
    #[inline(always)]
    unsafe fn reduce_sum(self) -> u64 {
        // SAFETY: both are 256 bits of plain data.
        let words: [u64; 4] = unsafe { std::mem::transmute(self.0) };
        words.into_iter().fold(0, u64::wrapping_add)
    }
}

impl Words4 {
    /// # Safety
    /// AVX2 and FMA exist.
    #[inline(always)]
    unsafe fn floating(self) -> __m256d {
        // SAFETY: the caller's promise.
        unsafe { _mm256_castsi256_pd(self.0) }
    }
    /// # Safety
    /// AVX2 and FMA exist.
    #[inline(always)]
    unsafe fn bits(value: __m256d) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { _mm256_castpd_si256(value) })
    }
}

//! Two words in 128 bits.

use super::{Words, scalar::Word};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(in crate::ramspeed) struct Words2(__m128i);

// SAFETY: SSE2 is part of every x86-64; pointers are valid by the trait's contract.
unsafe impl Words for Words2 {
    const N: usize = 2;
    type Narrower = Word;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: SSE2 exists.
        Self(unsafe { _mm_set1_epi64x(word.cast_signed()) })
    }
    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: SSE2 exists; valid for two words, any alignment.
        Self(unsafe { _mm_loadu_si128(from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: SSE2 exists; valid for two words, any alignment.
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut u64) {
        // SAFETY: SSE2 exists; valid for two words, aligned to their size.
        unsafe { _mm_stream_si128(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn add_integer(self, other: Self) -> Self {
        // SAFETY: SSE2 exists.
        Self(unsafe { _mm_add_epi64(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn add_floating(self, other: Self) -> Self {
        // SAFETY: SSE2 exists.
        unsafe { Self::bits(_mm_add_pd(self.floating(), other.floating())) }
    }
    #[inline(always)]
    unsafe fn mul_floating(self, other: Self) -> Self {
        // SAFETY: SSE2 exists.
        unsafe { Self::bits(_mm_mul_pd(self.floating(), other.floating())) }
    }
    #[inline(always)]
    unsafe fn mul_add_floating(self, factor: Self, term: Self) -> Self {
        // SAFETY: SSE2 exists.
        unsafe { self.mul_floating(factor).add_floating(term) }
    }
    #[inline(always)]
    unsafe fn reduce_sum(self) -> u64 {
        // SAFETY: both are 128 bits of plain data.
        let words: [u64; 2] = unsafe { std::mem::transmute(self.0) };
        words.into_iter().fold(0, u64::wrapping_add)
    }
}

impl Words2 {
    /// # Safety
    /// SSE2 exists.
    #[inline(always)]
    unsafe fn floating(self) -> __m128d {
        // SAFETY: the caller's promise.
        unsafe { _mm_castsi128_pd(self.0) }
    }
    /// # Safety
    /// SSE2 exists.
    #[inline(always)]
    unsafe fn bits(value: __m128d) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { _mm_castpd_si128(value) })
    }
}

//! Eight words in 512 bits.

use super::{Words, avx2::Words4};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(in crate::ramspeed) struct Words8(__m512i);

// SAFETY: callers run only where AVX-512 F, VL, DQ and BW exist, and pointers are valid, both by the trait's contract.
unsafe impl Words for Words8 {
    const N: usize = 8;
    type Narrower = Words4;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: AVX-512F exists.
        Self(unsafe { _mm512_set1_epi64(word.cast_signed()) })
    }
    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: AVX-512F exists; valid for eight words, any alignment.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: AVX-512F exists; valid for eight words, any alignment.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut u64) {
        // SAFETY: AVX-512F exists; valid for eight words, aligned to their size.
        unsafe { _mm512_stream_si512(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn add_integer(self, other: Self) -> Self {
        // SAFETY: AVX-512F exists.
        Self(unsafe { _mm512_add_epi64(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn add_floating(self, other: Self) -> Self {
        // SAFETY: AVX-512F exists.
        unsafe { Self::bits(_mm512_add_pd(self.floating(), other.floating())) }
    }
    #[inline(always)]
    unsafe fn mul_floating(self, other: Self) -> Self {
        // SAFETY: AVX-512F exists.
        unsafe { Self::bits(_mm512_mul_pd(self.floating(), other.floating())) }
    }
    #[inline(always)]
    unsafe fn mul_add_floating(self, factor: Self, term: Self) -> Self {
        // SAFETY: AVX-512F exists.
        unsafe { Self::bits(_mm512_fmadd_pd(self.floating(), factor.floating(), term.floating())) }
    }
    #[inline(always)]
    unsafe fn reduce_sum(self) -> u64 {
        // SAFETY: both are 512 bits of plain data.
        let words: [u64; 8] = unsafe { std::mem::transmute(self.0) };
        words.into_iter().fold(0, u64::wrapping_add)
    }
}

impl Words8 {
    /// # Safety
    /// AVX-512F exists.
    #[inline(always)]
    unsafe fn floating(self) -> __m512d {
        // SAFETY: the caller's promise.
        unsafe { _mm512_castsi512_pd(self.0) }
    }
    /// # Safety
    /// AVX-512F exists.
    #[inline(always)]
    unsafe fn bits(value: __m512d) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { _mm512_castpd_si512(value) })
    }
}

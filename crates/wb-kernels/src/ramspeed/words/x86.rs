//! Two words in 128 bits, four in 256 bits with fused multiply-add (AVX2 and FMA), and eight in 512 bits (AVX-512 F,
//! VL, DQ and BW).

use super::Words;
use super::scalar::Word;
use std::arch::x86_64::*;

macro_rules! words {
    ($name:ident($register:ty) x $words:literal, remainder $narrower:ty, $splat:ident, $load:ident, $store:ident,
     $stream:ident, $add_integer:ident, $add:ident, $mul:ident, |$a:ident, $factor:ident, $term:ident| $mul_add:expr,
     $to_floating:ident, $to_bits:ident) => {
        #[derive(Clone, Copy)]
        pub(in crate::ramspeed) struct $name($register);

        // SAFETY: callers run only where the instruction set exists, and pointers are valid, both by the trait's
        // contract.
        unsafe impl Words for $name {
            const N: usize = $words;
            type Narrower = $narrower;

            #[inline(always)]
            unsafe fn splat(word: u64) -> Self {
                // SAFETY: the instruction set exists.
                Self(unsafe { $splat(word.cast_signed()) })
            }
            #[inline(always)]
            unsafe fn load(from: *const u64) -> Self {
                // SAFETY: the instruction set exists; valid for all words, any alignment.
                Self(unsafe { $load(from.cast()) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut u64) {
                // SAFETY: the instruction set exists; valid for all words, any alignment.
                unsafe { $store(to.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn stream(self, to: *mut u64) {
                // SAFETY: the instruction set exists; valid for all words, aligned to their size.
                unsafe { $stream(to.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn add_integer(self, other: Self) -> Self {
                // SAFETY: the instruction set exists.
                Self(unsafe { $add_integer(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn add_floating(self, other: Self) -> Self {
                // SAFETY: the instruction set exists.
                Self(unsafe { $to_bits($add($to_floating(self.0), $to_floating(other.0))) })
            }
            #[inline(always)]
            unsafe fn mul_floating(self, other: Self) -> Self {
                // SAFETY: the instruction set exists.
                Self(unsafe { $to_bits($mul($to_floating(self.0), $to_floating(other.0))) })
            }
            #[inline(always)]
            unsafe fn mul_add_floating(self, factor: Self, term: Self) -> Self {
                // SAFETY: the instruction set exists.
                Self(unsafe {
                    let ($a, $factor, $term) = ($to_floating(self.0), $to_floating(factor.0), $to_floating(term.0));
                    $to_bits($mul_add)
                })
            }
            #[inline(always)]
            unsafe fn reduce_sum(self) -> u64 {
                // SAFETY: both are plain data of one size.
                let words: [u64; $words] = unsafe { std::mem::transmute(self.0) };
                words.into_iter().fold(0, u64::wrapping_add)
            }
        }
    };
}

words!(Words2(__m128i) x 2, remainder Word, _mm_set1_epi64x, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128,
    _mm_add_epi64, _mm_add_pd, _mm_mul_pd, |a, factor, term| _mm_add_pd(_mm_mul_pd(a, factor), term),
    _mm_castsi128_pd, _mm_castpd_si128);
words!(Words4(__m256i) x 4, remainder Words2, _mm256_set1_epi64x, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm256_stream_si256, _mm256_add_epi64, _mm256_add_pd, _mm256_mul_pd,
    |a, factor, term| _mm256_fmadd_pd(a, factor, term), _mm256_castsi256_pd, _mm256_castpd_si256);
words!(Words8(__m512i) x 8, remainder Words4, _mm512_set1_epi64, _mm512_loadu_si512, _mm512_storeu_si512,
    _mm512_stream_si512, _mm512_add_epi64, _mm512_add_pd, _mm512_mul_pd,
    |a, factor, term| _mm512_fmadd_pd(a, factor, term), _mm512_castsi512_pd, _mm512_castpd_si512);

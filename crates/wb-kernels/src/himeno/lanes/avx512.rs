//! Sixteen lanes in 512 bits.

use super::{Lanes, avx2::F32x8};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(in crate::himeno) struct F32x16(__m512);

// SAFETY: callers run only where AVX-512 F, VL, DQ and BW exist, and pointers are valid, both by
// the trait's contract.
unsafe impl Lanes for F32x16 {
    const N: usize = 16;
    type Narrower = F32x8;
    type Sum = (__m512d, __m512d);

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: AVX-512F exists.
        Self(unsafe { _mm512_set1_ps(value) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: AVX-512F exists; valid for sixteen elements, any alignment.
        Self(unsafe { _mm512_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: AVX-512F exists; valid for sixteen elements, any alignment.
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: AVX-512F exists.
        Self(unsafe { _mm512_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: AVX-512F exists.
        Self(unsafe { _mm512_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: AVX-512F exists.
        Self(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        // SAFETY: AVX-512F exists.
        Self(unsafe { _mm512_fmadd_ps(self.0, factor.0, term.0) })
    }
    #[inline(always)]
    unsafe fn zero_sum() -> Self::Sum {
        // SAFETY: AVX-512F exists.
        unsafe { (_mm512_setzero_pd(), _mm512_setzero_pd()) }
    }
    #[inline(always)]
    unsafe fn add_squares(self, sum: Self::Sum) -> Self::Sum {
        // SAFETY: AVX-512F and DQ exist.
        unsafe {
            let low = _mm512_cvtps_pd(_mm512_castps512_ps256(self.0));
            let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(self.0));
            (_mm512_fmadd_pd(low, low, sum.0), _mm512_fmadd_pd(high, high, sum.1))
        }
    }
    #[inline(always)]
    unsafe fn reduce_sum(sum: Self::Sum) -> f64 {
        // SAFETY: AVX-512F exists.
        unsafe { _mm512_reduce_add_pd(_mm512_add_pd(sum.0, sum.1)) }
    }
}

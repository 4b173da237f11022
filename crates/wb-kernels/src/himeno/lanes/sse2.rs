//! Four lanes in 128 bits.

use super::{Lanes, scalar::F32x1};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(in crate::himeno) struct F32x4(__m128);

// SAFETY: SSE2 is part of every x86-64; pointers are valid by the trait's contract.
unsafe impl Lanes for F32x4 {
    const N: usize = 4;
    type Narrower = F32x1;
    type Sum = (__m128d, __m128d);

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: SSE2 exists.
        unsafe { Self(_mm_set1_ps(value)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: valid for four elements, any alignment.
        Self(unsafe { _mm_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: valid for four elements, any alignment.
        unsafe { _mm_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: SSE2 exists.
        unsafe { Self(_mm_add_ps(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: SSE2 exists.
        unsafe { Self(_mm_sub_ps(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: SSE2 exists.
        unsafe { Self(_mm_mul_ps(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        // SAFETY: SSE2 exists.
        unsafe { Self(_mm_add_ps(_mm_mul_ps(self.0, factor.0), term.0)) }
    }
    #[inline(always)]
    unsafe fn zero_sum() -> Self::Sum {
        // SAFETY: SSE2 exists.
        unsafe { (_mm_setzero_pd(), _mm_setzero_pd()) }
    }
    #[inline(always)]
    unsafe fn add_squares(self, sum: Self::Sum) -> Self::Sum {
        // SAFETY: SSE2 exists.
        unsafe {
            let low = _mm_cvtps_pd(self.0);
            let high = _mm_cvtps_pd(_mm_movehl_ps(self.0, self.0));
            (_mm_add_pd(sum.0, _mm_mul_pd(low, low)), _mm_add_pd(sum.1, _mm_mul_pd(high, high)))
        }
    }
    #[inline(always)]
    unsafe fn reduce_sum(sum: Self::Sum) -> f64 {
        // SAFETY: SSE2 exists.
        unsafe {
            let both = _mm_add_pd(sum.0, sum.1);
            _mm_cvtsd_f64(both) + _mm_cvtsd_f64(_mm_unpackhi_pd(both, both))
        }
    }
}

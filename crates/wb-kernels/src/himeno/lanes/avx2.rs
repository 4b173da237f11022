//! Eight lanes in 256 bits, with fused multiply-add.

use super::{Lanes, sse2::F32x4};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(in crate::himeno) struct F32x8(__m256);

// SAFETY: callers run only where AVX2 and FMA exist, and pointers are valid, both by the trait's
// contract.
unsafe impl Lanes for F32x8 {
    const N: usize = 8;
    type Narrower = F32x4;
    type Sum = (__m256d, __m256d);

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: AVX exists.
        Self(unsafe { _mm256_set1_ps(value) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: AVX exists; valid for eight elements, any alignment.
        Self(unsafe { _mm256_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: AVX exists; valid for eight elements, any alignment.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: AVX exists.
        Self(unsafe { _mm256_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: AVX exists.
        Self(unsafe { _mm256_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: AVX exists.
        Self(unsafe { _mm256_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        // SAFETY: FMA exists.
        Self(unsafe { _mm256_fmadd_ps(self.0, factor.0, term.0) })
    }
    #[inline(always)]
    unsafe fn zero_sum() -> Self::Sum {
        // SAFETY: AVX exists.
        unsafe { (_mm256_setzero_pd(), _mm256_setzero_pd()) }
    }
    #[inline(always)]
    unsafe fn add_squares(self, sum: Self::Sum) -> Self::Sum {
        // SAFETY: AVX and FMA exist.
        unsafe {
            let low = _mm256_cvtps_pd(_mm256_castps256_ps128(self.0));
            let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self.0));
            (_mm256_fmadd_pd(low, low, sum.0), _mm256_fmadd_pd(high, high, sum.1))
        }
    }
    #[inline(always)]
    unsafe fn reduce_sum(sum: Self::Sum) -> f64 {
        // SAFETY: AVX exists.
        unsafe {
            let all = _mm256_add_pd(sum.0, sum.1);
            let two = _mm_add_pd(_mm256_castpd256_pd128(all), _mm256_extractf128_pd::<1>(all));
            _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))
        }
    }
}

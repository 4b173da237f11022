//! Four lanes in 128 bits, eight in 256 bits with fused multiply-add (AVX2 and FMA), and sixteen in 512 bits (AVX-512 F,
//! VL, DQ and BW).

use super::Lanes;
use super::scalar::F32x1;
use std::arch::x86_64::*;

macro_rules! lanes {
    ($name:ident($register:ty) x $lanes:literal, remainder $narrower:ty, sum $double:ty, $splat:ident, $load:ident,
     $store:ident, $add:ident, $sub:ident, $mul:ident, $zero:ident,
     |$a:ident, $factor:ident, $term:ident| $mul_add:expr,
     |$values:ident, $sum:ident| $add_squares:expr, |$first:ident, $second:ident| $reduce_sum:expr) => {
        #[derive(Clone, Copy)]
        pub(in crate::himeno) struct $name($register);

        // SAFETY: callers run only where the instruction set exists, and pointers are valid, both by the trait's
        // contract.
        unsafe impl Lanes for $name {
            const N: usize = $lanes;
            type Narrower = $narrower;
            type Sum = ($double, $double);

            #[inline(always)]
            unsafe fn splat(value: f32) -> Self {
                // SAFETY: the instruction set exists.
                unsafe { Self($splat(value)) }
            }
            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: the instruction set exists; valid for all lanes, any alignment.
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: the instruction set exists; valid for all lanes, any alignment.
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the instruction set exists.
                unsafe { Self($add(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: the instruction set exists.
                unsafe { Self($sub(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: the instruction set exists.
                unsafe { Self($mul(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
                let ($a, $factor, $term) = (self.0, factor.0, term.0);
                // SAFETY: the instruction set exists.
                unsafe { Self($mul_add) }
            }
            #[inline(always)]
            unsafe fn zero_sum() -> Self::Sum {
                // SAFETY: the instruction set exists.
                unsafe { ($zero(), $zero()) }
            }
            #[inline(always)]
            unsafe fn add_squares(self, sum: Self::Sum) -> Self::Sum {
                let ($values, $sum) = (self.0, sum);
                // SAFETY: the instruction set exists.
                unsafe { $add_squares }
            }
            #[inline(always)]
            unsafe fn reduce_sum(($first, $second): Self::Sum) -> f64 {
                // SAFETY: the instruction set exists.
                unsafe { $reduce_sum }
            }
        }
    };
}

lanes!(F32x4(__m128) x 4, remainder F32x1, sum __m128d, _mm_set1_ps, _mm_loadu_ps, _mm_storeu_ps, _mm_add_ps,
_mm_sub_ps, _mm_mul_ps, _mm_setzero_pd,
|a, factor, term| _mm_add_ps(_mm_mul_ps(a, factor), term),
|values, sum| {
    let low = _mm_cvtps_pd(values);
    let high = _mm_cvtps_pd(_mm_movehl_ps(values, values));
    (_mm_add_pd(sum.0, _mm_mul_pd(low, low)), _mm_add_pd(sum.1, _mm_mul_pd(high, high)))
},
|first, second| {
    let both = _mm_add_pd(first, second);
    _mm_cvtsd_f64(both) + _mm_cvtsd_f64(_mm_unpackhi_pd(both, both))
});
lanes!(F32x8(__m256) x 8, remainder F32x4, sum __m256d, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps,
_mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_setzero_pd,
|a, factor, term| _mm256_fmadd_ps(a, factor, term),
|values, sum| {
    let low = _mm256_cvtps_pd(_mm256_castps256_ps128(values));
    let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(values));
    (_mm256_fmadd_pd(low, low, sum.0), _mm256_fmadd_pd(high, high, sum.1))
},
|first, second| {
    let four = _mm256_add_pd(first, second);
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))
});
lanes!(F32x16(__m512) x 16, remainder F32x8, sum __m512d, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps,
    _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_setzero_pd,
    |a, factor, term| _mm512_fmadd_ps(a, factor, term),
    |values, sum| {
        let low = _mm512_cvtps_pd(_mm512_castps512_ps256(values));
        let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(values));
        (_mm512_fmadd_pd(low, low, sum.0), _mm512_fmadd_pd(high, high, sum.1))
    },
    |first, second| _mm512_reduce_add_pd(_mm512_add_pd(first, second)));

//! Vectors of doubles, one type per instruction set, with the operations that the kernels need.

/// A vector register of doubles.
///
/// Every function is inlined into a function that enables the instruction set, so that each operation becomes one
/// instruction. Calling one on a CPU without the instruction set is undefined behaviour: that is why all are unsafe.
pub(super) trait Vector: Copy {
    const LANES: usize;
    /// Whether `minus_product` rounds once instead of twice.
    const FUSED: bool;
    unsafe fn load(from: *const f64) -> Self;
    unsafe fn store(self, to: *mut f64);
    unsafe fn splat(value: f64) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    /// `self − a·b`, fused if the instruction set supports it.
    unsafe fn minus_product(self, a: Self, b: Self) -> Self;
    /// `c − a·b` for one number, rounded as in a register.
    #[inline(always)]
    fn minus_product_scalar(c: f64, a: f64, b: f64) -> f64 {
        if Self::FUSED { (-a).mul_add(b, c) } else { c - a * b }
    }
    unsafe fn max_magnitude(self, other: Self) -> Self;
    /// Prefetches the cache line of `from`; any address is valid.
    #[inline(always)]
    unsafe fn prefetch(_from: *const f64) {}
}

impl Vector for f64 {
    const LANES: usize = 1;
    const FUSED: bool = false;
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: the caller's pointer.
        unsafe { from.read() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: the caller's pointer.
        unsafe { to.write(self) }
    }
    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        value
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    unsafe fn minus_product(self, a: Self, b: Self) -> Self {
        self - a * b
    }
    #[inline(always)]
    unsafe fn max_magnitude(self, other: Self) -> Self {
        self.max(other.abs())
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($name:ident($register:ty) x $lanes:literal, fused $fused:literal, $load:ident, $store:ident, $splat:ident,
         $add:ident, |$c:ident, $a:ident, $b:ident| $minus_product:expr,
         |$m:ident, $v:ident| $max_magnitude:expr) => {
            #[derive(Clone, Copy)]
            pub(in super::super) struct $name($register);

            impl Vector for $name {
                const LANES: usize = $lanes;
                const FUSED: bool = $fused;
                #[inline(always)]
                unsafe fn load(from: *const f64) -> Self {
                    // SAFETY: the caller guarantees the instruction set and a valid pointer; no alignment is needed.
                    Self(unsafe { $load(from) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut f64) {
                    // SAFETY: the caller guarantees the instruction set and a valid pointer; no alignment is needed.
                    unsafe { $store(to, self.0) }
                }
                #[inline(always)]
                unsafe fn splat(value: f64) -> Self {
                    // SAFETY: the caller guarantees the instruction set.
                    Self(unsafe { $splat(value) })
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: the caller guarantees the instruction set.
                    Self(unsafe { $add(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn minus_product(self, a: Self, b: Self) -> Self {
                    let ($c, $a, $b) = (self.0, a.0, b.0);
                    // SAFETY: the caller guarantees the instruction set.
                    Self(unsafe { $minus_product })
                }
                #[inline(always)]
                unsafe fn max_magnitude(self, other: Self) -> Self {
                    let ($m, $v) = (self.0, other.0);
                    // SAFETY: the caller guarantees the instruction set.
                    Self(unsafe { $max_magnitude })
                }
                #[inline(always)]
                unsafe fn prefetch(from: *const f64) {
                    // SAFETY: the caller guarantees the instruction set; a prefetch of any address is allowed.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
                }
            }
        };
    }

    vector!(Sse2(__m128d) x 2, fused false, _mm_loadu_pd, _mm_storeu_pd, _mm_set1_pd, _mm_add_pd,
        |c, a, b| _mm_sub_pd(c, _mm_mul_pd(a, b)),
        |m, v| _mm_max_pd(m, _mm_andnot_pd(_mm_set1_pd(-0.0), v)));
    vector!(Avx2(__m256d) x 4, fused true, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_add_pd,
        |c, a, b| _mm256_fnmadd_pd(a, b, c),
        |m, v| _mm256_max_pd(m, _mm256_andnot_pd(_mm256_set1_pd(-0.0), v)));
    vector!(Avx512(__m512d) x 8, fused true, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_add_pd,
        |c, a, b| _mm512_fnmadd_pd(a, b, c),
        |m, v| _mm512_max_pd(m, _mm512_abs_pd(v)));
}

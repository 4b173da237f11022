//! One lane. Loads and stores are volatile, so that they are neither merged nor vectorised, and results are opaque, so
//! that no two of them are combined into a vector. A test disassembles the loops.

use super::Lanes;
use crate::opaque::{double, single};

#[derive(Clone, Copy)]
pub(in crate::himeno) struct F32x1(f32);

// SAFETY: needs no instruction set beyond the target's own.
unsafe impl Lanes for F32x1 {
    const N: usize = 1;
    type Narrower = Self;
    type Sum = f64;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self(value)
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: valid for one element by the trait's contract.
        Self(unsafe { from.read_volatile() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: valid for one element by the trait's contract.
        unsafe { to.write_volatile(self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(single(self.0 + other.0))
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Self(single(self.0 - other.0))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(single(self.0 * other.0))
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(single(single(self.0 * factor.0) + term.0))
    }
    #[inline(always)]
    unsafe fn zero_sum() -> f64 {
        0.0
    }
    #[inline(always)]
    unsafe fn add_squares(self, sum: f64) -> f64 {
        let wide = double(f64::from(self.0));
        sum + double(wide * wide)
    }
    #[inline(always)]
    unsafe fn reduce_sum(sum: f64) -> f64 {
        sum
    }
}

//! One word. Loads and stores are volatile, so that they are neither merged nor vectorised nor turned into a call of
//! memcpy, and results are opaque, so that no two of them are combined into a vector. A test disassembles the loops.

use super::Words;
use crate::opaque::double;

#[derive(Clone, Copy)]
pub(in crate::ramspeed) struct Word(u64);

impl Word {
    #[inline(always)]
    fn floating(self) -> f64 {
        f64::from_bits(self.0)
    }
}

// SAFETY: needs no instruction set beyond the target's own.
unsafe impl Words for Word {
    const N: usize = 1;
    type Narrower = Self;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        Self(word)
    }
    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: valid for one word by the trait's contract.
        Self(unsafe { from.read_volatile() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: valid for one word by the trait's contract.
        unsafe { to.write_volatile(self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut u64) {
        // SAFETY: valid for one word by the trait's contract; MOVNTI is part of SSE2, hence of
        // every x86-64.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::x86_64::_mm_stream_si64(to.cast(), self.0.cast_signed());
        }
        // SAFETY: as above; on other architectures a run with non-temporal stores is refused before it starts.
        #[cfg(not(target_arch = "x86_64"))]
        unsafe {
            self.store(to);
        }
    }
    #[inline(always)]
    unsafe fn add_integer(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
    #[inline(always)]
    unsafe fn add_floating(self, other: Self) -> Self {
        Self(double(self.floating() + other.floating()).to_bits())
    }
    #[inline(always)]
    unsafe fn mul_floating(self, other: Self) -> Self {
        Self(double(self.floating() * other.floating()).to_bits())
    }
    #[inline(always)]
    unsafe fn mul_add_floating(self, factor: Self, term: Self) -> Self {
        Self(double(double(self.floating() * factor.floating()) + term.floating()).to_bits())
    }
    #[inline(always)]
    unsafe fn reduce_sum(self) -> u64 {
        self.0
    }
}

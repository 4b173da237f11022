//! Vectors of 64-bit words of one width, one type per instruction set. A word is an `i64` or the bits of an `f64`, as
//! the operation takes it.

pub(super) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

/// A vector of 64-bit words.
///
/// # Safety
/// Every method may be called only where the CPU has the instruction set of the implementation; pointers must be valid
/// for [`Words::N`] words, and aligned to the size of the vector for `stream`.
pub(super) unsafe trait Words: Copy {
    /// Number of words.
    const N: usize;
    /// The next narrower vector, for the remainder of an array. `Self` for one word.
    type Narrower: Words;

    unsafe fn splat(word: u64) -> Self;
    unsafe fn load(from: *const u64) -> Self;
    unsafe fn store(self, to: *mut u64);
    /// Stores with a non-temporal hint, bypassing the caches.
    unsafe fn stream(self, to: *mut u64);

    /// Integer sum, wrapping.
    unsafe fn add_integer(self, other: Self) -> Self;
    unsafe fn add_floating(self, other: Self) -> Self;
    unsafe fn mul_floating(self, other: Self) -> Self;
    /// `self × factor + term`, fused if the instruction set supports it.
    unsafe fn mul_add_floating(self, factor: Self, term: Self) -> Self;
    /// Wrapping sum of the words.
    unsafe fn reduce_sum(self) -> u64;
}

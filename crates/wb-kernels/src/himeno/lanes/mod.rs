//! Vectors of `f32` of one width, one type per instruction set. The stencil is written once over [`Lanes`]; each width
//! becomes its own machine code.

pub(super) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

/// A vector of `f32`.
///
/// # Safety
/// Every method may be called only where the CPU has the instruction set of the implementation, and pointers must be
/// valid for [`Lanes::N`] elements.
pub(super) unsafe trait Lanes: Copy {
    const N: usize;
    /// The next narrower vector, for the remainder of a row. `Self` for one lane.
    type Narrower: Lanes;
    /// A running sum of squares in 64 bits.
    type Sum: Copy;

    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self × factor + term`, fused if the instruction set supports it.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;

    unsafe fn zero_sum() -> Self::Sum;
    /// `sum + self²`, each lane in 64 bits.
    unsafe fn add_squares(self, sum: Self::Sum) -> Self::Sum;
    unsafe fn reduce_sum(sum: Self::Sum) -> f64;
}

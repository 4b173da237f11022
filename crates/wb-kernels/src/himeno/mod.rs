//! Himeno: Jacobi iterations of a 19-point stencil over 14 arrays in 32 bits (R. Himeno, RIKEN, 1996). Bound by memory
//! bandwidth once the arrays exceed the caches.
//!
//! An iteration is as the benchmark defines it: every interior point of `wrk2` is computed from `p` with all twelve
//! coefficient arrays read from memory, then `wrk2` is copied back to `p` in a second pass. The passes are neither
//! fused nor blocked, nor is the copy replaced by a swap, so that figures stay comparable with published ones. GOSA,
//! the sum of the squared residuals of the last sweep, is summed in 64 bits.

mod expected;
mod fields;
mod grid;
mod lanes;
#[cfg(test)]
mod reference;
mod run;
mod sweep;

pub use expected::{GosaCheck, check_gosa, expected_gosa};
pub use grid::{Grid, UnknownGrid};
pub use run::{Checkpoint, Config, HimenoReport, run};

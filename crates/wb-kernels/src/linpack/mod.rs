//! linpack: LU factorization with partial pivoting and solve of a dense random system; bound by arithmetic.
//!
//! Only factoring and solving are timed; the system is generated before each repeat, and again after it to check the
//! solution.
//!
//! Start with [`run()`]; `lu` is the algorithm, `panel` and `factor` are its two steps, and the time is spent in
//! `loops`.

mod factor;
mod kernel;
mod loops;
mod lu;
mod matrix;
mod panel;
mod run;
mod system;
mod vector;

use crate::{HugePagePolicy, Isa, Residency, Work};
use kernel::Kernels;
use lu::Workspace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use run::run;

/// Configuration of a linpack run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Number of equations.
    pub n: usize,
    /// Distance between columns in elements, `n` or more.
    pub leading_dimension: usize,
    /// Alignment of the first element in bytes, and exactly this one: the address is not a multiple of twice the
    /// alignment. A power of two from 8 B to 1 MiB. (Intel's linpack and pbench use KiB: their 4 is 4096 here.)
    pub alignment: usize,
    /// The CPUs, one per thread; a CPU listed twice is shared by two threads.
    pub cpus: Vec<usize>,
    /// Huge-page policy of the matrix.
    #[serde(default)]
    pub huge_pages: HugePagePolicy,
    /// Seed of the random system.
    #[serde(default)]
    pub seed: u64,
    /// Amount of measured work: a number of repeats, or a minimum for the sum of their times.
    pub work: Work,
    /// Instruction set of the inner loops; the widest of this CPU by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isa: Option<Isa>,
}

/// Result of a linpack run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LinpackReport {
    /// Billions (10⁹) of floating-point operations per second: the [`operations`] of all repeats over the time of all
    /// repeats.
    pub gflops: f64,
    /// The repeats, in order.
    pub repeats: Vec<Repeat>,
    /// The largest residual of all repeats.
    pub residual: f64,
    /// Instruction set of the inner loops.
    pub isa: Isa,
    /// Number of threads.
    pub threads: usize,
    /// Size of the matrix, and how much of it was on huge pages.
    pub residency: Residency,
}

/// One repeat: the system is factored and solved once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Repeat {
    /// Wall time of factoring and solving.
    pub seconds: f64,
    /// ‖Ax−b‖∞ / (ε(‖A‖∞‖x‖∞+‖b‖∞)n) with ε = 2⁻⁵³, as HPL.
    pub residual: f64,
}

/// Why linpack could not be run with the requested configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("invalid number of equations 0: expected 1 or more")]
    Empty,
    #[error("invalid leading dimension {leading_dimension}: expected {n} or more, the number of equations")]
    LeadingDimension { leading_dimension: usize, n: usize },
    #[error("invalid alignment {0} B: expected a power of two from 8 B to 1 MiB")]
    Alignment(usize),
    #[error("missing work: expected 1 repeat or more, or a finite time above 0 s")]
    NoWork,
    #[error("the matrix of seed {seed} is singular: use another seed")]
    Singular { seed: u64 },
    #[error(transparent)]
    Machine(#[from] crate::Error),
}

/// The residual below which a solution is valid, as in HPL.
pub const RESIDUAL_LIMIT: f64 = 16.0;

/// Whether a residual is small enough for a valid solution; NaN is not.
#[must_use]
pub fn is_valid_residual(residual: f64) -> bool {
    residual < RESIDUAL_LIMIT
}

/// Floating-point operations that count for `n` equations: 2/3 n³ + 3/2 n².
#[must_use]
pub fn operations(n: usize) -> f64 {
    let n = n as f64;
    n * n * (2.0 / 3.0 * n + 1.5)
}

/// Bytes that [`run()`] needs for a configuration, valid or not.
#[must_use]
pub fn required_bytes(config: &Config) -> u64 {
    let isa = config.isa.filter(|isa| isa.require().is_ok()).unwrap_or_else(Isa::widest);
    let matrix = matrix_bytes(config);
    matrix.saturating_add(Workspace::bytes(config.n, config.cpus.len(), &Kernels::new(isa)))
}

/// Size of [A|b] and of the padding before it, which prevents a larger alignment than requested.
fn matrix_bytes(config: &Config) -> u64 {
    (config.leading_dimension as u64)
        .saturating_mul(config.n as u64 + 1)
        .saturating_mul(size_of::<f64>() as u64)
        .saturating_add(config.alignment as u64)
}

#[cfg(test)]
mod tests;

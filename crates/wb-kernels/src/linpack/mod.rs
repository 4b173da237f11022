//! linpack: LU with partial pivoting and solve of a dense random system; bound by arithmetic.
//!
//! Only factoring and solving are timed; before each repeat the system is made anew, and after it
//! the answer is checked against the system made once more.
//!
//! Start with [`run`]; then `lu` is the algorithm, `panel` and `factor` its two steps, `loops`
//! where the time is spent.

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

/// One linpack measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Equations.
    pub n: usize,
    /// Numbers from one column to the next, `n` or more.
    pub leading_dimension: usize,
    /// Bytes that the address of the first element is a multiple of, and twice of which it is not:
    /// a power of two from 8 B to 1 MiB. (Intel's linpack and pbench count it in KiB: their 4 is
    /// 4096 here.)
    pub alignment: usize,
    /// One thread is pinned to each; a CPU named twice is shared.
    pub cpus: Vec<usize>,
    /// Pages that the matrix shall live on.
    #[serde(default)]
    pub huge_pages: HugePagePolicy,
    /// Decides the numbers of the system.
    #[serde(default)]
    pub seed: u64,
    /// How often to factor and solve: so many times, or until the timed parts sum up to so many
    /// seconds.
    pub work: Work,
    /// Instructions of the inner loops; the widest of this CPU where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isa: Option<Isa>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// Floating-point operations per second in units of 10⁹: those of all repeats over the time of
    /// all repeats, counted as [`operations`] does.
    pub gflops: f64,
    /// Each repeat in its order.
    pub repeats: Vec<Repeat>,
    /// The largest residual of all repeats.
    pub residual: f64,
    /// Instructions that the inner loops used.
    pub isa: Isa,
    /// Threads that worked.
    pub threads: usize,
    /// Memory of the matrix and how much of it was on huge pages.
    pub residency: Residency,
}

/// One time factored and solved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Repeat {
    /// Wall time of factoring and solving.
    pub seconds: f64,
    /// ‖Ax−b‖∞ / (ε(‖A‖∞‖x‖∞+‖b‖∞)n) with ε = 2⁻⁵³, as HPL.
    pub residual: f64,
}

/// Why a linpack measurement could not be made as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to solve.
    #[error("a system of 0 equations has no answer: ask for 1 or more")]
    Empty,
    /// Columns would overlap.
    #[error("leading dimension {leading_dimension} is less than the {n} equations: give {n} or more")]
    LeadingDimension {
        /// What was asked for.
        leading_dimension: usize,
        /// Equations.
        n: usize,
    },
    /// No address is aligned so.
    #[error("alignment {0} B is no power of two from 8 B to 1 MiB")]
    Alignment(usize),
    /// Nothing was to be done.
    #[error("no work is asked for: give 1 repeat or a time above 0 s")]
    NoWork,
    /// The matrix had a column without a pivot.
    #[error("the matrix made from seed {seed} is singular: give another seed")]
    Singular {
        /// The seed.
        seed: u64,
    },
    /// CPUs, memory or instruction set.
    #[error(transparent)]
    Machine(#[from] crate::Error),
}

/// The residual below which an answer is right, as HPL judges it.
pub const RESIDUAL_LIMIT: f64 = 16.0;

/// Whether a residual is that of a right answer; NaN is not.
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

/// Bytes that [`run`] needs for a configuration, whether valid or not.
#[must_use]
pub fn required_bytes(config: &Config) -> u64 {
    let isa = config.isa.filter(|isa| isa.require().is_ok()).unwrap_or_else(Isa::widest);
    let matrix = matrix_bytes(config);
    matrix.saturating_add(Workspace::bytes(config.n, config.cpus.len(), &Kernels::of(isa)))
}

/// [A|b], and before it what keeps it from being aligned better than asked.
fn matrix_bytes(config: &Config) -> u64 {
    (config.leading_dimension as u64)
        .saturating_mul(config.n as u64 + 1)
        .saturating_mul(size_of::<f64>() as u64)
        .saturating_add(config.alignment as u64)
}

#[cfg(test)]
mod tests;

//! The system of equations: generated from a seed, and generated again to check the solution.

use super::matrix::MatrixMut;
use std::ops::Range;

/// Relative machine precision as HPL defines it: 2⁻⁵³, half of Rust's epsilon.
const PRECISION: f64 = f64::EPSILON / 2.0;

/// A column of pseudo-random numbers: SplitMix64 (G. Steele et al., 2014), whose state can be computed for any row
/// directly.
struct Uniform(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Uniform {
    fn column(seed: u64, col: usize, first_row: usize) -> Self {
        let start = mix(seed ^ mix((col as u64 + 1).wrapping_mul(GOLDEN)));
        Self(start.wrapping_add((first_row as u64).wrapping_mul(GOLDEN)))
    }
}

impl Iterator for Uniform {
    type Item = f64;

    /// The next number, uniform in −0.5..0.5.
    #[inline]
    fn next(&mut self) -> Option<f64> {
        self.0 = self.0.wrapping_add(GOLDEN);
        Some((mix(self.0) >> 11) as f64 * PRECISION - 0.5)
    }
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Generates columns of [A|b], from column `first` on.
pub(super) fn generate(mut columns: MatrixMut<'_>, first: usize, seed: u64) {
    for col in 0..columns.cols() {
        let column = columns.col_mut(col);
        for (x, value) in column.iter_mut().zip(Uniform::column(seed, first + col, 0)) {
            *x = value;
        }
    }
}

/// Norms of a residual, or of some of its rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResidualNorms {
    /// ‖Ax−b‖∞
    residual: f64,
    a: f64,
    b: f64,
    /// ‖x‖∞, of all of x
    x: f64,
}

impl ResidualNorms {
    /// The norms of some rows of A·x − b.
    pub(super) fn new(x: &[f64], rows: Range<usize>, seed: u64) -> Self {
        let b: Vec<f64> = Uniform::column(seed, x.len(), rows.start).take(rows.len()).collect();
        let (mut residual, mut sums) = (b.clone(), vec![0.0; rows.len()]);
        for (col, &x) in x.iter().enumerate() {
            let column = Uniform::column(seed, col, rows.start);
            for ((residual, sum), a) in residual.iter_mut().zip(&mut sums).zip(column) {
                *residual -= a * x;
                *sum += a.abs();
            }
        }
        Self { residual: infinity_norm(&residual), a: infinity_norm(&sums), b: infinity_norm(&b), x: infinity_norm(x) }
    }

    pub(super) fn merge(self, other: Self) -> Self {
        let larger = |norm: fn(&Self) -> f64| max_or_nan(norm(&self), norm(&other));
        Self { residual: larger(|n| n.residual), a: larger(|n| n.a), b: larger(|n| n.b), x: larger(|n| n.x) }
    }

    /// The scaled residual of x for `n` equations, as in HPL: ‖Ax−b‖∞ / (ε(‖A‖∞‖x‖∞+‖b‖∞)n).
    pub(super) fn residual(self, n: usize) -> f64 {
        self.residual / (PRECISION * (self.a * self.x + self.b) * n as f64)
    }
}

/// ‖v‖∞; NaN if an element is NaN.
fn infinity_norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x.abs()).fold(0.0, max_or_nan)
}

fn max_or_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn residual(x: &[f64], seed: u64) -> f64 {
        ResidualNorms::new(x, 0..x.len(), seed).residual(x.len())
    }

    #[test]
    fn a_column_can_be_generated_from_any_row_on() {
        let whole: Vec<f64> = Uniform::column(7, 3, 0).take(100).collect();
        let part: Vec<f64> = Uniform::column(7, 3, 40).take(60).collect();
        assert_eq!(whole[40..], part);
        assert!(whole.iter().all(|x| (-0.5..0.5).contains(x)));
        assert_ne!(whole[..60], part);
    }

    #[test]
    fn numbers_spread_evenly_and_differ_by_seed_and_column() {
        let mean = Uniform::column(1, 1, 0).take(100_000).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.005, "{mean}");
        let first = |seed, col| Uniform::column(seed, col, 0).next();
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
    }

    #[test]
    fn the_residual_of_one_equation_detects_a_small_error() {
        let a = Uniform::column(5, 0, 0).next().unwrap();
        let b = Uniform::column(5, 1, 0).next().unwrap();
        assert!(residual(&[b / a], 5) < 1.0);
        assert!(residual(&[b / a * 1.000_001], 5) > 1e6);
    }

    #[test]
    fn wrong_and_nan_solutions_are_detected() {
        assert!(residual(&[0.0; 50], 1) > 1e10);
        assert!(residual(&[f64::NAN; 50], 1).is_nan());
    }

    #[test]
    fn norms_of_parts_merge_into_those_of_the_whole() {
        let x: Vec<f64> = Uniform::column(9, 99, 0).take(40).collect();
        let parts = ResidualNorms::new(&x, 0..13, 1).merge(ResidualNorms::new(&x, 13..40, 1));
        assert_eq!(parts.residual(40), residual(&x, 1));
    }
}

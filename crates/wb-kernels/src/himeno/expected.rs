//! The expected GOSA after any number of iterations, in closed form.
//!
//! With the benchmark's coefficients one iteration is a damped Jacobi step for Laplace's equation with fixed
//! boundaries, so the residual obeys r' = (1 − ω + ω·G) r, where G averages the six neighbours and r is zero on the
//! boundary. The initial residual is the constant 1/(3(I−1)²), since p = (i/(I−1))². G's eigenvectors are products of
//! sines; along one axis of `m` points mode `a` has the eigenvalue cos θ with θ = πa/(m−1), and a constant has the
//! squared component 2/(m−1)·cot²(θ/2) for odd `a` and none for even. Hence
//!
//!   GOSA(n) = r₀² Σ C_a C_b C_c λ^(2(n−1)),  λ = 1 − ω + ω(cos θ_a + cos θ_b + cos θ_c)/3
//!
//! and for n = 1 the sum is the number of interior points: (I−2)(J−2)(K−2)/(9(I−1)⁴).

use super::grid::Grid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// How a measured GOSA compares with the exact one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct GosaCheck {
    /// GOSA in exact arithmetic.
    pub expected: f64,
    /// Measured over expected, minus one.
    pub deviation: f64,
    /// The largest deviation that 32-bit fields explain.
    pub tolerance: f64,
    /// Whether the deviation is within the tolerance.
    pub passed: bool,
}

/// Compares GOSA after `iterations` from the initial state with the expected one. `None` for zero iterations, and for
/// so many that only rounding in 32 bits is left of the residual.
#[must_use]
pub fn check_gosa(grid: Grid, iterations: u64, gosa: f64) -> Option<GosaCheck> {
    let expected = expected_gosa(grid, iterations)?;
    let tolerance = tolerance(grid, expected)?;
    let deviation = gosa / expected - 1.0;
    Some(GosaCheck { expected, deviation, tolerance, passed: deviation.abs() <= tolerance })
}

/// GOSA of the last of `iterations` sweeps in exact arithmetic; `None` for zero iterations.
#[must_use]
pub fn expected_gosa(grid: Grid, iterations: u64) -> Option<f64> {
    let power = i32::try_from(iterations.checked_sub(1)?).ok()?;
    let omega = 0.8;
    let [first, second, third] = grid.extent().map(modes);
    let initial = 1.0 / (3.0 * ((grid.extent()[0] - 1) as f64).powi(2));
    let mut sum = 0.0;
    for (a, &(cos_a, size_a)) in first.iter().enumerate() {
        // There are as many rows as planes: (a, b) and (b, a) contribute the same.
        for (b, &(cos_b, size_b)) in second.iter().enumerate().take(a + 1) {
            let twice = if a == b { 1.0 } else { 2.0 };
            let along: f64 = third
                .iter()
                .map(|&(cos_c, size_c)| {
                    let lambda = 1.0 - omega + omega * (cos_a + cos_b + cos_c) / 3.0;
                    size_c * (lambda * lambda).powi(power)
                })
                .sum();
            sum += twice * size_a * size_b * along;
        }
    }
    Some(initial * initial * sum)
}

/// Cosine and squared component of each odd mode along an axis.
fn modes(points: usize) -> Vec<(f64, f64)> {
    let spans = (points - 1) as f64;
    (1..points - 1)
        .step_by(2)
        .map(|mode| {
            let angle = PI * mode as f64 / spans;
            (angle.cos(), 2.0 / spans / (angle / 2.0).tan().powi(2))
        })
        .collect()
}

/// The largest deviation that fields in 32 bits explain; `None` if it is too large to be a check.
///
/// One part is constant: `a3` is 1/6 with an error of 5·10⁻⁹, which six neighbours of `p` turn into 3·10⁻⁸·p compared
/// with a residual that starts at 1/(3(I−1)²): with the mean of `p`, a third, GOSA is off by 6·10⁻⁸·(I−1)², from 0.006
/// % on XS to 0.4 % on L and 1.6 % on XL. The other part is the square of rounding over residual, per point, and grows
/// as the residual decays.
fn tolerance(grid: Grid, expected: f64) -> Option<f64> {
    let tolerance = steady_tolerance(grid) + rounding_floor(grid) / expected;
    (tolerance < 0.1).then_some(tolerance)
}

/// The constant part of the tolerance with a margin: twice its value on XL.
pub(super) fn steady_tolerance(grid: Grid) -> f64 {
    match grid {
        Grid::XS | Grid::S | Grid::M => 0.0015,
        Grid::L => 0.005,
        Grid::XL => 0.03,
    }
}

/// GOSA of residuals that consist of rounding only: half a unit in the last place of `p`, which lies between 0 and 1,
/// at every interior point.
pub(super) fn rounding_floor(grid: Grid) -> f64 {
    grid.interior_points() as f64 * 2f64.powi(-24).powi(2)
}

#[cfg(test)]
mod tests {
    use super::super::reference::Reference;
    use super::*;

    /// Published GOSA with fields in 64 bits.
    const TABLE: [(Grid, u64, f64); 17] = [
        (Grid::XS, 1, 6.713437e-3),
        (Grid::XS, 3, 6.229343e-3),
        (Grid::XS, 64, 3.042533e-3),
        (Grid::XS, 100, 2.317034e-3),
        (Grid::XS, 200, 1.186566e-3),
        (Grid::S, 1, 3.416247e-3),
        (Grid::S, 3, 3.295448e-3),
        (Grid::S, 64, 2.394422e-3),
        (Grid::S, 100, 2.147093e-3),
        (Grid::S, 200, 1.688138e-3),
        (Grid::M, 1, 1.722334e-3),
        (Grid::M, 3, 1.692174e-3),
        (Grid::M, 64, 1.453951e-3),
        (Grid::M, 100, 1.383512e-3),
        (Grid::L, 1, 8.646381e-4),
        (Grid::L, 3, 8.571036e-4),
        (Grid::L, 64, 7.959345e-4),
    ];

    #[test]
    fn the_closed_form_gives_the_published_figures_to_seven_digits() {
        for (grid, iterations, gosa) in TABLE {
            let expected = expected_gosa(grid, iterations).unwrap();
            assert_eq!(format!("{expected:.6e}"), format!("{gosa:.6e}"), "{grid} after {iterations}");
        }
    }

    #[test]
    fn the_first_sweep_is_the_number_of_points_times_the_constant_residual() {
        for grid in Grid::ALL {
            let side = (grid.extent()[0] - 1) as f64;
            let simple = grid.interior_points() as f64 / (9.0 * side.powi(4));
            assert!((expected_gosa(grid, 1).unwrap() / simple - 1.0).abs() < 1e-10, "{grid}");
        }
    }

    #[test]
    fn the_closed_form_agrees_with_iterating_in_64_bits() {
        let mut reference = Reference::new(Grid::XS.extent());
        for iterations in 1..=300 {
            let gosa = reference.sweep();
            let expected = expected_gosa(Grid::XS, iterations).unwrap();
            assert!((gosa / expected - 1.0).abs() < 1e-9, "after {iterations}: {gosa} not {expected}");
        }
    }

    #[test]
    fn a_wrong_gosa_does_not_pass_and_zero_iterations_are_not_checked() {
        assert!(check_gosa(Grid::S, 3, 3.2955e-3).is_some_and(|check| check.passed));
        assert!(check_gosa(Grid::S, 3, 3.31e-3).is_some_and(|check| !check.passed));
        assert!(check_gosa(Grid::S, 3, f64::NAN).is_some_and(|check| !check.passed));
        assert_eq!(check_gosa(Grid::S, 0, 1.0), None);
    }

    #[test]
    fn gosa_is_not_checked_once_only_rounding_is_left() {
        assert!(check_gosa(Grid::XS, 2000, 1.7871e-8).is_some_and(|check| check.passed));
        assert_eq!(check_gosa(Grid::XS, 5000, 0.0), None);
    }
}

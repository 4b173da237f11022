//! Detection of knees in a falling curve: the sizes at which a cache level ends.

use wb_test::CurvePoint;

/// A fall between two plateaus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Last point that is closer to the plateau before than to the one after, on a logarithmic scale.
    pub x: f64,
    pub above: f64,
    pub below: f64,
}

/// Smallest relative decrease from one point to the next that counts as a falling step; less is noise.
const MIN_STEP: f64 = 0.05;
const MIN_FALL: f64 = 0.15;
/// Points before and after a fall whose spread bounds the noise.
const NEIGHBOURS: usize = 2;

/// Finds the falls of a curve whose points are in ascending order of x; adjacent falling steps are one fall. A fall
/// that is not deeper than the spread of the samples around it does not count, and neither does a dip that the curve
/// recovers from. Points that are not positive numbers are ignored.
pub fn knees(points: &[CurvePoint]) -> Vec<Knee> {
    let points: Vec<CurvePoint> = points.iter().copied().filter(|point| point.y.is_finite() && point.y > 0.0).collect();
    let mut highest = 0.0;
    let mut curve: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
    for (_, y) in curve.iter_mut().rev() {
        highest = y.max(highest);
        *y = highest;
    }
    let falls = |pair: &[(f64, f64)]| pair[1].1 < pair[0].1 * (1.0 - MIN_STEP);
    let mut knees = Vec::new();
    let mut start = 0;
    while start + 1 < curve.len() {
        let steps = curve[start..].windows(2).take_while(|pair| falls(pair)).count();
        if steps > 0 {
            let around = start.saturating_sub(NEIGHBOURS - 1)..(start + steps + NEIGHBOURS).min(points.len());
            knees.extend(knee(&curve[start..=start + steps], spread(&points[around])));
        }
        start += steps.max(1);
    }
    knees
}

/// Largest spread of the samples of any of these points, as a ratio.
fn spread(points: &[CurvePoint]) -> f64 {
    let spreads = points.iter().filter_map(|point| point.spread).filter(|(low, _)| *low > 0.0);
    spreads.map(|(low, high)| high / low).fold(1.0, f64::max)
}

fn knee(fall: &[(f64, f64)], spread: f64) -> Option<Knee> {
    let (above, below) = (fall.first()?.1, fall.last()?.1);
    let middle = (above * below).sqrt();
    let x = fall.iter().rev().find(|(_, y)| *y >= middle)?.0;
    let is_deep = below < above * (1.0 - MIN_FALL) && above / below > spread;
    is_deep.then_some(Knee { x, above, below })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn knee_positions(values: &[f64]) -> Vec<f64> {
        let points: Vec<CurvePoint> =
            values.iter().enumerate().map(|(x, y)| CurvePoint { x: x as f64, y: *y, spread: None }).collect();
        knees(&points).into_iter().map(|knee| knee.x).collect()
    }

    /// Medians and spreads of `samples` noisy samples of a curve, with noise of this relative standard deviation.
    fn noisy(levels: &[f64], deviation: f64, samples: usize, rng: &mut ChaCha8Rng) -> Vec<CurvePoint> {
        // A normal deviate from two uniform ones (Box and Muller, 1958).
        let mut normal = || {
            let (radius, angle): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        };
        let mut point = |(x, level): (usize, &f64)| {
            let mut values: Vec<f64> = (0..samples).map(|_| level * (1.0 + deviation * normal()).max(0.05)).collect();
            values.sort_by(f64::total_cmp);
            let at = |share: f64| values[((samples - 1) as f64 * share).round() as usize];
            CurvePoint { x: x as f64, y: at(0.5), spread: (samples > 1).then(|| (at(0.1), at(0.9))) }
        };
        levels.iter().enumerate().map(&mut point).collect()
    }

    /// Number of noisy curves, of 500, whose knees are not the expected ones.
    fn count_wrong_curves(levels: &[f64], deviation: f64, samples: usize, expected: &[f64]) -> usize {
        let mut rng = ChaCha8Rng::seed_from_u64(13);
        let is_wrong = |_: &usize| {
            let detected = knees(&noisy(levels, deviation, samples, &mut rng));
            detected.iter().map(|knee| knee.x).collect::<Vec<_>>() != expected
        };
        (0..500).filter(is_wrong).count()
    }

    #[test]
    fn noise_rarely_produces_a_knee() {
        for deviation in [0.03, 0.1, 0.2, 0.3] {
            for samples in [6, 12, 30] {
                let wrong = count_wrong_curves(&[100.0; 16], deviation, samples, &[]);
                assert!(wrong <= 10, "{wrong} of 500 with {samples} samples of {deviation}");
            }
        }
    }

    #[test]
    fn levels_are_found_despite_smaller_noise() {
        let levels = [100.0, 100.0, 100.0, 100.0, 50.0, 50.0, 50.0, 50.0, 15.0, 15.0, 15.0, 15.0];
        for (deviation, samples) in [(0.01, 6), (0.05, 6), (0.05, 30), (0.1, 30)] {
            let wrong = count_wrong_curves(&levels, deviation, samples, &[3.0, 7.0]);
            assert!(wrong <= 10, "{wrong} of 500 with {samples} samples of {deviation}");
        }
    }

    #[test]
    fn a_fall_within_the_spread_of_its_neighbours_is_ignored() {
        let point = |(x, y): (usize, f64)| CurvePoint { x: x as f64, y, spread: Some((y * 0.8, y * 1.2)) };
        let count = |values: [f64; 5]| knees(&values.into_iter().enumerate().map(point).collect::<Vec<_>>()).len();
        assert_eq!(count([100.0, 100.0, 75.0, 75.0, 75.0]), 0);
        assert_eq!(count([100.0, 100.0, 60.0, 60.0, 60.0]), 1);
    }

    #[test]
    fn a_fall_over_several_points_is_one_knee_at_its_middle() {
        assert_eq!(knee_positions(&[80.0, 100.0, 99.0, 90.0, 55.0, 41.0, 40.0, 40.0]), [3.0]);
        assert_eq!(knee_positions(&[100.0, 100.0, 40.0, 40.0, 39.0, 10.0, 10.0]), [1.0, 4.0]);
    }

    #[test]
    fn a_dip_is_ignored() {
        assert_eq!(knee_positions(&[100.0, 30.0, 100.0, 100.0, 40.0, 12.0, 40.0]), [3.0]);
    }

    #[test]
    fn noise_and_rises_are_ignored() {
        assert_eq!(knee_positions(&[100.0, 97.0, 101.0, 96.0, 99.0, 120.0]), [0.0; 0]);
        assert_eq!(knee_positions(&[100.0, 90.0, 100.0, 88.0]), [0.0; 0]);
        assert_eq!(knee_positions(&[]), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn no_curve_panics_and_every_knee_falls(values: Vec<f64>) {
            let points: Vec<CurvePoint> =
                values.iter().enumerate().map(|(x, y)| CurvePoint { x: x as f64, y: *y, spread: None }).collect();
            for knee in knees(&points) {
                prop_assert!(knee.below < knee.above);
            }
        }
    }
}

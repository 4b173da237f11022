//! Where a falling curve falls: the plateaus of a cache hierarchy end there.

/// A fall between two plateaus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// The last point that is nearer to the plateau before than to the one after, in the logarithm.
    pub x: f64,
    /// The value before the fall.
    pub above: f64,
    /// The value after it.
    pub below: f64,
}

/// A step from one point to the next that falls by less is level, or noise.
const STEP: f64 = 0.05;
/// A fall by less in all is none.
const FALL: f64 = 0.15;

/// The falls of a curve, points by x ascending: neighbouring falling steps are one fall. A dip that the curve comes
/// back from is none. Points that are no positive numbers are left out.
pub fn knees(points: &[(f64, f64)]) -> Vec<Knee> {
    let mut points: Vec<(f64, f64)> = points.iter().copied().filter(|(_, y)| y.is_finite() && *y > 0.0).collect();
    let mut most = 0.0;
    for (_, y) in points.iter_mut().rev() {
        most = y.max(most);
        *y = most;
    }
    let falls = |pair: &[(f64, f64)]| pair[1].1 < pair[0].1 * (1.0 - STEP);
    let mut found = Vec::new();
    let mut start = 0;
    while start + 1 < points.len() {
        let steps = points[start..].windows(2).take_while(|pair| falls(pair)).count();
        if steps > 0 {
            found.extend(knee(&points[start..=start + steps]));
        }
        start += steps.max(1);
    }
    found
}

/// The knee of one fall, if it is deep enough.
fn knee(fall: &[(f64, f64)]) -> Option<Knee> {
    let (above, below) = (fall.first()?.1, fall.last()?.1);
    let middle = (above * below).sqrt();
    let x = fall.iter().rev().find(|(_, y)| *y >= middle)?.0;
    (below < above * (1.0 - FALL)).then_some(Knee { x, above, below })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(values: &[f64]) -> Vec<f64> {
        let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
        knees(&points).into_iter().map(|knee| knee.x).collect()
    }

    #[test]
    fn a_fall_over_several_points_is_one_knee_at_its_middle() {
        assert_eq!(at(&[80.0, 100.0, 99.0, 90.0, 55.0, 41.0, 40.0, 40.0]), [3.0]);
        assert_eq!(at(&[100.0, 100.0, 40.0, 40.0, 39.0, 10.0, 10.0]), [1.0, 4.0]);
    }

    #[test]
    fn a_disturbed_point_makes_no_knee() {
        assert_eq!(at(&[100.0, 30.0, 100.0, 100.0, 40.0, 12.0, 40.0]), [3.0]);
    }

    #[test]
    fn noise_and_rises_are_no_knees() {
        assert_eq!(at(&[100.0, 97.0, 101.0, 96.0, 99.0, 120.0]), [0.0; 0]);
        assert_eq!(at(&[100.0, 90.0, 100.0, 88.0]), [0.0; 0]);
        assert_eq!(at(&[]), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn no_curve_panics_and_every_knee_falls(values: Vec<f64>) {
            let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
            for knee in knees(&points) {
                prop_assert!(knee.below < knee.above);
            }
        }
    }
}

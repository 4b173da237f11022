//! Fits lines to noisy points: flat, rising, falling, or with a single peak.
//!
//! A line is a constant plus one or two ramps, each 0 before its first knot and 1 after its second. For given knots,
//! the heights follow from linear least squares. Candidates for knots are midway between neighbouring points, and far
//! enough apart. The knots with the smallest error are chosen; each further segment has to reduce the error by 2.5 %.

use wb_results::contention::{Point, Polyline};

/// The shape of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One ramp, up or down.
    Any,
    /// Not falling.
    Rising,
    /// Not rising.
    Falling,
    /// Rising, then falling; either may be absent.
    Peak,
}

/// Factor by which each segment has to reduce the error.
const SEGMENT_FACTOR: f64 = 1.025;
/// Shortest segment, in percent of vrate.
const MIN_SEGMENT: f64 = 10.0;
/// Smallest distance of two candidates for a knot, in percent of vrate.
const MIN_DISTANCE: f64 = 0.25;
/// Relative rounding error of a fit.
const ROUNDING: f64 = 1e-12;
/// Candidates for the knots of a peak: the fits grow with the fourth power.
const MAX_PEAK_KNOTS: usize = 36;

/// Fits a line to points by ascending vrate; `None` without points.
pub fn fit(points: &[Point], shape: Shape) -> Option<Polyline> {
    let (first, last) = (points.first()?.x, points.last()?.x);
    let mean = points.iter().map(|point| point.y).sum::<f64>() / points.len() as f64;
    let mut best = Best::flat(points, (first, last), mean)?;
    let knots = knots(points);
    for (a, b) in ramps(&knots, (first, last)) {
        let signs: &[bool] = match shape {
            Shape::Any => &[true, false],
            Shape::Rising | Shape::Peak => &[true],
            Shape::Falling => &[false],
        };
        for rising in signs {
            best.try_ramps(points, &[Ramp { a, b, rising: *rising }]);
        }
        if shape == Shape::Peak {
            best.try_ramps(points, &[Ramp { a, b, rising: false }]);
        }
    }
    if shape == Shape::Peak {
        let knots = thinned(&knots, MAX_PEAK_KNOTS);
        let all: Vec<(f64, f64)> = ramps(&knots, (first, last)).collect();
        for (a, b) in &all {
            for (c, d) in all.iter().filter(|(c, _)| c == b || *c >= b + MIN_SEGMENT) {
                best.try_ramps(points, &[Ramp { a: *a, b: *b, rising: true }, Ramp { a: *c, b: *d, rising: false }]);
            }
        }
    }
    Some(best.line)
}

/// The error of a line: the root of the summed squares, by the number of points. 0 without points.
pub(super) fn error<'a>(points: impl Iterator<Item = &'a Point>, line: &Polyline) -> f64 {
    let (sum, count) =
        points.fold((0.0, 0u32), |(sum, count), point| (sum + (point.y - line.eval(point.x)).powi(2), count + 1));
    f64::sqrt(sum) / f64::from(count.max(1))
}

/// A ramp from 0 to 1, or down to -1.
#[derive(Debug, Clone, Copy)]
struct Ramp {
    a: f64,
    b: f64,
    rising: bool,
}

impl Ramp {
    fn at(&self, x: f64) -> f64 {
        ((x - self.a) / (self.b - self.a)).clamp(0.0, 1.0)
    }
}

struct Best {
    line: Polyline,
    error: f64,
    range: (f64, f64),
    /// Differences of errors below this are rounding.
    tolerance: f64,
}

impl Best {
    fn flat(points: &[Point], range: (f64, f64), mean: f64) -> Option<Self> {
        let ends = [range.0, range.1].map(|x| Point { x, y: mean });
        let line = Polyline::new(ends.to_vec())?;
        let error = error(points.iter(), &line);
        let largest = points.iter().fold(0.0, |largest: f64, point| largest.max(point.y.abs()));
        Some(Self { line, error, range, tolerance: largest * ROUNDING })
    }

    /// Takes the line of these ramps if it is better and has their directions.
    fn try_ramps(&mut self, points: &[Point], ramps: &[Ramp]) {
        let Some((base, heights)) = least_squares(points, ramps) else { return };
        let directed =
            ramps.iter().zip(&heights).all(|(ramp, height)| (*height > 0.0) == ramp.rising && *height != 0.0);
        if !directed {
            return;
        }
        let mut level = base;
        let mut knots = vec![Point { x: self.range.0, y: base }];
        for (ramp, height) in ramps.iter().zip(&heights) {
            // A value is stated once and repeated, so that flat segments have equal ends.
            knots.push(Point { x: ramp.a, y: level });
            level += height;
            knots.push(Point { x: ramp.b, y: level });
        }
        knots.push(Point { x: self.range.1, y: level });
        let Some(line) = Polyline::new(knots) else { return };
        // No figure is negative.
        if line.extremes().0 < 0.0 {
            return;
        }
        let segments = line.points().len() as i32 - 1;
        let error = error(points.iter(), &line) * SEGMENT_FACTOR.powi(segments);
        if error + self.tolerance < self.error {
            (self.line, self.error) = (line, error);
        }
    }
}

/// The constant and the heights of the ramps, from the normal equations; `None` if they are singular.
fn least_squares(points: &[Point], ramps: &[Ramp]) -> Option<(f64, Vec<f64>)> {
    let size = ramps.len() + 1;
    let mut system = [[0.0; 4]; 3];
    for point in points {
        let mut row = [1.0, 0.0, 0.0];
        for (value, ramp) in row[1..].iter_mut().zip(ramps) {
            *value = ramp.at(point.x);
        }
        for i in 0..size {
            for j in 0..size {
                system[i][j] += row[i] * row[j];
            }
            system[i][3] += row[i] * point.y;
        }
    }
    let solution = eliminate(system, size)?;
    Some((solution[0], solution[1..size].to_vec()))
}

/// Gaussian elimination with pivoting; the right side is column 3.
fn eliminate(mut system: [[f64; 4]; 3], size: usize) -> Option<[f64; 3]> {
    const SINGULAR: f64 = 1e-9;
    for column in 0..size {
        let pivot = (column..size).max_by(|a, b| system[*a][column].abs().total_cmp(&system[*b][column].abs()))?;
        system.swap(column, pivot);
        let lead = system[column];
        if lead[column].abs() < SINGULAR {
            return None;
        }
        for (row, values) in system.iter_mut().enumerate().take(size) {
            if row != column {
                let factor = values[column] / lead[column];
                values.iter_mut().zip(lead).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    let mut solution = [0.0; 3];
    for row in 0..size {
        solution[row] = system[row][3] / system[row][row];
    }
    Some(solution)
}

/// Candidates for knots: midway between neighbouring points, and both ends.
fn knots(points: &[Point]) -> Vec<f64> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let mut knots = vec![first.x];
    for pair in points.windows(2) {
        let middle = (pair[0].x + pair[1].x) / 2.0;
        if knots.last().is_none_or(|knot| middle >= knot + MIN_DISTANCE) {
            knots.push(middle);
        }
    }
    if knots.last().is_none_or(|knot| *knot < last.x) {
        knots.push(last.x);
    }
    knots
}

/// At most `most` of the candidates, evenly, with both ends.
fn thinned(knots: &[f64], most: usize) -> Vec<f64> {
    if knots.len() <= most {
        return knots.to_vec();
    }
    (0..most).map(|index| knots[index * (knots.len() - 1) / (most - 1)]).collect()
}

/// Pairs of knots for a ramp. Segments before, in and after it are absent or long enough; a single segment may be
/// short.
fn ramps(knots: &[f64], (first, last): (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
    let is_end = move |a: f64, b: f64| a == first && b == last && b > a;
    let is_long = move |a: f64, b: f64| {
        (a == first || a >= first + MIN_SEGMENT) && b >= a + MIN_SEGMENT && (b == last || b <= last - MIN_SEGMENT)
    };
    let pairs = knots.iter().enumerate().flat_map(|(index, a)| knots[index + 1..].iter().map(|b| (*a, *b)));
    let mut ramps: Vec<(f64, f64)> = pairs.filter(|(a, b)| is_end(*a, *b) || is_long(*a, *b)).collect();
    // Of equally good lines, the one with the fewest segments is taken: the first.
    ramps.sort_by_key(|(a, b)| usize::from(*a != first) + usize::from(*b != last));
    ramps.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: impl Fn(f64) -> f64) -> Vec<Point> {
        (1..=25).map(|step| f64::from(step) * 5.0).map(|x| Point { x, y: values(x) }).collect()
    }

    fn fitted(values: impl Fn(f64) -> f64, shape: Shape) -> Polyline {
        fit(&points(values), shape).unwrap()
    }

    fn assert_near(line: &Polyline, expected: &[(f64, f64)], tolerance: f64) {
        let own: Vec<(f64, f64)> = line.points().iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(own.len(), expected.len(), "{own:?}");
        for ((x, y), (ex, ey)) in own.iter().zip(expected) {
            assert!((x - ex).abs() <= 2.5 && (y - ey).abs() <= tolerance, "{own:?}");
        }
    }

    #[test]
    fn a_ramp_between_two_levels_is_found() {
        let ramp = |x: f64| 1.2 + 0.3 * ((x - 42.5) / 20.0).clamp(0.0, 1.0);
        assert_near(&fitted(ramp, Shape::Rising), &[(5.0, 1.2), (42.5, 1.2), (62.5, 1.5), (125.0, 1.5)], 0.001);
        let fall = |x: f64| 2.0 - ramp(x);
        assert_near(&fitted(fall, Shape::Falling), &[(5.0, 0.8), (42.5, 0.8), (62.5, 0.5), (125.0, 0.5)], 0.001);
    }

    #[test]
    fn noise_does_not_add_segments() {
        let noise = |x: f64| 0.02 * (x * 7.3).sin();
        assert_eq!(fitted(|x| 3.0 + noise(x), Shape::Any).points().len(), 2);
        let slope = fitted(|x| 1.0 + 0.01 * x + noise(x), Shape::Rising);
        assert_near(&slope, &[(5.0, 1.05), (125.0, 2.25)], 0.03);
    }

    #[test]
    fn a_falling_series_of_a_rising_shape_is_flat() {
        let line = fitted(|x| 2.0 - 0.01 * x, Shape::Rising);
        assert!(line.is_flat() && (line.eval(1.0) - 1.35).abs() < 1e-9, "{line:?}");
    }

    #[test]
    fn a_peak_rises_then_falls() {
        let peak = |x: f64| 1.0 + 0.4 * ((x - 22.5) / 20.0).clamp(0.0, 1.0) - 0.2 * ((x - 82.5) / 20.0).clamp(0.0, 1.0);
        let expected = [(5.0, 1.0), (22.5, 1.0), (42.5, 1.4), (82.5, 1.4), (102.5, 1.2), (125.0, 1.2)];
        assert_near(&fitted(peak, Shape::Peak), &expected, 0.001);
        assert_near(&fitted(|x| 1.0 + x / 100.0, Shape::Peak), &[(5.0, 1.05), (125.0, 2.25)], 0.001);
    }

    #[test]
    fn few_points_are_fitted_as_well() {
        assert_eq!(fit(&[], Shape::Any), None);
        let point = |x, y| Point { x, y };
        assert_eq!(fit(&[point(3.0, 4.0)], Shape::Peak).unwrap().points(), [point(3.0, 4.0)]);
        let two = fit(&[point(10.0, 1.0), point(50.0, 2.0)], Shape::Rising).unwrap();
        assert!((two.eval(30.0) - 1.5).abs() < 1e-9);
    }
}

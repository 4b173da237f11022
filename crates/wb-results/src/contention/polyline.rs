//! Lines of several segments.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// A point of a series or a line: a value at a vrate.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The vrate, in percent.
    pub x: f64,
    /// The value.
    pub y: f64,
}

/// A line of one or more segments: at least one point, by ascending vrate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Polyline(#[serde(deserialize_with = "deserialize_points")] Vec<Point>);

fn deserialize_points<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Point>, D::Error> {
    let line = Polyline::new(Vec::deserialize(deserializer)?);
    line.map(|line| line.0).ok_or_else(|| D::Error::custom("expected points of a line by ascending vrate"))
}

impl Polyline {
    /// A line through points; `None` without any, or if they are not in order. The first of several at one vrate
    /// counts.
    pub fn new(mut points: Vec<Point>) -> Option<Self> {
        points.dedup_by(|next, first| next.x == first.x);
        let is_ordered = points.windows(2).all(|pair| pair[0].x < pair[1].x);
        (is_ordered && !points.is_empty()).then_some(Self(points))
    }

    pub fn points(&self) -> &[Point] {
        &self.0
    }

    /// First and last vrate.
    pub fn range(&self) -> (f64, f64) {
        (self.0[0].x, self.0[self.0.len() - 1].x)
    }

    /// The value at a vrate; beyond the ends, that of the nearest end.
    pub fn eval(&self, x: f64) -> f64 {
        let (first, last) = self.range();
        self.extrapolate(x.clamp(first, last))
    }

    /// The value at a vrate; beyond the ends, the nearest segment goes on.
    fn extrapolate(&self, x: f64) -> f64 {
        let position = self.0.windows(2).position(|pair| x <= pair[1].x).unwrap_or(self.0.len().saturating_sub(2));
        let Some([a, b]) = self.0.get(position..position + 2).and_then(|pair| <&[Point; 2]>::try_from(pair).ok())
        else {
            return self.0[0].y;
        };
        // Flat segments are recognised by equal values, so these must not be rounded.
        match () {
            () if x == a.x || a.y == b.y => a.y,
            () if x == b.x => b.y,
            () => a.y + (x - a.x) * (b.y - a.y) / (b.x - a.x),
        }
    }

    /// The line between two vrates, which may be beyond its ends.
    pub fn with_range(&self, first: f64, last: f64) -> Self {
        // Its own ends are on the segments that go on.
        let inner = self.0.get(1..self.0.len() - 1).unwrap_or_default().iter().copied();
        let inner = inner.filter(|point| first < point.x && point.x < last);
        let start = Point { x: first, y: self.extrapolate(first) };
        let end = (last > first).then(|| Point { x: last, y: self.extrapolate(last) });
        Self(std::iter::once(start).chain(inner).chain(end).collect())
    }

    /// The part of it within a range; `None` if nothing is.
    pub fn clamped(&self, (low, high): (f64, f64)) -> Option<Self> {
        let (first, last) = self.range();
        let (first, last) = (first.max(low), last.min(high));
        (first <= last).then(|| self.with_range(first, last))
    }

    /// The line with nothing above a value, which it reaches where it reached it before.
    pub fn at_most(&self, highest: f64) -> Self {
        let mut points = Vec::with_capacity(self.0.len() + 1);
        for (index, point) in self.0.iter().enumerate() {
            if let Some(before) = index.checked_sub(1).map(|before| self.0[before])
                && (before.y > highest) != (point.y > highest)
                && before.y != highest
                && point.y != highest
            {
                let x = before.x + (highest - before.y) * (point.x - before.x) / (point.y - before.y);
                points.push(Point { x, y: highest });
            }
            points.push(Point { x: point.x, y: point.y.min(highest) });
        }
        points.dedup_by(|next, first| next.x == first.x);
        Self(points)
    }

    /// Its smallest and its largest value.
    pub fn extremes(&self) -> (f64, f64) {
        self.0.iter().fold((f64::MAX, f64::MIN), |(low, high), point| (low.min(point.y), high.max(point.y)))
    }

    pub fn is_flat(&self) -> bool {
        let (low, high) = self.extremes();
        low == high
    }

    /// The vrate at which it falls below a value for good; `None` if it does not, or is below it everywhere.
    pub fn falls_below(&self, value: f64) -> Option<f64> {
        let last_above = self.0.iter().rposition(|point| point.y >= value)?;
        let [a, b] = <[Point; 2]>::try_from(self.0.get(last_above..last_above + 2)?).ok()?;
        Some(a.x + (value - a.y) * (b.x - a.x) / (b.y - a.y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, f64)]) -> Polyline {
        Polyline::new(points.iter().map(|(x, y)| Point { x: *x, y: *y }).collect()).unwrap()
    }

    #[test]
    fn values_are_interpolated_and_stay_beyond_the_ends() {
        let line = line(&[(1.0, 1.0), (2.0, 1.0), (3.0, 2.0), (4.0, 2.0)]);
        let values = [0.5, 1.5, 2.5, 3.5, 4.5].map(|x| line.eval(x));
        assert_eq!(values, [1.0, 1.0, 1.5, 2.0, 2.0]);
    }

    #[test]
    fn a_line_without_points_is_refused_where_it_is_read() {
        let read = |json: &str| serde_json::from_str::<Polyline>(json);
        assert_eq!(read(r#"[{"x": 1.0, "y": 2.0}]"#).unwrap(), line(&[(1.0, 2.0)]));
        assert!(read("[]").is_err());
        assert!(read(r#"[{"x": 2.0, "y": 2.0}, {"x": 1.0, "y": 2.0}]"#).is_err());
    }

    // Limiting a line by moving its end moved the other end, too, and with it every solution.
    #[test]
    fn a_line_that_is_cut_is_the_same_below() {
        let falling = line(&[(0.0, 1.5), (10.0, 1.5), (20.0, 0.5), (30.0, 0.5)]);
        assert_eq!(falling.at_most(1.0), line(&[(0.0, 1.0), (10.0, 1.0), (15.0, 1.0), (20.0, 0.5), (30.0, 0.5)]));
        for (highest, x) in [1.0, 1.2, 1.5, 2.0].iter().flat_map(|y| (0..=30).map(move |x| (*y, f64::from(x)))) {
            let difference = falling.at_most(highest).eval(x) - falling.eval(x).min(highest);
            assert!(difference.abs() < 1e-12, "{highest} at {x}");
        }
        assert_eq!(falling.at_most(1.0).falls_below(0.75), falling.falls_below(0.75));
        assert_eq!(line(&[(1.0, 7.0)]).at_most(1.0), line(&[(1.0, 1.0)]));
    }

    #[test]
    fn a_range_may_be_wider_or_narrower() {
        let rising = line(&[(2.0, 1.0), (3.0, 2.0), (4.0, 2.0)]);
        assert_eq!(rising.with_range(1.0, 5.0), line(&[(1.0, 0.0), (3.0, 2.0), (5.0, 2.0)]));
        assert_eq!(rising.clamped((2.5, 9.0)), Some(line(&[(2.5, 1.5), (3.0, 2.0), (4.0, 2.0)])));
        assert_eq!(rising.clamped((4.0, 9.0)), Some(line(&[(4.0, 2.0)])));
        assert_eq!(rising.clamped((5.0, 9.0)), None);
        assert_eq!(line(&[(1.0, 7.0)]).eval(3.0), 7.0);
    }

    #[test]
    fn the_end_of_sufficient_values_is_found() {
        let falling = line(&[(10.0, 1.0), (20.0, 1.0), (40.0, 0.6), (50.0, 0.6)]);
        assert_eq!(falling.falls_below(0.9), Some(25.0));
        assert_eq!((falling.falls_below(0.5), falling.falls_below(1.1)), (None, None));
    }
}

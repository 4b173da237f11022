//! Draws a telemetry series during the samples of a cell: one strip, the samples side by side.

use wb_model::Unit;

use super::curve::path_data;
use super::element::Element;
use super::scale::Scale;
use super::{Chart, Drawing};

#[derive(Debug, Clone)]
pub struct TelemetryChart {
    pub title: String,
    pub unit: Unit,
    /// In time order.
    pub segments: Vec<TelemetrySegment>,
}

#[derive(Debug, Clone)]
pub struct TelemetrySegment {
    pub label: String,
    pub is_counted_and_undisturbed: bool,
    /// Pairs of seconds since the start of the sample and the value.
    pub points: Vec<(f64, f64)>,
}

const HEIGHT: f64 = 56.0;
const LABEL_WIDTH: f64 = 58.0;
const GAP: f64 = 3.0;

impl Chart for TelemetryChart {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn description(&self) -> String {
        let (low, high) = self.range();
        let samples = self.segments.len();
        format!("between {} and {} over {samples} samples", self.unit.quantity(low), self.unit.quantity(high))
    }

    fn draw(&self, width: f64) -> Drawing {
        let right = width - LABEL_WIDTH;
        let (low, high) = self.range();
        let scale = Scale::fit(&self.unit, [low, high], 0.02).with_range(HEIGHT - 6.0, 6.0);
        let gaps = GAP * self.segments.len().saturating_sub(1) as f64;
        let total: f64 = self.segments.iter().map(TelemetrySegment::seconds).sum();
        let per_second = if total > 0.0 { (right - gaps).max(1.0) / total } else { 1.0 };
        let mut body = Vec::new();
        let mut left = 0.0;
        for segment in &self.segments {
            let end = left + segment.seconds() * per_second;
            let background_class =
                if segment.is_counted_and_undisturbed { "background" } else { "disturbed-background" };
            let positions =
                segment.points.iter().map(|(time, value)| (left + time * per_second, scale.position(*value)));
            let line = Element::path("series", path_data(downsample(positions.collect())));
            let background = Element::rect(background_class, (left, 0.0), (end, HEIGHT)).with_title(&segment.label);
            body.extend([background, line]);
            left = end + GAP;
        }
        for (value, y) in [(high, 12.0), (low, HEIGHT - 3.0)] {
            body.push(Element::text("start", (right + 5.0, y), &self.unit.quantity(value).to_string()));
        }
        Drawing { width, height: HEIGHT, body }
    }
}

impl TelemetrySegment {
    fn seconds(&self) -> f64 {
        self.points.last().map_or(0.0, |(time, _)| time.max(0.0))
    }
}

impl TelemetryChart {
    fn range(&self) -> (f64, f64) {
        let values = self.segments.iter().flat_map(|segment| &segment.points).map(|(_, value)| *value);
        let (low, high) = values.filter(|v| v.is_finite()).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if low > high { (0.0, 0.0) } else { (low, high) }
    }
}

/// Reduces the points within each pixel column to the first, lowest, highest and last, which yields the same picture.
fn downsample(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let pixel = |point: &(f64, f64)| point.0.floor();
    let columns = points.chunk_by(|left, right| pixel(left) == pixel(right));
    let reduced = columns.flat_map(|column| {
        let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let column_indices = 0..column.len();
        let mut indices = vec![0, column.len() - 1];
        indices.extend(column_indices.clone().min_by(by_height));
        indices.extend(column_indices.max_by(by_height));
        indices.sort_unstable();
        indices.dedup();
        indices.into_iter().map(|index| column[index]).collect::<Vec<_>>()
    });
    reduced.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downsampling_preserves_every_peak() {
        let points: Vec<(f64, f64)> =
            (0..1000).map(|index| (f64::from(index) / 100.0, f64::from((index * 37) % 101))).collect();
        let reduced = downsample(points.clone());
        assert!(reduced.len() <= 4 * 10, "{}", reduced.len());
        for pixel in 0..10 {
            let highest = |points: &[(f64, f64)]| {
                points.iter().filter(|p| p.0.floor() == f64::from(pixel)).map(|p| p.1).fold(0.0, f64::max)
            };
            assert_eq!(highest(&reduced), highest(&points));
        }
    }
}

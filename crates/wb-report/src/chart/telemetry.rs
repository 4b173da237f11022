//! How something went during the samples of a cell: one strip, the samples side by side.

use wb_model::Unit;

use super::curve::path_data;
use super::element::Element;
use super::scale::Scale;
use super::{Chart, Drawing};

/// One thing over all samples.
#[derive(Debug, Clone)]
pub struct TelemetryChart {
    /// What.
    pub title: String,
    /// In which unit.
    pub unit: Unit,
    /// The samples, in time order.
    pub segments: Vec<TelemetrySegment>,
}

/// One sample of it.
#[derive(Debug, Clone)]
pub struct TelemetrySegment {
    /// The sample's name.
    pub label: String,
    /// Whether it counts and nothing disturbed it.
    pub is_undisturbed: bool,
    /// Seconds since its start, and the value then.
    pub points: Vec<(f64, f64)>,
}

const HEIGHT: f64 = 56.0;
const VALUES: f64 = 58.0;
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
        let right = width - VALUES;
        let (low, high) = self.range();
        let scale = Scale::fit(&self.unit, [low, high], 0.02).with_range(HEIGHT - 6.0, 6.0);
        let gaps = GAP * self.segments.len().saturating_sub(1) as f64;
        let total: f64 = self.segments.iter().map(TelemetrySegment::seconds).sum();
        let per_second = if total > 0.0 { (right - gaps).max(1.0) / total } else { 1.0 };
        let mut body = Vec::new();
        let mut left = 0.0;
        for segment in &self.segments {
            let end = left + segment.seconds() * per_second;
            let ground = if segment.is_undisturbed { "ground" } else { "band" };
            let places = segment.points.iter().map(|(at, value)| (left + at * per_second, scale.position(*value)));
            let line = Element::new("path")
                .with_attribute("class", "series")
                .with_attribute("d", path_data(downsample(places.collect())));
            let ground = Element::rect(ground, (left, 0.0), (end, HEIGHT)).with_title(&segment.label);
            body.extend([ground, line]);
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
        self.points.last().map_or(0.0, |(at, _)| at.max(0.0))
    }
}

impl TelemetryChart {
    fn range(&self) -> (f64, f64) {
        let values = self.segments.iter().flat_map(|segment| &segment.points).map(|(_, value)| *value);
        let (low, high) = values.filter(|v| v.is_finite()).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if low > high { (0.0, 0.0) } else { (low, high) }
    }
}

/// Of the places within one pixel only the first, the lowest, the highest and the last, in their order: the same
/// picture with fewer points.
fn downsample(places: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let pixel = |place: &(f64, f64)| place.0.floor();
    let columns = places.chunk_by(|one, other| pixel(one) == pixel(other));
    let kept = columns.flat_map(|column| {
        let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let all = 0..column.len();
        let mut kept = vec![0, column.len() - 1];
        kept.extend(all.clone().min_by(by_height));
        kept.extend(all.max_by(by_height));
        kept.sort_unstable();
        kept.dedup();
        kept.into_iter().map(|at| column[at]).collect::<Vec<_>>()
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_every_peak() {
        let places: Vec<(f64, f64)> = (0..1000).map(|at| (f64::from(at) / 100.0, f64::from((at * 37) % 101))).collect();
        let kept = downsample(places.clone());
        assert!(kept.len() <= 4 * 10, "{}", kept.len());
        for pixel in 0..10 {
            let highest = |places: &[(f64, f64)]| {
                places.iter().filter(|p| p.0.floor() == f64::from(pixel)).map(|p| p.1).fold(0.0, f64::max)
            };
            assert_eq!(highest(&kept), highest(&places));
        }
    }
}

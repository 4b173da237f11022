//! Draws small bars of ratios: each variant's ratio to the first with its interval, on one scale, with the range of
//! negligible ratios.

use wb_model::Unit;

use super::bar::{HEIGHT, WIDTH, draw_axis, small_svg};
use super::element::Element;
use super::scale::Scale;

#[derive(Debug, Clone, Copy)]
pub(crate) struct RatioEstimate {
    pub(crate) estimate: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

impl RatioEstimate {
    /// The estimate and the ends of its interval.
    pub(crate) fn bounds(self) -> [f64; 3] {
        let (low, high) = self.interval.unwrap_or((self.estimate, self.estimate));
        [self.estimate, low, high]
    }
}

pub(crate) struct RatioBars {
    scale: Scale,
    /// The range of negligible ratios.
    equivalent: (f64, f64),
}

impl RatioBars {
    /// `threshold` is the smallest relative difference that matters.
    pub(crate) fn new(threshold: f64, ratios: impl IntoIterator<Item = RatioEstimate>) -> Self {
        let equivalent = (1.0 / (1.0 + threshold), 1.0 + threshold);
        let values = ratios.into_iter().flat_map(RatioEstimate::bounds).chain([equivalent.0, 1.0, equivalent.1]);
        Self { scale: Scale::fit(&Unit::new(""), values, 0.0).with_range(4.0, WIDTH - 4.0), equivalent }
    }

    /// Draws the bar of a variant; for the first one, which has no ratio, only the line at 1.
    pub(crate) fn bar(&self, ratio: Option<RatioEstimate>, description: &str) -> String {
        let x = |value| self.scale.position(value);
        let middle = HEIGHT / 2.0;
        let mut body = vec![
            Element::rect("band", (x(self.equivalent.0), 0.0), (x(self.equivalent.1), HEIGHT)),
            Element::line("axis", (x(1.0), 0.0), (x(1.0), HEIGHT)),
        ];
        if let Some(RatioEstimate { estimate, interval }) = ratio {
            if let Some((low, high)) = interval {
                let (low, high) = (x(low), x(high).max(x(low) + 2.0));
                body.push(Element::rect("interval", (low, middle - 3.5), (high, middle + 3.5)));
            }
            body.push(Element::line("median", (x(estimate), middle - 6.5), (x(estimate), middle + 6.5)));
        } else {
            body.push(Element::line("median", (x(1.0), middle - 6.5), (x(1.0), middle + 6.5)));
        }
        small_svg(description, body)
    }

    pub(crate) fn axis(&self) -> String {
        draw_axis(&self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The x coordinate of the first shape of this class.
    fn position(bar: &str, class: &str) -> f64 {
        let shape = bar.split('<').find(|shape| shape.contains(&format!("class=\"{class}\""))).unwrap();
        let attribute = ["x1=\"", "x=\""].iter().find_map(|name| shape.split_once(name)).unwrap().1;
        attribute.split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn bars_of_one_case_share_a_scale() {
        let better = RatioEstimate { estimate: 1.10, interval: Some((1.05, 1.15)) };
        let worse = RatioEstimate { estimate: 0.90, interval: Some((0.85, 0.95)) };
        let bars = RatioBars::new(0.05, [better, worse]);
        let [first, better, worse] = [None, Some(better), Some(worse)].map(|ratio| bars.bar(ratio, ""));
        let one = position(&first, "median");
        assert_eq!([&better, &worse].map(|bar| position(bar, "axis")), [one, one]);
        assert!(position(&better, "median") > one && position(&better, "interval") > one);
        assert!((position(&better, "median") - one - (one - position(&worse, "median"))).abs() < 0.5);
        assert!(bars.axis().contains(">1.0<"), "{}", bars.axis());
    }
}

//! Draws ratios in one line of text each, on one scale.

use std::collections::BTreeSet;

use crate::chart::RatioEstimate;

/// Width in columns.
const COLUMNS: usize = 21;

/// The common scale of a case's lines: logarithmic, centred on 1, wide enough for every interval.
pub(super) struct RatioScale {
    /// The natural logarithm of the ratio at the right end; the left end is its reciprocal.
    max_log_ratio: f64,
}

impl RatioScale {
    /// Creates a scale for these ratios; `None` if all are 1.
    pub(super) fn new(ratios: impl IntoIterator<Item = RatioEstimate>) -> Option<Self> {
        let ends = ratios.into_iter().flat_map(RatioEstimate::bounds);
        let limit = ends.map(|end| end.ln().abs()).filter(|limit| limit.is_finite()).fold(0.0, f64::max);
        (limit > 0.0).then_some(Self { max_log_ratio: limit })
    }

    fn column(&self, ratio: f64) -> usize {
        let offset = (ratio.ln() / self.max_log_ratio).clamp(-1.0, 1.0);
        ((offset + 1.0) / 2.0 * (COLUMNS - 1) as f64).round() as usize
    }

    /// Draws a dot at the ratio, a line over its interval, and a bar at 1.
    pub(super) fn line(&self, ratio: Option<RatioEstimate>) -> String {
        let one = self.column(1.0);
        let interval: BTreeSet<usize> = ratio
            .and_then(|ratio| ratio.interval)
            .map(|(low, high)| (self.column(low)..=self.column(high)).collect())
            .unwrap_or_default();
        let dot = self.column(ratio.map_or(1.0, |ratio| ratio.estimate));
        let shape = |column: usize| match (column == dot, interval.contains(&column), column == one) {
            (true, ..) => '●',
            (_, true, true) => '┿',
            (_, true, _) => '━',
            (_, _, true) => '│',
            _ => ' ',
        };
        (0..COLUMNS).map(shape).collect()
    }

    pub(super) fn header(&self) -> String {
        let [low, high] = [-self.max_log_ratio, self.max_log_ratio].map(|end| format!("{:.2}", end.exp()));
        let half = COLUMNS / 2;
        format!("{low:half$}1{high:>half$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(estimate: f64, low: f64, high: f64) -> RatioEstimate {
        RatioEstimate { estimate, interval: Some((low, high)) }
    }

    #[test]
    fn ratios_of_a_case_are_drawn_on_one_scale() {
        let (worse, better) = (ratio(0.80, 0.75, 0.85), ratio(1.05, 0.95, 1.25));
        let ruler = RatioScale::new([worse, better]).unwrap();
        let lines = [ruler.header(), ruler.line(None), ruler.line(Some(worse)), ruler.line(Some(better))];
        assert_eq!(
            lines,
            ["0.75      1      1.33", "          ●          ", "━━●━━     │          ", "        ━━┿━●━━━━━━  ",]
        );
    }

    #[test]
    fn scale_requires_a_ratio() {
        assert!(RatioScale::new([]).is_none());
        let far = RatioScale::new([RatioEstimate { estimate: 20.0, interval: None }]).unwrap();
        assert_eq!(far.header(), "0.05      1     20.00");
    }
}

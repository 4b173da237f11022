//! A/A comparison: a significance test of two sets of samples of one system, and its minimum detectable effect.

use wb_model::Direction;
use wb_results::comparison::NegligibleRatios;
use wb_results::experiment::Design;
use wb_stats::{GroupSequentialTest, HodgesLehmann, Interval, LogRatios, Samples};

use super::Options;
use crate::statistical::Verdict;
use crate::statistical::verdict::judge;

/// The statistical power: the probability with which a difference has to be detected.
const POWER: f64 = 0.8;

/// The result of an A/A comparison. The true ratio of its two sides is 1.
pub(super) struct AaComparison {
    /// The ratio of the second side to the first.
    estimate: f64,
    /// `None` with too few samples.
    interval: Option<Interval>,
    /// Whether the difference is statistically significant: a false positive.
    pub(super) significant: bool,
}

/// Compares two sides, with the test that fits the design; `None` if their values are invalid.
pub(super) fn compare_sides(
    design: Design,
    [a, b]: &[Vec<f64>; 2],
    sequential_test: &GroupSequentialTest,
    options: &Options,
) -> Option<AaComparison> {
    if design == Design::Interleaved {
        let log_ratios: LogRatios = a.iter().zip(b).map(|(a, b)| b.ln() - a.ln()).collect();
        let interval = sequential_test.interval(&log_ratios, options.error_rate);
        let significant = interval.is_some_and(|interval| !interval.contains(1.0));
        return Some(AaComparison { estimate: log_ratios.estimate()?, interval, significant });
    }
    let [a, b] = [Samples::new(a).ok()?, Samples::new(b).ok()?];
    let estimator = HodgesLehmann::new(&a, &b);
    let ratio = estimator.ratio(estimator.p_value(), 1.0 - options.error_rate);
    Some(AaComparison {
        estimate: ratio.estimate,
        interval: ratio.interval,
        significant: ratio.p_value <= options.error_rate,
    })
}

impl AaComparison {
    /// Whether it reports an improvement or a regression, which is always a false positive.
    pub(super) fn reports_difference(&self, threshold: f64) -> bool {
        // With the other direction, improved and regressed are swapped, and both count.
        let negligible = NegligibleRatios::new(threshold * 100.0);
        let verdict = judge(self.estimate, self.interval, self.significant, Direction::Higher, negligible);
        matches!(verdict, Verdict::Improved | Verdict::Regressed)
    }

    /// The smallest factors that would be reported, if all values of the second side were multiplied by it, and if
    /// those of the first were; `None` without an interval.
    fn detectable_factors(&self, threshold: f64) -> Option<[f64; 2]> {
        let interval = self.interval?;
        let min_ratio = 1.0 + threshold;
        Some([(1.0 / interval.low).max(min_ratio / self.estimate), interval.high.max(self.estimate * min_ratio)])
    }
}

/// The minimum detectable effect in percent: the quantile [`POWER`] of the detectable factors. `None` without
/// comparisons, or if one of them has no interval.
pub(super) fn detectable_percent(comparisons: &[AaComparison], threshold: f64) -> Option<f64> {
    let factors: Option<Vec<[f64; 2]>> =
        comparisons.iter().map(|comparison| comparison.detectable_factors(threshold)).collect();
    let mut factors = factors?.concat();
    factors.sort_unstable_by(f64::total_cmp);
    let rank = (factors.len() as f64 * POWER).ceil() as usize;
    Some((factors.get(rank.checked_sub(1)?)? - 1.0) * 100.0)
}

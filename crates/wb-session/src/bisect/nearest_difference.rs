//! The difference between the endpoints of a bisection that came nearest to a verdict, and what would lead to one.

use wb_results::comparison::{CheckResult, ComparisonResult, FinalVerdict, ObservationKind, RequiredSamples};

/// Number of runs or samples beyond which more of them are no advice.
const MAX_ADVISED: usize = 100;

/// The most significant difference in a primary check that did not count.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestDifference {
    check: String,
    /// The difference and its interval, in percent.
    percent: f64,
    interval: Option<[f64; 2]>,
    verdict: FinalVerdict,
    /// The smallest relevant difference, in percent.
    threshold: f64,
    required: Option<RequiredSamples>,
}

impl NearestDifference {
    /// `None` if no primary check was compared by statistics.
    pub(super) fn new(outcome: &ComparisonResult) -> Option<Self> {
        let compared = outcome.checks.iter().filter(|check| check.primary).filter_map(Self::of_check);
        compared.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, nearest)| nearest)
    }

    /// With its p-value.
    fn of_check(check: &CheckResult) -> Option<(f64, Self)> {
        let statistics = check.statistics.as_ref()?;
        // Of values below zero, the difference relative to the good revision.
        let base = check.before.map(f64::abs).filter(|base| *base > 0.0);
        let relative = |difference: f64| Some(1.0 + difference / base?);
        let of_values = statistics.value_difference;
        let ratio = statistics.ratio.or_else(|| relative(of_values?.estimate))?;
        let interval = statistics.runs_interval.or(statistics.interval).map(|it| [it.low, it.high]).or_else(|| {
            let interval = of_values?.runs_interval.or(of_values?.interval)?;
            Some([relative(interval.low)?, relative(interval.high)?])
        });
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let nearest = Self {
            check: check.id.to_string(),
            percent: percent(ratio),
            interval: interval.map(|ends| ends.map(percent)),
            verdict: check.final_verdict,
            threshold: statistics.threshold,
            required: statistics.required_samples,
        };
        Some((statistics.p_value?, nearest))
    }

    /// Whether the estimate is beyond the threshold, however certain that is.
    pub(super) fn is_relevant(&self) -> bool {
        let log = |percent: f64| (percent / 100.0).ln_1p().abs();
        log(self.percent) > log(self.threshold)
    }

    pub(super) fn describe(&self) -> String {
        let interval = self.interval.map(|[low, high]| format!(" [{low:+.1}, {high:+.1}]")).unwrap_or_default();
        let few = if self.has_too_few_samples() { ", from too few samples to decide" } else { "" };
        format!("`{}` differs by {:+.1} %{interval}{few}; threshold {} %", self.check, self.percent, self.threshold)
    }

    fn has_too_few_samples(&self) -> bool {
        self.required.is_some_and(|required| required.is_minimum)
    }

    /// What would lead to a verdict, if anything is known.
    pub(super) fn advice(&self) -> Option<String> {
        if let Some(RequiredSamples { per_side: Some(number), is_minimum: true, .. }) = self.required {
            return Some(format!("{number} samples of a run are required, or several runs of each revision (--runs)"));
        }
        // The end of the interval that is nearer to no difference, if all of it is on one side.
        let certain = self.interval.filter(|[low, high]| low * high > 0.0).map(|[low, high]| low.abs().min(high.abs()));
        if let Some(certain) = certain.filter(|certain| *certain < self.threshold && *certain >= 0.1) {
            let threshold = (certain * 10.0).floor() / 10.0;
            return Some(format!(
                "--threshold {threshold} lets that difference count, in another folder; --good-results and --bad-results \
                 take the runs that were measured"
            ));
        }
        if self.verdict == FinalVerdict::Equivalent {
            return Some("it is equivalent within the threshold, which more runs will not change".to_owned());
        }
        let RequiredSamples { per_side, unit, .. } = self.required?;
        let number = per_side.filter(|number| *number <= MAX_ADVISED)?;
        Some(match unit {
            ObservationKind::Runs => format!("about {number} runs of each revision would decide: --runs {number}"),
            ObservationKind::Samples => format!("about {number} samples of each revision would decide"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(percent: f64, interval: [f64; 2], verdict: FinalVerdict, per_side: Option<usize>) -> NearestDifference {
        NearestDifference {
            check: "x".to_owned(),
            percent,
            interval: Some(interval),
            verdict,
            threshold: 5.0,
            required: Some(RequiredSamples { per_side, unit: ObservationKind::Runs, is_minimum: false }),
        }
    }

    #[test]
    fn advice_is_what_would_decide() {
        let small = nearest(-3.0, [-3.6, -2.45], FinalVerdict::Equivalent, None);
        assert_eq!(small.describe(), "`x` differs by -3.0 % [-3.6, -2.5]; threshold 5 %");
        assert!(small.advice().unwrap().starts_with("--threshold 2.4 lets that difference count, in another folder"));
        let equal = nearest(0.3, [-1.0, 1.4], FinalVerdict::Equivalent, None);
        assert!(equal.advice().unwrap().contains("more runs will not change"));
        let unclear = nearest(6.0, [-1.0, 13.0], FinalVerdict::Inconclusive, Some(9));
        assert_eq!(unclear.advice().unwrap(), "about 9 runs of each revision would decide: --runs 9");
        assert_eq!(nearest(6.0, [-1.0, 13.0], FinalVerdict::Inconclusive, Some(4000)).advice(), None);
        assert_eq!(nearest(6.0, [-1.0, 13.0], FinalVerdict::Inconclusive, None).advice(), None);
        let required = RequiredSamples { per_side: Some(6), unit: ObservationKind::Samples, is_minimum: true };
        let few = NearestDifference {
            required: Some(required),
            ..nearest(-14.7, [-16.6, -12.8], FinalVerdict::Inconclusive, None)
        };
        assert_eq!(
            few.describe(),
            "`x` differs by -14.7 % [-16.6, -12.8], from too few samples to decide; threshold 5 %"
        );
        assert!(few.advice().unwrap().starts_with("6 samples of a run are required"));
    }
}

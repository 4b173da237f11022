//! The result of the statistical method.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::NoiseSource;

use super::{
    Aspect, AspectSummary, AttemptCounts, ConfidenceInterval, FailureSummary, FinalVerdict, NegligibleRatios,
    NoiseModelUse, ObservationCounts, RequiredSamples, ValueDifference,
};

/// The result of the statistical method for a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatisticalSummary {
    /// The verdict from the aspects and their uncertainty.
    pub verdict: FinalVerdict,
    /// The aspect that the verdict is based on; `None` if no ratio can be computed.
    pub aspect: Option<Aspect>,
    /// The ratio of the last build to the first, of that aspect; `None` with its intervals if a sample is below zero.
    pub ratio: Option<f64>,
    /// The difference of values instead of a ratio.
    #[serde(default)]
    pub value_difference: Option<ValueDifference>,
    /// The confidence interval of the ratio, as if runs of one build did not differ.
    pub interval: Option<ConfidenceInterval>,
    /// The confidence interval of the ratio with the noise between runs.
    #[serde(default)]
    pub runs_interval: Option<ConfidenceInterval>,
    /// The p-value with the noise between runs, adjusted for the family.
    pub p_value: Option<f64>,
    /// Everything that was compared, beginning with the shift.
    #[serde(default)]
    pub aspects: Vec<AspectSummary>,
    /// The ratio of the medians, which decides nothing.
    #[serde(default)]
    pub median_ratio: Option<f64>,
    /// Its confidence interval.
    #[serde(default)]
    pub median_interval: Option<ConfidenceInterval>,
    /// The numbers of samples and runs.
    #[serde(flatten)]
    pub counts: ObservationCounts,
    /// The failed attempts of the cell on each side.
    #[serde(default)]
    pub failures: [AttemptCounts; 2],
    /// Whether an aspect is worse, at least by the samples.
    #[serde(default)]
    pub may_be_worse: bool,
    /// Whether the sides would be equivalent if samples did not depend on those before them, and are inconclusive.
    #[serde(default)]
    pub equal_if_independent: bool,
    /// Whether attempts fail significantly more often in the last build.
    #[serde(default)]
    pub failures_rose: bool,
    /// The comparison of the shares of attempts that failed; `None` if none did, or a side does not record attempts.
    #[serde(default)]
    pub failure_rates: Option<FailureSummary>,
    /// Whether the check is unconfirmed, and would be confirmed if nothing else were compared.
    #[serde(default)]
    pub significant_alone: bool,
    /// The number of each side's samples that were disturbed from outside the workload; `None` if its results do not
    /// record it.
    pub disturbed: [Option<usize>; 2],
    /// The smallest relevant difference upwards, in percent.
    pub threshold: f64,
    /// The ratios that do not matter by this threshold, both ends included: for 5 % from 1/1.05 to 1.05, which is −4.76 % to
    /// +5 %.
    #[serde(default)]
    pub negligible: Option<NegligibleRatios>,
    /// Whether and how a noise model was used; `None` without models.
    pub noise: Option<NoiseModelUse>,
    /// Where the noise between runs is from, without a noise model.
    #[serde(default)]
    pub noise_source: Option<NoiseSource>,
    /// How much runs of one build are assumed to differ, in percent.
    #[serde(default)]
    pub run_noise: f64,
    /// The number of values required for a verdict.
    pub required_samples: Option<RequiredSamples>,
}

impl StatisticalSummary {
    /// The aspect that the verdict is based on.
    pub fn decisive_aspect(&self) -> Option<&AspectSummary> {
        self.aspects.iter().find(|aspect| Some(aspect.aspect) == self.aspect)
    }
}

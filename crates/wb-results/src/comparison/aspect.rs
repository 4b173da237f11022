//! The aspects of two distributions that are compared.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfidenceInterval, FinalVerdict};

/// What of two distributions is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// The factor by which all samples differ: the median of the ratios of all pairs of samples (Hodges and Lehmann).
    Shift,
    /// The ratio of means.
    Mean,
    /// The ratio of the 10 % quantiles, where more is better; from 36 samples a side on.
    #[serde(rename = "quantile-10")]
    Quantile10,
    /// The ratio of the 25 % quantiles, where more is better; from 13 samples a side on.
    #[serde(rename = "quantile-25")]
    Quantile25,
    /// The ratio of the 75 % quantiles, where less is better; from 13 samples a side on.
    #[serde(rename = "quantile-75")]
    Quantile75,
    /// The ratio of the 90 % quantiles, where less is better; from 36 samples a side on.
    #[serde(rename = "quantile-90")]
    Quantile90,
    /// The shift of the 99 % quantile of the operations' latencies, of which every sample has one.
    P99,
}

impl Aspect {
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Quantile10 => Some(0.1),
            Self::Quantile25 => Some(0.25),
            Self::Quantile75 => Some(0.75),
            Self::Quantile90 => Some(0.9),
            Self::Shift | Self::Mean | Self::P99 => None,
        }
    }

    /// The text shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shift => "shift",
            Self::Mean => "mean",
            Self::Quantile10 => "10 % quantile",
            Self::Quantile25 => "25 % quantile",
            Self::Quantile75 => "75 % quantile",
            Self::Quantile90 => "90 % quantile",
            Self::P99 => "p99 latency",
        }
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The comparison of one aspect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AspectSummary {
    /// The aspect.
    pub aspect: Aspect,
    /// The ratio of the last build to the first; `None` with its intervals if a sample is below zero.
    pub ratio: Option<f64>,
    /// The difference of values instead of a ratio.
    #[serde(default)]
    pub value_difference: Option<ValueDifference>,
    /// The confidence interval of the ratio, as if runs of one build did not differ.
    pub interval: Option<ConfidenceInterval>,
    /// The same, widened by the dependence of samples on those before them: equality needs this one.
    #[serde(default)]
    pub widened_interval: Option<ConfidenceInterval>,
    /// The confidence interval of the ratio with the noise between runs.
    pub runs_interval: Option<ConfidenceInterval>,
    /// The p-value by the samples alone, before and after each correction; `None` where a noise model decides on fewer than 6
    /// samples a side, which have no test of their own.
    pub p_by_samples: Option<TestPValues>,
    /// The p-value with the noise between runs, before and after each correction; never below the one by the samples.
    pub p_by_runs: TestPValues,
    /// How certain it is that the aspect differs.
    pub certainty: Certainty,
    /// The verdict on this aspect alone, as if runs of one build did not differ.
    pub alone: FinalVerdict,
    /// Whether its estimate is worse by more than the threshold, however certain that is: beside it no gain is confirmed.
    #[serde(default)]
    pub seems_worse: bool,
}

/// The difference of the last build from the first in the unit of their values, where a sample is below zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueDifference {
    /// The estimate.
    pub estimate: f64,
    /// Its confidence interval, as if runs of one build did not differ.
    pub interval: Option<ConfidenceInterval>,
    /// The same, widened by the dependence of samples on those before them.
    pub widened_interval: Option<ConfidenceInterval>,
    /// Its confidence interval with the noise between runs.
    pub runs_interval: Option<ConfidenceInterval>,
}

/// How certain it is that an aspect differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Not significant.
    None,
    /// Significant as if runs of one build did not differ.
    Samples,
    /// Significant with the noise between runs.
    Runs,
}

/// A p-value, and what it is after each correction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestPValues {
    /// Of this test alone.
    pub alone: f64,
    /// Adjusted for the aspects of the check.
    pub in_check: f64,
    /// Adjusted for all primary checks, too: significant if it is at most the error rate.
    pub in_family: f64,
}

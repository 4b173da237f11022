//! The comparison of a test's variants with the first one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ComparedMetric, Criterion, DuplicateVariants, StoppingState, VariantResult};
use crate::comparison::AttemptCounts;

/// The comparison of a test's variants with the first variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantExperiment {
    /// When a variant is reported as different.
    pub criterion: Criterion,
    /// The maximum number of blocks for each case; a block is one sample of every variant.
    pub max_blocks: usize,
    /// The number of comparisons for which p-values are adjusted: of every variant but the first, in every primary metric of
    /// every case. `None` if an older version recorded the run.
    #[serde(default)]
    pub family: Option<usize>,
    /// The comparison for each case, which is a combination of the test's axes that the variants do not change, and each of
    /// its primary metrics. Those of a case follow each other.
    pub cases: Vec<VariantCase>,
}

impl VariantExperiment {
    /// The comparisons of each case, one for each metric.
    pub fn by_case(&self) -> impl Iterator<Item = &[VariantCase]> {
        self.cases.chunk_by(|one, other| one.case == other.case)
    }

    pub fn metric(&self, case: &VariantCase) -> ComparedMetric {
        case.metric.clone().unwrap_or_else(|| self.criterion.compared_metric())
    }
}

/// The comparison of all variants for one case of the test, in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantCase {
    /// The case (`rw=read,bs=4k`), without the parameters that the variants change.
    pub case: String,
    /// The metric; `None` if an older version recorded the run, which compared that of the criterion.
    #[serde(default)]
    pub metric: Option<ComparedMetric>,
    /// The number of evaluated blocks: of the variant with the most, those with a counted sample of it and of the first. A
    /// sample is counted if it is valid and the sampling rule uses it; warm-ups never are.
    pub blocks: usize,
    /// The number of blocks in which both were measured, counted or not, of the variant with the most; `None` if an older
    /// version recorded the run, or without variants.
    #[serde(default)]
    pub measured_blocks: Option<usize>,
    /// Whether the case needs another block, in this metric or in another.
    pub state: StoppingState,
    /// The variants, in the given order.
    pub variants: Vec<VariantSummary>,
    /// Pairs of variants between which any difference is noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duplicates: Vec<DuplicateVariants>,
}

/// The samples of a variant for one case in figures, and the comparison with the first variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantSummary {
    /// The variant's name: also the last folder of the path of its results, `PROFILE/TEST/NAME`.
    pub name: String,
    /// The variant as given on the command line, with secrets masked: `huge:param:huge-pages=always`.
    pub spec: String,
    /// The number of counted samples.
    pub samples: usize,
    /// How many of the counted samples were disturbed by activity outside the workload: stolen CPU time, CPU
    /// time and I/O of other processes. `None` if an older version recorded the run.
    #[serde(default)]
    pub disturbed: Option<usize>,
    /// The failed attempts at its samples; with those at warm-ups if it or the first variant, with which it is compared, did not
    /// get beyond them. No attempts if an older version recorded the run.
    #[serde(default)]
    pub failures: AttemptCounts,
    /// Those of the first variant that they are compared with: as many as this one has, or with its warm-ups, too, if this one
    /// did not get beyond them. `None` for the first variant, or if an older version recorded the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures_of_first: Option<AttemptCounts>,
    /// Whether attempts fail significantly more often than those of the first variant, which is worse whatever the samples
    /// show.
    #[serde(default)]
    pub failures_rose: bool,
    /// The p-value of the difference between the shares of failed attempts (Fisher's exact test), adjusted for those of all
    /// variants and cases (Benjamini and Hochberg); `None` if none failed, or for the first variant.
    #[serde(default)]
    pub failure_p_value: Option<f64>,
    /// Whether the share of failed attempts differs from that of the first variant, and not significantly: nothing is known
    /// about which of both fails more often.
    #[serde(default)]
    pub failures_undecided: bool,
    /// The number of attempts that would decide which fails more often, if as many of them fail as so far: at each of both
    /// variants, or at one of them if the other makes no more. `None` if that is decided, the shares are equal or differ too
    /// little, or neither makes more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_attempts_to_decide: Option<u32>,
    /// Whether so many of its last attempts failed that it makes no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub makes_no_more_attempts: bool,
    /// The median of the counted samples; `None` without samples.
    pub median: Option<f64>,
    /// The comparison with the first variant; `None` for the first itself.
    pub result: Option<VariantResult>,
    /// Why it has fewer samples than required; `None` if it has enough.
    pub shortfall: Option<String>,
}

//! The comparison of a test's variants with the first one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::Samples;

use super::duplicates::duplicates;
use super::variant_failures::VariantFailures;
use super::{CaseSamples, ComparedMetric, Criterion, DuplicateVariants, InvalidMetric, VariantSamples};
use crate::build::AttemptCounts;
use crate::sequential_test::{CaseResult, MetricResult, SequentialTest, StoppingState, VariantResult, VariantVerdict};

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

impl VariantCase {
    /// Compares the variants of every case with the first one in every metric, as one family, and their failures as
    /// another. Fails if a sample is below zero.
    pub fn evaluate_all(cases: Vec<CaseSamples>, sequential_test: &SequentialTest) -> Result<Vec<Self>, InvalidMetric> {
        let blocks = cases.iter().map(|case| case.blocks(sequential_test)).collect::<Result<Vec<_>, _>>()?;
        let results = sequential_test.evaluate(&blocks).expect("all blocks have been checked");
        let failures = VariantFailures::compare_all(&cases, sequential_test.error_rate());
        let case = |((case, failures), result): ((&CaseSamples, &Vec<VariantFailures>), CaseResult)| {
            let metrics = result.metrics.into_iter().enumerate();
            let is_decided = is_decided_by_failures(case, failures, sequential_test.error_rate());
            let state = if is_decided { StoppingState::Decided } else { result.state };
            metrics.map(|(index, metric)| Self::new(case, index, state, metric, failures)).collect::<Vec<_>>()
        };
        Ok(cases.iter().zip(&failures).zip(results).flat_map(case).collect())
    }

    fn new(
        samples: &CaseSamples,
        index: usize,
        state: StoppingState,
        result: MetricResult,
        failures: &[VariantFailures],
    ) -> Self {
        let variants = &samples.variants;
        let measured = variants.split_first().and_then(|(first, others)| {
            let blocks = |variant: &VariantSamples| (&first.measured_rounds & &variant.measured_rounds).len();
            others.iter().map(blocks).max()
        });
        let others = result.variants.into_iter().map(Some);
        let results = std::iter::once(None).chain(others).zip(failures);
        let summaries = variants.iter().zip(results).map(|(variant, (result, failures))| {
            let class = samples.metrics[index].metric.class;
            let result = result.map(|result| VariantResult {
                verdict: if failures.rose { VariantVerdict::Worse } else { result.verdict.of_class(class) },
                ..result
            });
            let values: Vec<f64> = variant.values[index].iter().map(|(_, value)| *value).collect();
            VariantSummary {
                name: variant.name.clone(),
                spec: variant.spec.clone(),
                samples: values.len(),
                disturbed: Some(variant.disturbed),
                failures: failures.counts.map_or(variant.failures, |[_, own]| own),
                failures_of_first: failures.counts.map(|[first, _]| first),
                failures_rose: failures.rose,
                failure_p_value: failures.p_value,
                failures_undecided: failures.is_undecided,
                failure_attempts_to_decide: failures.attempts_to_decide,
                makes_no_more_attempts: variant.makes_no_more,
                median: Samples::new(&values).ok().map(|samples| samples.median()),
                result,
                shortfall: variant.shortfall_reason.clone(),
            }
        });
        Self {
            case: samples.case.clone(),
            metric: Some(samples.metrics[index].clone()),
            blocks: result.blocks,
            measured_blocks: measured,
            state,
            variants: summaries.collect(),
            duplicates: duplicates(variants),
        }
    }
}

/// Whether the first variant or all others make no more attempts, and it is significant of each which of both fails
/// more often: their samples cannot say more.
fn is_decided_by_failures(case: &CaseSamples, failures: &[VariantFailures], error_rate: f64) -> bool {
    let Some((first, others)) = case.variants.split_first() else { return false };
    let is_over = first.makes_no_more || !others.is_empty() && others.iter().all(|variant| variant.makes_no_more);
    is_over && failures.iter().skip(1).all(|failures| failures.is_significant(error_rate))
}

#[cfg(test)]
mod tests {
    use wb_model::{Direction, MetricKey, Unit};

    use super::*;

    #[test]
    fn a_variant_that_fails_significantly_more_often_is_worse() {
        let options = crate::sequential_test::Options::default();
        let test = SequentialTest::new(1, 3, options).unwrap();
        let variant = |name: &str, failed: u32, attempts: u32| VariantSamples {
            name: name.to_owned(),
            values: vec![(0..12).map(|block| (block, 100.0 + f64::from(block * 3 % 7))).collect()],
            failures: AttemptCounts { failed, attempts },
            ..VariantSamples::default()
        };
        let metric = ComparedMetric {
            metric: MetricKey::new(wb_model::Class::Throughput, "rate"),
            unit: Unit::new("1/s"),
            direction: Direction::Higher,
        };
        let variants = vec![variant("a", 0, 12), variant("b", 24, 36), variant("c", 1, 13)];
        let samples = CaseSamples { case: String::new(), metrics: vec![metric], variants };
        let cases = VariantCase::evaluate_all(vec![samples], &test).unwrap();
        let [first, often, once] = &cases[0].variants[..] else { panic!("three variants") };
        assert_eq!((first.failure_p_value, first.failures_rose), (None, false));
        assert!(often.failures_rose && often.failure_p_value.unwrap() < 0.001, "{often:?}");
        assert_eq!(often.result.unwrap().verdict, VariantVerdict::Worse);
        assert!(!once.failures_rose && once.failure_p_value.unwrap() > 0.05, "{once:?}");
        assert_eq!([first, often, once].map(|variant| variant.failures_undecided), [false, false, true]);
        assert!(
            often.failure_attempts_to_decide.is_none() && once.failure_attempts_to_decide.unwrap() > 13,
            "{once:?}"
        );
        assert_eq!(once.result.unwrap().verdict, VariantVerdict::Equivalent);
    }
}

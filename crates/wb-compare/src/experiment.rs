//! Results of experiments: variants sampled in interleaved order, and A/A calibrations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Direction, MetricKey, Params, Unit};
use wb_stats::{Samples, benjamini_hochberg};

use crate::build::AttemptCounts;
use crate::calibrate::Calibration;
use crate::failure_test::FailureTest;
use crate::sequential_test::{
    CaseBlocks, CaseResult, InvalidBlock, MetricBlocks, MetricResult, SequentialTest, StoppingState, VariantResult,
    VariantVerdict,
};

/// The metric that decides an experiment, and how large and how certain a difference must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// The test as given on the command line, such as `himeno:grid=M`.
    pub test: String,
    /// The first primary metric, `CLASS/METRIC`. Of variants, every primary one decides: see the cases.
    #[schemars(with = "String")]
    pub metric: MetricKey,
    /// Other primary metrics, which decide nothing: of a calibration, or if an older version recorded the run.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub other_metrics: Vec<MetricKey>,
    /// The unit of the metric's values.
    pub unit: Unit,
    /// Which direction of change is better.
    pub direction: Direction,
    /// The smallest relevant difference, in percent: if the whole confidence interval of the ratio is closer to 1, the
    /// verdict is `equivalent`.
    pub threshold: f64,
    /// The error rate, in percent: the share of identical variants among those reported as different; of a single
    /// comparison, and of the sides of a calibration, the probability that they are.
    pub error_rate: f64,
}

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

/// A metric by which variants are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedMetric {
    /// The metric, `CLASS/METRIC`.
    #[schemars(with = "String")]
    pub metric: MetricKey,
    /// The unit of its values.
    pub unit: Unit,
    /// Which direction of change is better.
    pub direction: Direction,
}

impl Criterion {
    /// The metric that decides.
    pub fn compared_metric(&self) -> ComparedMetric {
        ComparedMetric { metric: self.metric.clone(), unit: self.unit.clone(), direction: self.direction }
    }
}

impl VariantExperiment {
    /// The comparisons of each case, one for each metric.
    pub fn by_case(&self) -> impl Iterator<Item = &[VariantCase]> {
        self.cases.chunk_by(|one, other| one.case == other.case)
    }

    /// The metric of a comparison.
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
    /// The number of complete blocks: those with a counted sample of every variant. A sample is counted if it is valid
    /// and the sampling rule uses it; warm-ups never are.
    pub blocks: usize,
    /// The number of blocks in which every variant was measured, counted or not; `None` if an older version recorded
    /// the run, or without variants.
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

/// Two variants that ran identical programs and have the same parameters, except those that only affect the build: any
/// difference between their results is noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DuplicateVariants {
    /// The names of both variants.
    pub variants: [String; 2],
    /// The SHA-256 of each program that both ran, by the program's name.
    pub programs: BTreeMap<String, String>,
    /// Build parameters in which they differ, and compilers and other build tools that both use in different versions;
    /// none had an effect on the programs.
    pub differences: Vec<String>,
}

impl fmt::Display for DuplicateVariants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.variants;
        let prefix = |sha256: &str| sha256.chars().take(12).collect::<String>();
        let programs: Vec<String> =
            self.programs.iter().map(|(name, sha256)| format!("{name} (SHA-256 {}…)", prefix(sha256))).collect();
        write!(f, "`{one}` and `{other}` ran identical programs: {}", programs.join(", "))?;
        if !self.differences.is_empty() {
            write!(f, ", although they differ in {}", self.differences.join(", "))?;
        }
        f.write_str("; any difference between their results is noise")
    }
}

/// What determines a variant's results: parameters and programs, and the inputs of their build.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantInputs {
    /// The effective parameters, without those that only affect the build.
    pub params: Params,
    /// The SHA-256 of the programs that ran, by name.
    pub programs: BTreeMap<String, String>,
    /// The effective parameters that only affect the build.
    pub build_params: Params,
    /// The SHA-256 of compilers and other programs that the build uses, by name.
    pub build_programs: BTreeMap<String, String>,
}

impl VariantInputs {
    /// The names of the build's inputs that differ, if everything else is the same. `None` if it is not, or if no
    /// program is known.
    fn build_only_differences(&self, other: &Self) -> Option<Vec<String>> {
        let is_same = self.params == other.params && self.programs == other.programs && !self.programs.is_empty();
        is_same.then(|| {
            let params: BTreeSet<&String> = self.build_params.keys().chain(other.build_params.keys()).collect();
            let params =
                params.into_iter().filter(|name| self.build_params.get(*name) != other.build_params.get(*name));
            // A program that only one of them uses was selected by a parameter, which is listed.
            let programs = self.build_programs.iter().filter(|(name, sha256)| {
                other.build_programs.get(*name).is_some_and(|other_sha256| other_sha256 != *sha256)
            });
            params.chain(programs.map(|(name, _)| name)).cloned().collect()
        })
    }
}

/// The pairs of variants that ran identical programs and have the same parameters, except those of the build.
fn duplicates(variants: &[VariantSamples]) -> Vec<DuplicateVariants> {
    let mut pairs = Vec::new();
    for (index, one) in variants.iter().enumerate() {
        for other in &variants[index + 1..] {
            pairs.extend(one.inputs.build_only_differences(&other.inputs).map(|differences| DuplicateVariants {
                variants: [one.name.clone(), other.name.clone()],
                programs: one.inputs.programs.clone(),
                differences,
            }));
        }
    }
    pairs
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
    /// The failed attempts at its samples. No attempts if an older version recorded the run.
    #[serde(default)]
    pub failures: AttemptCounts,
    /// Whether attempts fail significantly more often than those of the first variant, which is worse whatever the samples
    /// show.
    #[serde(default)]
    pub failures_rose: bool,
    /// The p-value of the difference between the shares of failed attempts (Fisher's exact test), adjusted for those of all
    /// variants and cases (Benjamini and Hochberg); `None` if none failed, or for the first variant.
    #[serde(default)]
    pub failure_p_value: Option<f64>,
    /// The median of the counted samples; `None` without samples.
    pub median: Option<f64>,
    /// The comparison with the first variant; `None` for the first itself.
    pub result: Option<VariantResult>,
    /// Why it has fewer samples than required; `None` if it has enough.
    pub shortfall: Option<String>,
}

/// The samples of a variant for one case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantSamples {
    /// The variant's name.
    pub name: String,
    /// The variant as given on the command line, with secrets masked: `huge:param:huge-pages=always`.
    pub spec: String,
    /// For each metric of the case the values of the counted samples, each with the sample's number, which is that of its
    /// block.
    pub values: Vec<Vec<(u32, f64)>>,
    /// The block numbers of all measured samples, counted or not.
    pub block_numbers: BTreeSet<u32>,
    /// How many of the counted samples were disturbed by activity outside the workload.
    pub disturbed: usize,
    /// The failed attempts at the samples.
    pub failures: AttemptCounts,
    /// Why there are fewer samples than required; `None` if there are enough.
    pub shortfall_reason: Option<String>,
    /// What determines its results.
    pub inputs: VariantInputs,
}

/// The samples of all variants for one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseSamples {
    /// The case, without the parameters that variants change.
    pub case: String,
    /// The metrics that are compared.
    pub metrics: Vec<ComparedMetric>,
    /// The variants.
    pub variants: Vec<VariantSamples>,
}

/// A sample that cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{metric}: {cause}")]
pub struct InvalidMetric {
    /// The metric.
    pub metric: MetricKey,
    /// The cause.
    #[source]
    pub cause: InvalidBlock,
}

impl CaseSamples {
    /// The test of each variant but the first; `None` if nothing failed.
    fn failure_tests(&self) -> Vec<Option<FailureTest>> {
        let Some((first, others)) = self.variants.split_first() else { return Vec::new() };
        others.iter().map(|variant| FailureTest::of([first.failures, variant.failures])).collect()
    }

    fn blocks(&self, sequential_test: &SequentialTest) -> Result<CaseBlocks, InvalidMetric> {
        let metric = |(at, metric): (usize, &ComparedMetric)| {
            let values: Vec<&[(u32, f64)]> =
                self.variants.iter().map(|variant| variant.values[at].as_slice()).collect();
            let blocks = MetricBlocks { direction: metric.direction, blocks: complete_blocks(&values) };
            let checked = sequential_test.check(&blocks);
            checked.map_err(|cause| InvalidMetric { metric: metric.metric.clone(), cause })?;
            Ok(blocks)
        };
        let metrics = self.metrics.iter().enumerate().map(metric).collect::<Result<_, _>>()?;
        Ok(CaseBlocks { metrics, open_rounds: None })
    }
}

/// The complete blocks: for each block number for which every variant has a value, these values in order of the
/// variants.
pub fn complete_blocks(variants: &[&[(u32, f64)]]) -> BTreeMap<u32, Vec<f64>> {
    let value_in =
        |values: &[(u32, f64)], block: u32| values.iter().find(|(number, _)| *number == block).map(|(_, value)| *value);
    let Some(first) = variants.first() else { return BTreeMap::new() };
    let complete = |(number, _): &(u32, f64)| {
        Some((*number, variants.iter().map(|values| value_in(values, *number)).collect::<Option<_>>()?))
    };
    first.iter().filter_map(complete).collect()
}

/// The comparison of a variant's failed attempts with those of the first variant.
#[derive(Debug, Clone, Copy, Default)]
struct VariantFailures {
    /// Adjusted; `None` if nothing failed, or for the first variant.
    p_value: Option<f64>,
    rose: bool,
}

impl VariantFailures {
    /// Compares the variants of all cases as one family.
    fn compare_all(cases: &[CaseSamples], error_rate: f64) -> Vec<Vec<Self>> {
        let tests: Vec<Option<FailureTest>> = cases.iter().flat_map(CaseSamples::failure_tests).collect();
        let p_values: Vec<f64> = tests.iter().map(|test| test.as_ref().map_or(1.0, |test| test.p_value)).collect();
        let adjusted = benjamini_hochberg(&p_values, error_rate).adjusted;
        let compared = |(test, adjusted): (Option<FailureTest>, f64)| match test {
            Some(test) => Self { p_value: Some(adjusted), rose: test.rose && adjusted <= error_rate },
            None => Self::default(),
        };
        let mut all = tests.into_iter().zip(adjusted).map(compared);
        let case = |case: &CaseSamples| {
            let others = case.variants.len().saturating_sub(1);
            std::iter::once(Self::default()).chain(all.by_ref().take(others)).collect()
        };
        cases.iter().map(case).collect()
    }
}

impl VariantCase {
    /// Compares the variants of every case with the first one in every metric, as one family, and their failures as another.
    ///
    /// # Errors
    /// If a sample is not above zero.
    pub fn evaluate_all(cases: Vec<CaseSamples>, sequential_test: &SequentialTest) -> Result<Vec<Self>, InvalidMetric> {
        let blocks = cases.iter().map(|case| case.blocks(sequential_test)).collect::<Result<Vec<_>, _>>()?;
        let results = sequential_test.evaluate(&blocks).expect("all blocks have been checked");
        let failures = VariantFailures::compare_all(&cases, sequential_test.error_rate());
        let case = |((case, failures), result): ((&CaseSamples, &Vec<VariantFailures>), CaseResult)| {
            let metrics = result.metrics.into_iter().enumerate();
            metrics.map(|(at, metric)| Self::new(case, at, result.state, metric, failures)).collect::<Vec<_>>()
        };
        Ok(cases.iter().zip(&failures).zip(results).flat_map(case).collect())
    }

    /// Of the case's metric with this index.
    fn new(
        samples: &CaseSamples,
        at: usize,
        state: StoppingState,
        result: MetricResult,
        failures: &[VariantFailures],
    ) -> Self {
        let variants = &samples.variants;
        let measured = variants.iter().map(|variant| variant.block_numbers.clone()).reduce(|one, other| &one & &other);
        let others = result.variants.into_iter().map(Some);
        let results = std::iter::once(None).chain(others).zip(failures);
        let summaries = variants.iter().zip(results).map(|(variant, (result, failures))| {
            let class = samples.metrics[at].metric.class;
            let result = result.map(|result| VariantResult {
                verdict: if failures.rose { VariantVerdict::Worse } else { result.verdict.of_class(class) },
                ..result
            });
            let values: Vec<f64> = variant.values[at].iter().map(|(_, value)| *value).collect();
            VariantSummary {
                name: variant.name.clone(),
                spec: variant.spec.clone(),
                samples: values.len(),
                disturbed: Some(variant.disturbed),
                failures: variant.failures,
                failures_rose: failures.rose,
                failure_p_value: failures.p_value,
                median: Samples::new(&values).ok().map(|samples| samples.median()),
                result,
                shortfall: variant.shortfall_reason.clone(),
            }
        });
        Self {
            case: samples.case.clone(),
            metric: Some(samples.metrics[at].clone()),
            blocks: result.blocks,
            measured_blocks: measured.map(|numbers| numbers.len()),
            state,
            variants: summaries.collect(),
            duplicates: duplicates(variants),
        }
    }
}

/// The A/A calibration of a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationExperiment {
    /// When two sides are reported as different.
    pub criterion: Criterion,
    /// The number of samples per side of a comparison.
    pub samples_per_side: usize,
    /// The calibration for each case of the test.
    pub cases: Vec<CalibrationCase>,
    /// The runs (`run-007`) added by the last `calibrate`; empty if it measured all runs in the folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
}

/// The A/A calibration of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationCase {
    /// The case: `rw=read,bs=4k`.
    pub case: String,
    /// The number of runs.
    pub runs: usize,
    /// The number of distinct boots in which these runs were made.
    pub boots: usize,
    /// Why runs have fewer counted samples than required, by the name of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shortfalls: BTreeMap<String, String>,
    /// The false-positive rates and the sources of noise.
    pub calibration: Calibration,
}

/// The experiment that a run was recorded for: variants, or an A/A calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// A comparison of variants.
    Variants(VariantExperiment),
    /// An A/A calibration.
    Calibration(CalibrationExperiment),
}

impl Experiment {
    /// Its criterion.
    pub fn criterion(&self) -> &Criterion {
        match self {
            Self::Variants(variants) => &variants.criterion,
            Self::Calibration(calibration) => &calibration.criterion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(name: &str, flags: &str, program: &str, compiler: &str) -> VariantSamples {
        let owned = str::to_owned;
        let params = |name: &str, value: &str| Params::from([(owned(name), wb_model::ParamValue::Text(owned(value)))]);
        VariantSamples {
            name: owned(name),
            inputs: VariantInputs {
                params: params("flags", flags),
                programs: BTreeMap::from([(owned("affine"), owned(program))]),
                build_params: params("cc", compiler),
                build_programs: BTreeMap::from([(owned(compiler), format!("hash of {compiler}"))]),
            },
            ..VariantSamples::default()
        }
    }

    #[test]
    fn variants_with_identical_programs_and_equal_parameters_are_duplicates() {
        let base = variant("base", "-O2", "aa", "gcc");
        let pairs = |other: VariantSamples| duplicates(&[base.clone(), other]);
        assert_eq!(pairs(variant("b", "-O2", "bb", "gcc")), []);
        assert_eq!(pairs(variant("b", "-O3", "aa", "gcc")), []);
        let message = |other: VariantSamples| match &pairs(other)[..] {
            [pair] => pair.to_string(),
            pairs => panic!("expected one pair, found {pairs:?}"),
        };
        let identical = "`base` and `b` ran identical programs: affine (SHA-256 aa…)";
        let noise = "any difference between their results is noise";
        let differs_in_cc = format!("{identical}, although they differ in cc; {noise}");
        assert_eq!(message(variant("b", "-O2", "aa", "gcc-12")), differs_in_cc);
        assert_eq!(message(variant("b", "-O2", "aa", "gcc")), format!("{identical}; {noise}"));
        let mut without_cc = variant("b", "-O2", "aa", "gcc");
        without_cc.inputs.build_params.clear();
        assert_eq!(message(without_cc), differs_in_cc, "a build parameter that only one variant has");
        let mut upgraded = variant("b", "-O2", "aa", "gcc");
        upgraded.inputs.build_programs.insert("gcc".to_owned(), "another hash".to_owned());
        assert_eq!(message(upgraded), format!("{identical}, although they differ in gcc; {noise}"));
        let unknown = VariantSamples::default();
        assert_eq!(duplicates(&[unknown.clone(), unknown]), [], "nothing is known of their programs");
    }

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
        assert_eq!(once.result.unwrap().verdict, VariantVerdict::Equivalent);
    }

    #[test]
    fn complete_blocks_have_a_sample_of_every_variant() {
        let (one, other) = ([(0, 1.0), (2, 3.0), (1, 2.0)], [(0, 10.0), (2, 30.0), (3, 40.0)]);
        assert_eq!(complete_blocks(&[&one, &other]), BTreeMap::from([(0, vec![1.0, 10.0]), (2, vec![3.0, 30.0])]));
        assert_eq!(complete_blocks(&[&one, &[]]), BTreeMap::new());
    }
}

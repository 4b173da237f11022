//! Results of experiments: variants sampled in interleaved order, and A/A calibrations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Direction, MetricKey, Params, Unit};
use wb_stats::Samples;

use crate::calibrate::Calibration;
use crate::sequential_test::{InvalidBlock, SequentialTest, StoppingState, VariantResult};

/// The deciding metric and the criteria of the decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// The test as typed.
    pub test: String,
    /// The primary metric, `CLASS/METRIC`.
    #[schemars(with = "String")]
    pub metric: MetricKey,
    /// Its unit.
    pub unit: Unit,
    /// The better direction.
    pub direction: Direction,
    /// The smallest relevant difference of the ratio, in percent.
    pub threshold: f64,
    /// The error rate, in percent: how often equal sides may be reported as different.
    pub error_rate: f64,
}

/// The comparison of a test's variants with the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantExperiment {
    /// The criterion.
    pub criterion: Criterion,
    /// The maximum number of blocks for each case.
    pub max_blocks: usize,
    /// The cases of the test.
    pub cases: Vec<VariantCase>,
}

/// The results of the variants for one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantCase {
    /// The case, without the parameters that the variants change.
    pub case: String,
    /// The number of blocks with a counted sample of every variant.
    pub blocks: usize,
    /// The number of blocks in which every variant was measured, whether counted or not; `None` in records without it.
    #[serde(default)]
    pub measured_blocks: Option<usize>,
    /// Whether another block is needed.
    pub state: StoppingState,
    /// The variants, in the given order.
    pub variants: Vec<VariantSummary>,
    /// Variants with identical programs and definition: any ratio between them is noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duplicates: Vec<Duplicate>,
}

/// Two variants that measured the same thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Duplicate {
    /// Their names.
    pub variants: [String; 2],
    /// The SHA-256 of each program that both measured, by its name.
    pub programs: BTreeMap<String, String>,
    /// Parameters and build programs in which they differ without an effect on the measured programs.
    pub differences: Vec<String>,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.variants;
        let short = |sha256: &str| sha256.chars().take(12).collect::<String>();
        let programs: Vec<String> =
            self.programs.iter().map(|(name, sha256)| format!("{name} (SHA-256 {}…)", short(sha256))).collect();
        write!(f, "`{one}` and `{other}` measured the same thing: {} ", programs.join(", "))?;
        match &self.differences[..] {
            [] => write!(f, "byte for byte, under equal definitions; a ratio between them is noise"),
            all => {
                write!(f, "byte for byte, although they differ in {}; a ratio between them is noise", all.join(", "))
            }
        }
    }
}

/// The setup of a variant, as far as it determines the results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantSetup {
    /// The effective parameters, without those that only affect a build.
    pub params: Params,
    /// The SHA-256 of the programs that were measured, by name.
    pub programs: BTreeMap<String, String>,
    /// Values that only affect the build: parameters and program hashes.
    pub build: BTreeMap<String, String>,
}

impl VariantSetup {
    /// The differences of the build, if both measured the same programs under the same definition; `None` otherwise,
    /// and if no program is known.
    fn build_differences(&self, other: &Self) -> Option<Vec<String>> {
        let is_same = self.params == other.params && self.programs == other.programs && !self.programs.is_empty();
        is_same.then(|| {
            // A program that only one of them uses was selected by a parameter, which is listed.
            let differs = |(name, value): &(&String, &String)| {
                other.build.get(*name).is_some_and(|other_value| other_value != *value)
            };
            self.build.iter().filter(differs).map(|(name, _)| name.clone()).collect()
        })
    }
}

/// The pairs of variants that measured the same thing.
fn duplicates(variants: &[VariantSamples]) -> Vec<Duplicate> {
    let mut all = Vec::new();
    for (at, one) in variants.iter().enumerate() {
        for other in &variants[at + 1..] {
            all.extend(one.setup.build_differences(&other.setup).map(|differ_in| Duplicate {
                variants: [one.name.clone(), other.name.clone()],
                programs: one.setup.programs.clone(),
                differences: differ_in,
            }));
        }
    }
    all
}

/// The result of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantSummary {
    /// The name, which is the serial of its cells.
    pub name: String,
    /// The variant as typed.
    pub spec: String,
    /// The number of samples.
    pub samples: usize,
    /// The number of samples that were disturbed from outside the workload; `None` in records without it.
    #[serde(default)]
    pub disturbed: Option<usize>,
    /// The median of the samples; `None` without samples.
    pub median: Option<f64>,
    /// The comparison with the first variant; `None` for the first itself.
    pub result: Option<VariantResult>,
    /// The reason if it has fewer samples than required.
    pub shortfall: Option<String>,
}

/// The samples of a variant for one case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantSamples {
    /// The name.
    pub name: String,
    /// The variant as typed.
    pub spec: String,
    /// The values with the number of the sample, which is that of its block.
    pub values: Vec<(u32, f64)>,
    /// The numbers of all measured samples, whether counted or not.
    pub numbers: BTreeSet<u32>,
    /// The number of samples that were disturbed from outside the workload.
    pub disturbed: usize,
    /// The reason if there are fewer samples than required.
    pub shortfall: Option<String>,
    /// The measured setup.
    pub setup: VariantSetup,
}

/// Combines the values of the variants, each with its block number, into the blocks that every variant has.
pub fn blocks(variants: &[&[(u32, f64)]]) -> Vec<Vec<f64>> {
    let value =
        |values: &[(u32, f64)], number: u32| values.iter().find(|(other, _)| *other == number).map(|(_, value)| *value);
    let Some(first) = variants.first() else { return Vec::new() };
    let mut numbers: Vec<u32> = first.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    let block = |number: u32| variants.iter().map(|values| value(values, number)).collect();
    numbers.into_iter().filter_map(block).collect()
}

impl VariantCase {
    /// Evaluates the variants of a case.
    ///
    /// # Errors
    /// If a sample is not above zero.
    pub fn of(case: String, variants: Vec<VariantSamples>, rule: &SequentialTest) -> Result<Self, InvalidBlock> {
        let values: Vec<&[(u32, f64)]> = variants.iter().map(|variant| variant.values.as_slice()).collect();
        let standings = rule.evaluate(&blocks(&values))?;
        let numbers = variants.iter().map(|variant| variant.numbers.clone()).reduce(|one, other| &one & &other);
        let duplicates = duplicates(&variants);
        let others = standings.variants.into_iter().map(Some);
        let summaries = variants.into_iter().zip(std::iter::once(None).chain(others)).map(|(variant, standing)| {
            let values: Vec<f64> = variant.values.iter().map(|(_, value)| *value).collect();
            VariantSummary {
                name: variant.name,
                spec: variant.spec,
                samples: values.len(),
                disturbed: Some(variant.disturbed),
                median: Samples::new(&values).ok().map(|samples| samples.median()),
                result: standing,
                shortfall: variant.shortfall,
            }
        });
        Ok(Self {
            case,
            blocks: standings.blocks,
            measured_blocks: numbers.map(|numbers| numbers.len()),
            state: standings.state,
            variants: summaries.collect(),
            duplicates,
        })
    }
}

/// The A/A calibration of a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationExperiment {
    /// The criterion.
    pub criterion: Criterion,
    /// The number of samples per side of a comparison.
    pub samples_per_side: usize,
    /// The cases of the test.
    pub cases: Vec<CalibrationCase>,
    /// The names of the runs added by the last measurement, if the folder had others before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
}

/// The A/A calibration of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationCase {
    /// The case.
    pub case: String,
    /// The number of runs.
    pub runs: usize,
    /// The number of boots of these runs.
    pub boots: usize,
    /// Runs without counted samples, or with fewer than required, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shortfalls: BTreeMap<String, String>,
    /// The result.
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
        let text = |text: &str| text.to_owned();
        VariantSamples {
            name: text(name),
            setup: VariantSetup {
                params: Params::from([("flags".to_owned(), wb_model::ParamValue::Text(text(flags)))]),
                programs: BTreeMap::from([(text("affine"), text(program))]),
                build: BTreeMap::from([(text("cc"), text(compiler))]),
            },
            ..VariantSamples::default()
        }
    }

    #[test]
    fn variants_with_equal_programs_and_definitions_are_duplicates() {
        let base = variant("base", "-O2", "aa", "gcc");
        let pairs = |other: VariantSamples| duplicates(&[base.clone(), other]);
        assert_eq!(pairs(variant("b", "-O2", "bb", "gcc")), []);
        assert_eq!(pairs(variant("b", "-O3", "aa", "gcc")), []);
        let [same] = &pairs(variant("b", "-O2", "aa", "gcc-12"))[..] else { panic!("one pair") };
        assert_eq!(
            same.to_string(),
            "`base` and `b` measured the same thing: affine (SHA-256 aa…) byte for byte, although they differ in cc; a \
             ratio between them is noise"
        );
        let [same] = &pairs(variant("b", "-O2", "aa", "gcc"))[..] else { panic!("one pair") };
        assert!(same.to_string().ends_with("under equal definitions; a ratio between them is noise"));
        let unknown = VariantSamples::default();
        assert_eq!(duplicates(&[unknown.clone(), unknown]), [], "nothing is known of their programs");
    }

    #[test]
    fn blocks_have_a_sample_of_every_variant() {
        let (one, other) = ([(0, 1.0), (2, 3.0), (1, 2.0)], [(0, 10.0), (2, 30.0), (3, 40.0)]);
        assert_eq!(blocks(&[&one, &other]), [vec![1.0, 10.0], vec![3.0, 30.0]]);
        assert_eq!(blocks(&[&one, &[]]), Vec::<Vec<f64>>::new());
    }
}

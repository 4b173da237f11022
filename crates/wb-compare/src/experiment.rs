//! What is told of variants that were sampled in turns, and of a system that was held against itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Direction, Params, Unit};
use wb_stats::Samples;

use crate::calibrate::Calibration;
use crate::sequential_test::{InvalidBlock, SequentialTest, StoppingState, VariantResult};

/// The figure that decides, and what was asked of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// The test as it was typed.
    pub test: String,
    /// The primary metric, `CLASS/METRIC`.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// A ratio that differs by less than so many percent does not matter.
    pub threshold: f64,
    /// How often, in percent, what does not differ may be said to.
    pub error_rate: f64,
}

/// Variants of a test, held against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantExperiment {
    /// What was asked.
    pub criterion: Criterion,
    /// The most blocks for each case.
    pub max_blocks: usize,
    /// Each case of the test.
    pub cases: Vec<VariantCase>,
}

/// How the variants of one case stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantCase {
    /// The case, without what the variants change.
    pub case: String,
    /// Blocks with a sample of every variant that counts.
    pub blocks: usize,
    /// Blocks in which every variant was measured, whether its sample counts or not; none in records that do not have it.
    #[serde(default)]
    pub measured_blocks: Option<usize>,
    /// Whether another block is needed.
    pub state: StoppingState,
    /// The variants, in the order they were given.
    pub variants: Vec<VariantSummary>,
    /// Variants that measured the same programs under the same definition: whatever their ratio is, it is noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duplicates: Vec<Duplicate>,
}

/// Two variants that measured the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Duplicate {
    /// Their names.
    pub variants: [String; 2],
    /// The SHA-256 of each program that both measured, by its name.
    pub programs: BTreeMap<String, String>,
    /// What they differ in without it making a difference to those programs: parameters and programs of the build.
    pub differ_in: Vec<String>,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.variants;
        let short = |sha256: &str| sha256.chars().take(12).collect::<String>();
        let programs: Vec<String> =
            self.programs.iter().map(|(name, sha256)| format!("{name} (SHA-256 {}…)", short(sha256))).collect();
        write!(f, "`{one}` and `{other}` measured the same thing: {} ", programs.join(", "))?;
        match &self.differ_in[..] {
            [] => write!(f, "byte for byte, under equal definitions; a ratio between them is noise"),
            all => {
                write!(f, "byte for byte, although they differ in {}; a ratio between them is noise", all.join(", "))
            }
        }
    }
}

/// What a variant measured, as far as it decides the figures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantSetup {
    /// The effective parameters, those left out that only a build depends on.
    pub params: Params,
    /// The SHA-256 of the programs that were measured, by name.
    pub programs: BTreeMap<String, String>,
    /// What only the build depended on: values of parameters, and hashes of programs.
    pub build: BTreeMap<String, String>,
}

impl VariantSetup {
    /// In what the build differed, if both measured the same programs under the same definition; none otherwise, and
    /// where no program is known.
    fn build_differences(&self, other: &Self) -> Option<Vec<String>> {
        let is_same = self.params == other.params && self.programs == other.programs && !self.programs.is_empty();
        is_same.then(|| {
            // A program that only one of them calls was chosen by a parameter, which is named.
            let differs = |(name, value): &(&String, &String)| other.build.get(*name).is_some_and(|its| its != *value);
            self.build.iter().filter(differs).map(|(name, _)| name.clone()).collect()
        })
    }
}

/// The pairs among these variants that measured the same.
fn duplicates(variants: &[VariantSamples]) -> Vec<Duplicate> {
    let mut found = Vec::new();
    for (at, one) in variants.iter().enumerate() {
        for other in &variants[at + 1..] {
            found.extend(one.setup.build_differences(&other.setup).map(|differ_in| Duplicate {
                variants: [one.name.clone(), other.name.clone()],
                programs: one.setup.programs.clone(),
                differ_in,
            }));
        }
    }
    found
}

/// A variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantSummary {
    /// Its name: the serial of its cells.
    pub name: String,
    /// As it was typed.
    pub spec: String,
    /// How many samples it has.
    pub samples: usize,
    /// How many of them something outside the workload disturbed; none in records that do not have it.
    #[serde(default)]
    pub disturbed: Option<usize>,
    /// Their median; none without any.
    pub median: Option<f64>,
    /// How it stands to the first; none for the first itself.
    pub result: Option<VariantResult>,
    /// Why it has fewer samples than were wanted, if so.
    pub shortfall: Option<String>,
}

/// A variant's samples of one case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantSamples {
    /// Its name.
    pub name: String,
    /// As it was typed.
    pub spec: String,
    /// By the sample's number, which is its block's.
    pub values: Vec<(u32, f64)>,
    /// The numbers of all samples that were measured, whether they count or not.
    pub numbers: BTreeSet<u32>,
    /// How many of them something outside the workload disturbed.
    pub disturbed: usize,
    /// Why there are fewer than were wanted, if so.
    pub shortfall: Option<String>,
    /// What it measured.
    pub setup: VariantSetup,
}

/// The blocks of some variants, each given as its values by their numbers: those that every variant has.
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
    /// Judges the variants of a case.
    ///
    /// # Errors
    /// When a sample is not above zero.
    pub fn of(case: String, variants: Vec<VariantSamples>, rule: &SequentialTest) -> Result<Self, InvalidBlock> {
        let values: Vec<&[(u32, f64)]> = variants.iter().map(|variant| variant.values.as_slice()).collect();
        let standings = rule.evaluate(&blocks(&values))?;
        let numbers = variants.iter().map(|variant| variant.numbers.clone()).reduce(|one, other| &one & &other);
        let duplicates = duplicates(&variants);
        let others = standings.variants.into_iter().map(Some);
        let told = variants.into_iter().zip(std::iter::once(None).chain(others)).map(|(variant, standing)| {
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
            variants: told.collect(),
            duplicates,
        })
    }
}

/// A system held against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationExperiment {
    /// What was asked.
    pub question: Criterion,
    /// So many samples on each side of a comparison.
    pub samples_per_side: usize,
    /// Each case of the test.
    pub cases: Vec<CalibrationCase>,
    /// The runs that were measured last, by name, where the folder had others before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
}

/// One case of a system held against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationCase {
    /// The case.
    pub case: String,
    /// So many runs.
    pub runs: usize,
    /// Of so many boots.
    pub boots: usize,
    /// Runs that have no samples that count, or fewer than were to be taken, by name, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shortfalls: BTreeMap<String, String>,
    /// What came of it.
    pub calibration: Calibration,
}

/// What was held against what in a run, kept in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Variants of a test against the first of them.
    Variants(VariantExperiment),
    /// A system against itself.
    Calibration(CalibrationExperiment),
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
    fn a_block_has_a_sample_of_every_variant() {
        let (one, other) = ([(0, 1.0), (2, 3.0), (1, 2.0)], [(0, 10.0), (2, 30.0), (3, 40.0)]);
        assert_eq!(blocks(&[&one, &other]), [vec![1.0, 10.0], vec![3.0, 30.0]]);
        assert_eq!(blocks(&[&one, &[]]), Vec::<Vec<f64>>::new());
    }
}

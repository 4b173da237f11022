//! What is told of variants that were sampled in turns, and of a system that was held against itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Direction, Unit};
use wb_stats::Samples;

use crate::ab::{Ab, BadBlock, Standing, State};
use crate::calibrate::Calibration;

/// The figure that decides, and what was asked of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
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
pub struct Variants {
    /// What was asked.
    pub question: Question,
    /// The most blocks for each case.
    pub max_blocks: usize,
    /// Each case of the test.
    pub cases: Vec<VariantsOfCase>,
}

/// How the variants of one case stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantsOfCase {
    /// The case, without what the variants change.
    pub case: String,
    /// Blocks with a sample of every variant.
    pub blocks: usize,
    /// Whether another block is needed.
    pub state: State,
    /// The variants, in the order they were given.
    pub variants: Vec<VariantTold>,
}

/// A variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantTold {
    /// Its name: the serial of its cells.
    pub name: String,
    /// As it was typed.
    pub variant: String,
    /// How many samples it has.
    pub samples: usize,
    /// How many of them something outside the workload disturbed; none in records that do not have it.
    #[serde(default)]
    pub disturbed: Option<usize>,
    /// Their median; none without any.
    pub median: Option<f64>,
    /// How it stands to the first; none for the first itself.
    pub standing: Option<Standing>,
    /// Why it has fewer samples than were wanted, if so.
    pub shortfall: Option<String>,
}

/// A variant's samples of one case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantSamples {
    /// Its name.
    pub name: String,
    /// As it was typed.
    pub variant: String,
    /// By the sample's number, which is its block's.
    pub values: Vec<(u32, f64)>,
    /// How many of them something outside the workload disturbed.
    pub disturbed: usize,
    /// Why there are fewer than were wanted, if so.
    pub shortfall: Option<String>,
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

impl VariantsOfCase {
    /// Judges the variants of a case.
    ///
    /// # Errors
    /// When a sample is not above zero.
    pub fn of(case: String, variants: Vec<VariantSamples>, rule: &Ab) -> Result<Self, BadBlock> {
        let values: Vec<&[(u32, f64)]> = variants.iter().map(|variant| variant.values.as_slice()).collect();
        let standings = rule.standings(&blocks(&values))?;
        let others = standings.variants.into_iter().map(Some);
        let told = variants.into_iter().zip(std::iter::once(None).chain(others)).map(|(variant, standing)| {
            let values: Vec<f64> = variant.values.iter().map(|(_, value)| *value).collect();
            VariantTold {
                name: variant.name,
                variant: variant.variant,
                samples: values.len(),
                disturbed: Some(variant.disturbed),
                median: Samples::new(&values).ok().map(|samples| samples.median()),
                standing,
                shortfall: variant.shortfall,
            }
        });
        Ok(Self { case, blocks: standings.blocks, state: standings.state, variants: told.collect() })
    }
}

/// A system held against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// What was asked.
    pub question: Question,
    /// So many samples on each side of a comparison.
    pub samples_each: usize,
    /// Each case of the test.
    pub cases: Vec<CalibratedCase>,
}

/// One case of a system held against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedCase {
    /// The case.
    pub case: String,
    /// So many runs.
    pub runs: usize,
    /// Of so many boots.
    pub boots: usize,
    /// What came of it.
    pub calibration: Calibration,
}

/// What was held against what in a run, kept in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// Variants of a test against the first of them.
    Variants(Variants),
    /// A system against itself.
    Calibrated(Calibrated),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_a_sample_of_every_variant() {
        let (one, other) = ([(0, 1.0), (2, 3.0), (1, 2.0)], [(0, 10.0), (2, 30.0), (3, 40.0)]);
        assert_eq!(blocks(&[&one, &other]), [vec![1.0, 10.0], vec![3.0, 30.0]]);
        assert_eq!(blocks(&[&one, &[]]), Vec::<Vec<f64>>::new());
    }
}

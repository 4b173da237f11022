//! The samples of variants, and the blocks that they form.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::MetricKey;

use super::{ComparedMetric, VariantInputs};
use crate::build::AttemptCounts;
use crate::failure_test::FailureTest;
use crate::sequential_test::{CaseBlocks, InvalidBlock, MetricBlocks, SequentialTest};

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
    pub(super) fn failure_tests(&self) -> Vec<Option<FailureTest>> {
        let Some((first, others)) = self.variants.split_first() else { return Vec::new() };
        others.iter().map(|variant| FailureTest::of([first.failures, variant.failures])).collect()
    }

    pub(super) fn blocks(&self, sequential_test: &SequentialTest) -> Result<CaseBlocks, InvalidMetric> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_blocks_have_a_sample_of_every_variant() {
        let (one, other) = ([(0, 1.0), (2, 3.0), (1, 2.0)], [(0, 10.0), (2, 30.0), (3, 40.0)]);
        assert_eq!(complete_blocks(&[&one, &other]), BTreeMap::from([(0, vec![1.0, 10.0]), (2, vec![3.0, 30.0])]));
        assert_eq!(complete_blocks(&[&one, &[]]), BTreeMap::new());
    }
}

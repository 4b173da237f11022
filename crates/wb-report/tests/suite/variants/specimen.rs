//! An example run of `ab`: three variants of himeno, sampled block by block.

use wb_compare::experiment::{CaseSamples, VariantInputs, VariantSamples, compare_variants};
use wb_compare::sequential_test::{Options, SequentialTest, VariantAttempts};
use wb_model::{Class, Direction, Metric, MetricKey, Serial, TestName, Unit};
use wb_results::Study;
use wb_results::comparison::{AttemptCounts, NegligibleRatios};
use wb_results::experiment::{Criterion, Experiment, VariantExperiment};
use wb_stats::SamplingRule;

use crate::specimen::cell::CellBuilder;

/// Name, specification, and throughput in mflops.
const VARIANTS: [(&str, &str, f64); 3] = [
    ("base", "base", 4210.0),
    ("huge", "huge:param:huge-pages=always", 4660.0),
    ("quiet", "quiet:knob:scaling-governor=performance", 4180.0),
];

/// After which every variant has a verdict.
const BLOCKS: u32 = 9;

const RULE: SamplingRule = SamplingRule::Compared { min_samples: 6, max_samples: 30 };

/// Deterministic noise up to 2 %.
fn noise(seed: u32) -> f64 {
    f64::from(seed * seed * 7 % 11) / 500.0
}

/// The result of the run.
pub(crate) fn experiment() -> Experiment {
    let sequential_test = SequentialTest::new(1, VARIANTS.len(), Options::default()).unwrap();
    let samples = |(name, variant, level): (&str, &str, f64)| VariantSamples {
        name: name.to_owned(),
        spec: variant.to_owned(),
        values: vec![
            (0..BLOCKS).map(|block| (block, level * (1.0 + noise(block * 3 + variant.len() as u32)))).collect(),
        ],
        measured_rounds: (0..BLOCKS).collect(),
        attempts: VariantAttempts { rounds: BLOCKS, ..VariantAttempts::default() },
        disturbed: 0,
        failures: AttemptCounts::default(),
        makes_no_more: false,
        shortfall_reason: None,
        is_given_up: false,
        inputs: VariantInputs::default(),
    };
    let criterion = Criterion {
        test: "himeno:grid=M".to_owned(),
        metric: MetricKey::new(Class::Throughput, "mflops"),
        other_metrics: Vec::new(),
        unit: Unit::new("mflops"),
        direction: Direction::Higher,
        threshold: 5.0,
        negligible: Some(NegligibleRatios::new(5.0)),
        error_rate: 5.0,
    };
    let case = CaseSamples {
        case: "file=%2Fdev%2Fsda,grid=M".to_owned(),
        metrics: vec![criterion.compared_metric()],
        variants: VARIANTS.map(samples).to_vec(),
    };
    let cases = compare_variants(vec![case], &sequential_test).unwrap();
    Experiment::Variants(VariantExperiment { criterion, max_blocks: 30, family: Some(sequential_test.family()), cases })
}

/// The study of the run, with a serial for each variant.
pub(crate) fn study() -> Study {
    let cell = |(name, _, level): (&str, &str, f64)| {
        let metric = Metric::throughput("mflops", "mflops").primary();
        let mut cell = CellBuilder::new("himeno", "grid=M", metric).samples(level, 0.4, BLOCKS).build();
        cell.id.serial = Serial::Id(TestName::new(name).unwrap());
        cell.rule = RULE;
        cell
    };
    Study {
        cells: VARIANTS.map(cell).to_vec(),
        conclusions: vec![],
        environment_changes: vec![],
        ..crate::specimen::study()
    }
}

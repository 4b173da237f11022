//! Collects and summarises the samples of boxes.

use wb_compare::{Build, MetricIndex};
use wb_model::Unit;
use wb_stats::{Samples, Summary};

use crate::chart::{SampleDot, SampleMark};

/// Number of samples from which they are not drawn individually.
const MAX_DOTS: usize = 60;

/// The finite samples of all runs of a build; a run without samples contributes its mean. `None` if there are none.
pub(super) fn samples(build: &Build, row: MetricIndex) -> Option<Vec<f64>> {
    let values = build.runs.iter().flat_map(|run| match run.samples(row) {
        [] => run.reading(row).and_then(|reading| reading.mean.number()).into_iter().collect(),
        samples => samples.to_vec(),
    });
    let samples: Vec<f64> = values.filter(|sample| sample.is_finite()).collect();
    (!samples.is_empty()).then_some(samples)
}

pub(super) fn summary(build: &Build, row: MetricIndex) -> Option<Summary> {
    Some(Summary::new(&Samples::new(&samples(build, row)?).ok()?))
}

pub(super) fn dots(samples: &[f64], unit: &Unit) -> Vec<SampleDot> {
    if samples.len() >= MAX_DOTS {
        return Vec::new();
    }
    let dot = |value: &f64| {
        let remark = unit.quantity(*value).to_string();
        SampleDot { at: 0.0, value: Some(*value), mark: SampleMark::Counted, tooltip: remark }
    };
    samples.iter().map(dot).collect()
}

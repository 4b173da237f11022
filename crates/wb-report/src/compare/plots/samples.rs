//! What the boxes are made of.

use wb_compare::{Build, MetricIndex};
use wb_model::Unit;
use wb_stats::{Samples, Summary};

use crate::chart::{SampleDot, SampleMark};

/// From so many on samples are not drawn one by one.
const MAX_DOTS: usize = 60;

/// The finite samples of a build, over all of its runs; of a run that kept none its mean. None without any.
pub(super) fn samples(build: &Build, row: MetricIndex) -> Option<Vec<f64>> {
    let of = build.runs.iter().flat_map(|run| match run.samples(row) {
        [] => run.reading(row).and_then(|reading| reading.mean.known()).into_iter().collect(),
        samples => samples.to_vec(),
    });
    let samples: Vec<f64> = of.filter(|sample| sample.is_finite()).collect();
    (!samples.is_empty()).then_some(samples)
}

/// What a build's samples come to.
pub(super) fn summary(build: &Build, row: MetricIndex) -> Option<Summary> {
    Some(Summary::of(&Samples::new(&samples(build, row)?).ok()?))
}

/// The samples one by one, where there are not too many.
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

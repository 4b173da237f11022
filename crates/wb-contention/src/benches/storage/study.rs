//! `storage`: the memory offloading factor.

use wb_model::Bytes;
use wb_results::contention::StorageAnswer;
use wb_stats::Samples;

use crate::measurement::StorageMeasurement;
use crate::stage::StageKey;
use crate::study::{StudyError, StudySource, figures};

pub(crate) fn study(
    source: &StudySource<'_>,
    stage: &StageKey,
    measurement: &StorageMeasurement,
) -> Result<StorageAnswer, StudyError> {
    let incomplete = || StudyError::NoReports { stage: stage.clone(), what: "storage" };
    let reports = source.read(stage, measurement.period)?;
    if reports.seconds.is_empty() {
        return Err(incomplete());
    }
    let final_parts: Result<Vec<_>, _> =
        measurement.final_periods.iter().map(|period| source.read(stage, *period)).collect();
    let (usage, usage_stdev) = mean_stdev(&measurement.usages).ok_or_else(incomplete)?;
    let (size, size_stdev) = mean_stdev(&measurement.sizes).ok_or_else(incomplete)?;
    let final_reports = figures::joined(final_parts?);
    Ok(StorageAnswer {
        mof: size / usage,
        memory: measurement.memory,
        hashd: measurement.hashd,
        usage,
        usage_stdev,
        size,
        size_stdev,
        loops: measurement.sizes.len() as u64,
        is_lower_bound: measurement
            .largest
            .is_some_and(|largest| measurement.sizes.iter().any(|size| *size >= largest)),
        final_io: figures::io_rates(&final_reports),
        all_io: figures::io_rates(&reports),
        latency: figures::latencies(&reports),
        missing: figures::missing(&reports),
        resources: figures::resources(&reports, &final_reports),
    })
}

/// Mean and standard deviation, in bytes; `None` without values, or if hashd used no memory.
fn mean_stdev(sizes: &[Bytes]) -> Option<(f64, f64)> {
    let values: Vec<f64> = sizes.iter().map(|size| size.0 as f64).collect();
    let samples = Samples::new(&values).ok()?;
    (samples.mean() > 0.0).then(|| (samples.mean(), samples.stddev().unwrap_or_default()))
}

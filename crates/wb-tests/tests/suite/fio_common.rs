//! Helpers that take short samples of the tests that run fio.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wb_agent::Worker;
use wb_model::{AttemptPurpose, Nanos, Params, Placement};
use wb_test::{Attempt, Failure, Test, TestCell};

use crate::common::{Sample, with_worker, worker_context};

/// Parameters for half a second on a small file.
pub(crate) fn short_params() -> Json {
    json!({
        "block-sizes": "4k", "file-size": "8m", "runtime": "500ms", "ramptime": 0, "iodepth": 4, "sysinfo": ["none"],
    })
}

/// Adds parameters to others, or replaces them.
pub(crate) fn extended(mut params: Json, extra: Json) -> Json {
    params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    params
}

/// Takes one sample.
pub(crate) fn take_sample(test: impl Test + 'static, params: Json) -> Result<Sample, Failure> {
    take_samples(test, params).map(|[sample]: [Sample; 1]| sample)
}

/// Takes samples of one cell, prepared once, and cleans up after them.
pub(crate) fn take_samples<const N: usize>(test: impl Test + 'static, params: Json) -> Result<[Sample; N], Failure> {
    let params: Params = serde_json::from_value(params).unwrap();
    let cell = Arc::new(test).cell(&params).unwrap();
    let samples = with_worker(async |worker| samples(cell.as_ref(), worker, N).await)?;
    Ok(samples.try_into().unwrap())
}

async fn samples(cell: &dyn TestCell, worker: &Worker, count: usize) -> Result<Vec<Sample>, Failure> {
    let facts = Arc::new(worker.facts().await?);
    let new_context = || worker_context(worker, facts.clone(), Placement::default());
    let context = new_context().await?;
    let mut prepared = cell.prepare(&context).await?;
    let mut all = Vec::new();
    for sample in 0..count {
        let min_time = Nanos(500_000_000);
        let mut attempt = Attempt::new(new_context().await?, AttemptPurpose::Sample, sample as u32, min_time, None);
        cell.sample(&mut prepared, &mut attempt).await?;
        let (_, record) = attempt.into_parts();
        all.push(Sample::evaluate(cell, &record));
    }
    cell.cleanup(prepared, &context).await?;
    Ok(all)
}

//! Helpers that take real samples of fio tests and evaluate their artefacts.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use tempfile::TempDir;
use wb_agent::Worker;
use wb_model::{Class, MetricKey, Nanos, Params, Placement, Purpose};
use wb_tests::{Artefacts, Attempt, Failure, Measurement, Test, TestCell, WorkerContext, evaluate};

const SECOND: u64 = 1_000_000_000;

/// An evaluated sample.
#[derive(Debug)]
pub(crate) struct TakenSample {
    pub(crate) measurement: Measurement,
    /// Findings of the attempt.
    pub(crate) findings: Vec<String>,
    folder: TempDir,
}

impl TakenSample {
    pub(crate) fn iops(&self) -> f64 {
        self.measurement.values[&MetricKey::new(Class::Throughput, "iops")]
    }

    pub(crate) fn text(&self, artefact: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(artefact)).unwrap()
    }

    pub(crate) fn has(&self, artefact: &str) -> bool {
        self.folder.path().join(artefact).exists()
    }
}

/// Whether a program exists; prints that a test is skipped otherwise.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let exists = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !exists {
        eprintln!("SKIPPED: no such program: `{program}`");
    }
    exists
}

/// Takes one sample.
pub(crate) fn take_sample(test: impl Test + 'static, params: &Json) -> Result<TakenSample, Failure> {
    take_samples(test, params).map(|[sample]: [TakenSample; 1]| sample)
}

/// Takes samples of one cell, prepared once, and cleans up after them.
pub(crate) fn take_samples<const N: usize>(
    test: impl Test + 'static,
    params: &Json,
) -> Result<[TakenSample; N], Failure> {
    let params: Params = serde_json::from_value(params.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let worker = Worker::local(Path::new(env!("CARGO_BIN_EXE_wb-tests-agent"))).await.unwrap();
        let cell = Arc::new(test).cell(&params).unwrap();
        let samples = samples(cell.as_ref(), &worker, N).await;
        worker.close().await.unwrap();
        Ok(samples?.try_into().unwrap())
    })
}

async fn samples(cell: &dyn TestCell, worker: &Worker, count: usize) -> Result<Vec<TakenSample>, Failure> {
    let context = worker_context(worker).await?;
    let mut prepared = cell.prepare(&context).await?;
    let mut all = Vec::new();
    for sample in 0..count {
        let mut attempt =
            Attempt::new(worker_context(worker).await?, Purpose::Sample, sample as u32, Nanos(SECOND / 2), None);
        cell.sample(&mut prepared, &mut attempt).await?;
        let (_, record) = attempt.into_parts();
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in &record.artefacts {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let measurement = evaluate::evaluate(cell, &Artefacts::new(folder.path()));
        all.push(TakenSample { measurement, findings: record.findings, folder });
    }
    cell.cleanup(prepared, &context).await?;
    Ok(all)
}

async fn worker_context(worker: &Worker) -> Result<WorkerContext, Failure> {
    let (_, cancel) = tokio::sync::watch::channel(false);
    let facts = Arc::new(worker.facts().await?);
    let group = worker.new_group().await?;
    Ok(WorkerContext::new(group, facts, Placement::default(), Nanos(120 * SECOND), cancel))
}

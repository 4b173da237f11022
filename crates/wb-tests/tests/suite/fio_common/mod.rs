//! Taking real samples: a worker, an attempt, and its artefacts in a folder to be studied.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use tempfile::TempDir;
use wb_agent::Worker;
use wb_model::{Nanos, Params, Placement, Purpose};
use wb_tests::attempt::worker_failure;
use wb_tests::{Artefacts, Attempt, Failure, Measurement, Test, WorkerContext, evaluate};

const SECOND: u64 = 1_000_000_000;

/// A sample that was taken and studied.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) measured: Measurement,
    /// What was noticed while it was taken.
    pub(crate) findings: Vec<String>,
    folder: TempDir,
}

impl Taken {
    pub(crate) fn text(&self, artefact: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(artefact)).unwrap()
    }

    pub(crate) fn has(&self, artefact: &str) -> bool {
        self.folder.path().join(artefact).exists()
    }
}

/// Whether a program is there; says loudly where it is not.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        eprintln!("SKIPPED: there is no {program} here");
    }
    found
}

/// Takes one sample.
pub(crate) fn take(test: impl Test, params: &Json) -> Result<Taken, Failure> {
    take_samples(test, params).map(|[taken]: [Taken; 1]| taken)
}

/// Takes samples of one cell, prepared once, and cleans up after them.
pub(crate) fn take_samples<const N: usize>(test: impl Test, params: &Json) -> Result<[Taken; N], Failure> {
    let params: Params = serde_json::from_value(params.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let worker = Worker::local(Path::new(env!("CARGO_BIN_EXE_wb-tests-agent"))).await.unwrap();
        let taken = samples(&test, &params, &worker, N).await;
        worker.close().await.unwrap();
        Ok(taken?.try_into().unwrap())
    })
}

async fn samples(test: &impl Test, params: &Params, worker: &Worker, count: usize) -> Result<Vec<Taken>, Failure> {
    let cell = site(worker).await?;
    let mut prepared = test.prepare(params, &cell).await?;
    let mut all = Vec::new();
    for sample in 0..count {
        let mut attempt = Attempt::new(site(worker).await?, Purpose::Sample, sample as u32, Nanos(SECOND / 2), None);
        test.sample(params, &mut prepared, &mut attempt).await?;
        let (_, record) = attempt.into_parts();
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in &record.artefacts {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let measured = evaluate::evaluate(test, params, &Artefacts::new(folder.path()));
        all.push(Taken { measured, findings: record.findings, folder });
    }
    test.cleanup(params, prepared, &cell).await?;
    Ok(all)
}

async fn site(worker: &Worker) -> Result<WorkerContext, Failure> {
    let (_, cancel) = tokio::sync::watch::channel(false);
    let facts = Arc::new(worker.facts().await.map_err(worker_failure)?);
    let group = worker.new_group().await.map_err(worker_failure)?;
    Ok(WorkerContext::new(group, facts, Placement::default(), Nanos(120 * SECOND), cancel))
}

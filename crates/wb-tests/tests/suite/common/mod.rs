//! Helpers of the integration tests: a cell of a test on a worker of this machine, whose samples are taken and
//! evaluated from their artefacts.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;
use tokio::sync::Semaphore;
use wb_agent::Worker;
use wb_declarative::DeclarativeTest;
use wb_model::{AttemptPurpose, Bytes, Facts, MetricKey, Nanos, ParamValue, Params, Placement, Validity};
use wb_test::attempt::AttemptRecord;
use wb_test::{Artefacts, Attempt, Failure, Measurement, Test, TestCell, WorkerContext, evaluate};

/// Minimum duration of the measured part of a sample.
const MIN_TIME: Nanos = Nanos(100_000_000);
/// Time limit of processes and waits, with a margin for a busy machine.
const LIMIT: Nanos = Nanos(300_000_000_000);

/// One cell: a test with its effective parameters.
pub(crate) struct Cell {
    test: Arc<dyn Test>,
    params: Params,
    worker: Worker,
    facts: Arc<Facts>,
    /// Minimum duration of the measured part of a sample.
    pub(crate) min_time: Nanos,
    /// Bytes of standard output that may be recorded.
    pub(crate) stdout_limit: Bytes,
}

/// An evaluated sample.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) measurement: Measurement,
    pub(crate) work: Option<u64>,
    /// Findings of the attempt and of the evaluation.
    pub(crate) findings: Vec<String>,
    folder: TempDir,
}

/// Whether a program exists; prints that a test is skipped otherwise.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let exists = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !exists {
        wb_test_skip::skip!("no such program: `{program}`");
    }
    exists
}

pub(crate) fn text(value: &str) -> ParamValue {
    ParamValue::Text(value.to_owned())
}

/// Parses the definition of a declarative test.
pub(crate) fn parse_test(definition: &str) -> Arc<DeclarativeTest> {
    Arc::new(DeclarativeTest::parse("small.toml", definition, None).unwrap_or_else(|error| panic!("{error}")))
}

/// Calls `body` with a worker of this machine.
pub(crate) fn with_worker<T>(body: impl AsyncFnOnce(&Worker) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let worker = Worker::local(Path::new(env!("CARGO_BIN_EXE_wb-tests-agent"))).await.unwrap();
        let result = body(&worker).await;
        worker.close().await.unwrap();
        result
    })
}

/// Calls `body` with a cell of a built-in test.
pub(crate) fn with_cell(test: &str, given: &[(&str, ParamValue)], body: impl AsyncFnOnce(Cell)) {
    let registry = wb_tests::built_in();
    with_cell_of(registry.test(test).unwrap().clone(), given, body);
}

/// Calls `body` with a cell of a test.
pub(crate) fn with_cell_of(test: Arc<dyn Test>, given: &[(&str, ParamValue)], body: impl AsyncFnOnce(Cell)) {
    with_worker(async |worker| {
        let facts = Arc::new(worker.facts().await.unwrap());
        let (min_time, stdout_room) = (MIN_TIME, Bytes(u64::MAX));
        let mut cell =
            Cell { test, params: Params::new(), worker: worker.clone(), facts, min_time, stdout_limit: stdout_room };
        for param in cell.test.declaration().params {
            cell.params.extend(param.default.map(|default| (param.name, default)));
        }
        for (name, value) in given {
            cell.set(name, value.clone());
        }
        let resolved = cell.test.resolve(&cell.params, &cell.facts);
        for (name, values) in resolved {
            if !given.iter().any(|(given, _)| *given == name) {
                cell.params.extend(values.into_iter().next().map(|value| (name, value)));
            }
        }
        body(cell).await;
    });
}

impl Cell {
    /// Sets a parameter, in canonical form as a plan would.
    pub(crate) fn set(&mut self, name: &str, value: ParamValue) {
        let declaration = self.test.declaration();
        let param = declaration.param(name).unwrap_or_else(|| panic!("unknown parameter {name}"));
        self.params.insert(param.name.clone(), param.kind.normalise(&value).unwrap());
    }

    pub(crate) fn why_unsupported(&self) -> Option<String> {
        self.test_cell().unsupported(&self.facts)
    }

    fn test_cell(&self) -> Box<dyn TestCell> {
        self.test.clone().cell(&self.params).unwrap()
    }

    /// Takes the first sample, which calibrates its work.
    pub(crate) async fn sample(&self) -> Result<Sample, Failure> {
        self.sample_with_work(None).await
    }

    /// Takes a sample with an amount of work.
    pub(crate) async fn sample_with_work(&self, work: Option<u64>) -> Result<Sample, Failure> {
        // More tests run at the same time than there are CPUs, and gates judge how long samples take.
        static TURNS: OnceLock<Semaphore> = OnceLock::new();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let _turn = TURNS.get_or_init(|| Semaphore::new(cpus)).acquire().await.unwrap();
        let cell = self.test_cell();
        let placement = cell.shared_params().placement.clone();
        let context = worker_context(&self.worker, self.facts.clone(), placement).await?;
        let mut attempt = Attempt::new(context, AttemptPurpose::Sample, 0, self.min_time, work);
        attempt.stdout_limit = self.stdout_limit;
        let mut prepared = cell.prepare(&attempt.context).await?;
        let sample_result = cell.sample(&mut prepared, &mut attempt).await;
        let cleanup_result = cell.cleanup(prepared, &attempt.context).await;
        let (context, record) = attempt.into_parts();
        context.group.close().await?;
        sample_result?;
        cleanup_result?;
        Ok(Sample::evaluate(cell.as_ref(), &record))
    }
}

/// Creates the context of a test that needs no other workers.
pub(crate) async fn worker_context(
    worker: &Worker,
    facts: Arc<Facts>,
    placement: Placement,
) -> Result<WorkerContext, Failure> {
    let (_, cancel) = tokio::sync::watch::channel(false);
    Ok(WorkerContext::new(worker.new_group().await?, facts, placement, LIMIT, cancel))
}

impl Sample {
    /// Evaluates the artefacts of an attempt.
    pub(crate) fn evaluate(cell: &dyn TestCell, record: &AttemptRecord) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in &record.artefacts {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert!(!path.exists(), "duplicate artefact {name}");
            std::fs::write(path, bytes).unwrap();
        }
        let measurement = evaluate::evaluate(cell, &cell.metrics(), &Artefacts::new(folder.path()));
        let findings = record.findings.iter().chain(&measurement.findings).cloned().collect();
        Self { measurement, work: record.work, findings, folder }
    }

    /// Asserts that the sample is valid.
    pub(crate) fn assert_valid(&self) -> &Self {
        assert_eq!(self.measurement.validity, Validity::Valid);
        self
    }

    /// The value of `CLASS/METRIC`.
    pub(crate) fn value(&self, metric: &str) -> f64 {
        *self
            .measurement
            .values
            .get(&metric.parse::<MetricKey>().unwrap())
            .unwrap_or_else(|| panic!("no {metric} in {:?}", self.measurement))
    }

    pub(crate) fn text(&self, artefact: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(artefact)).unwrap_or_else(|e| panic!("{artefact}: {e}"))
    }

    pub(crate) fn json(&self, artefact: &str) -> serde_json::Value {
        serde_json::from_str(&self.text(artefact)).unwrap()
    }

    pub(crate) fn has(&self, artefact: &str) -> bool {
        self.folder.path().join(artefact).exists()
    }
}

//! A run folder, a test `figure` whose command prints what a function says, and simulated workers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;
use tokio::sync::watch;
use wb_agent::Command;
use wb_model::{Nanos, ProfileName, Purpose, WorkerName};
use wb_plan::{Plan, Sampling, Selection, expand, spec};
use wb_record::{JournalEvent, RunFolder};
use wb_run::{PooledWorker, Progress, RunEnd, RunError, RunSpec, WorkerPool, run};
use wb_study::result::CellResult;
use wb_study::{Study, StudyError};
use wb_test_worker::{FakeAgent, FakeProcess};
use wb_tests::{DeclarativeTest, Registry};

/// Prints a figure. `n` is an axis.
pub(crate) const FIGURE: &str = r#"
name = "figure"
summary = "a figure"
version = 1
command = ["figure", "{n}"]
requires = [{ program = "figure", package = "" }]

[[param]]
name = "n"
help = "a number"
kind = "integer"
default = 1
axis = true

[[metric]]
name = "figure"
class = "throughput"
unit = "1/s"
primary = true
regex = 'figure: (\S+)'
"#;

/// One world of a test.
pub(crate) struct TestBed {
    folder: TempDir,
    registry: Registry,
    pub(crate) agents: Vec<FakeAgent>,
    pub(crate) sampling: Sampling,
    cancel: watch::Sender<bool>,
}

/// The figures of a test: called with the number of the process, from 0.
pub(crate) fn figures(of: impl Fn(u32) -> f64 + Send + Sync + 'static) -> impl Fn(&Command) -> FakeProcess {
    let count = AtomicU32::new(0);
    move |_| FakeProcess::printing(format!("figure: {}\n", of(count.fetch_add(1, Ordering::Relaxed))))
}

/// Ten, give or take a tenth of a percent.
pub(crate) fn steady(number: u32) -> f64 {
    10.0 + f64::from(number % 3) * 0.01
}

/// Runs a test in a runtime whose time passes only while everything waits.
pub(crate) fn paused<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(test)
}

impl TestBed {
    /// One worker, `local`. Within [`paused`].
    pub(crate) fn new(program: impl Fn(&Command) -> FakeProcess + Send + Sync + 'static) -> Self {
        Self::with_workers(&["local"], program)
    }

    /// Several workers, which run the same programs.
    pub(crate) fn with_workers(
        names: &[&str],
        program: impl Fn(&Command) -> FakeProcess + Send + Sync + 'static,
    ) -> Self {
        let program = Arc::new(program);
        let agent = |name: &&str| {
            let program = program.clone();
            FakeAgent::new(WorkerName::new(*name).unwrap(), move |command| program(command))
        };
        let mut registry = Registry::default();
        registry.add(DeclarativeTest::parse("figure.toml", FIGURE, None).unwrap());
        let sampling = Sampling { seed: Some(7), ..Sampling::default() };
        let folder = tempfile::tempdir().unwrap();
        Self { folder, registry, agents: names.iter().map(agent).collect(), sampling, cancel: watch::channel(false).0 }
    }

    /// Adds a test.
    pub(crate) fn define(&mut self, toml: &str) {
        self.registry.add(DeclarativeTest::parse("test.toml", toml, None).unwrap());
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("RUN")
    }

    /// What ends the run as a user's Ctrl-C does.
    pub(crate) fn cancel(&self) -> watch::Sender<bool> {
        self.cancel.clone()
    }

    async fn crew(&self) -> WorkerPool {
        let mut crew = WorkerPool::default();
        for agent in &self.agents {
            crew.workers.push(PooledWorker::with_facts(agent.worker()).await.unwrap());
        }
        crew
    }

    /// The plan of tests, as typed.
    pub(crate) async fn plan(&self, tests: &[&str]) -> Plan {
        let requests: Vec<_> = tests.iter().map(|test| spec::parse(test).unwrap()).collect();
        let profile = ProfileName::new("Localhost").unwrap();
        let workers = self.crew().await.plan_workers();
        let selection = Selection::default();
        expand(&requests, &self.sampling, &self.registry, Some(&workers), &profile, &selection).unwrap()
    }

    /// Measures tests, as typed, into the folder; how it ended and what was reported.
    pub(crate) async fn run(&self, tests: &[&str]) -> (Result<RunEnd, RunError>, Vec<Progress>) {
        let (crew, plan) = (self.crew().await, self.plan(tests).await);
        let mut reported = Vec::new();
        let job = RunSpec {
            folder: &self.path(),
            plan,
            plan_name: tests.join(" "),
            plan_text: None,
            command: Vec::new(),
            seed: self.sampling.seed.unwrap_or_default(),
            hosts: Default::default(),
            metadata: Default::default(),
            version: "0.0.0",
            program_sha256: String::new(),
            registry: &self.registry,
            pool: crew,
            host_states: Vec::new(),
            cancel: self.cancel.subscribe(),
            stopping_rule: None,
            publisher: None,
        };
        let end = run(job, |progress| reported.push(progress)).await;
        (end, reported)
    }

    /// The same, where nothing goes wrong.
    pub(crate) async fn measure(&self, tests: &[&str]) -> Vec<Progress> {
        let (end, reported) = self.run(tests).await;
        end.unwrap();
        assert!(self.agents.iter().all(|agent| agent.open_groups() == 0), "a group was left");
        reported
    }

    pub(crate) fn study(&self) -> Study {
        self.try_study().unwrap()
    }

    pub(crate) fn try_study(&self) -> Result<Study, StudyError> {
        wb_study::study(&RunFolder::open(&self.path()).unwrap(), &self.registry)
    }

    /// The only cell.
    pub(crate) fn cell(&self) -> CellResult {
        let [cell] = &self.study().cells[..] else { panic!("one cell") };
        cell.clone()
    }

    /// The attempts in the order in which they were made: case, purpose, sample.
    pub(crate) fn attempts(&self) -> Vec<(String, Purpose, u32)> {
        let lines = RunFolder::open(&self.path()).unwrap().journal_lines().unwrap();
        let attempts = lines.into_iter().filter_map(|line| match line.event {
            JournalEvent::AttemptEnded(ended) => Some((ended.cell.case.to_string(), ended.purpose, ended.sample)),
            _ => None,
        });
        attempts.collect()
    }
}

impl TestBed {
    /// How long all attempts took together, in seconds.
    pub(crate) fn measured_seconds(&self) -> f64 {
        let lines = RunFolder::open(&self.path()).unwrap().journal_lines().unwrap();
        let seconds = lines.into_iter().filter_map(|line| match line.event {
            JournalEvent::AttemptEnded(ended) => Some(ended.seconds),
            _ => None,
        });
        seconds.sum()
    }
}

pub(crate) fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

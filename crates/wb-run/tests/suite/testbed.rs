//! Test environment: a run folder, a test `figure` whose command prints the values of a function, and simulated
//! workers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;
use tokio::sync::watch;
use wb_agent::Command;
use wb_declarative::DeclarativeTest;
use wb_model::{AttemptPurpose, Nanos, ProfileName, WorkerName};
use wb_plan::{Plan, PlanWorkers, Sampling, Selection, expand, spec};
use wb_record::journal::AttemptEnd;
use wb_record::{JournalEvent, RunFolder};
use wb_results::{CellResult, Study};
use wb_run::resolved_values::keep_resolved_values;
use wb_run::{PooledWorker, Progress, RunEnd, RunError, RunSpec, WorkerPool, run};
use wb_study::StudyError;
use wb_test::Registry;
use wb_test_worker::{FakeAgent, FakeProcess};

/// A test that prints a figure. `n` is an axis.
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

/// The metric of [`TestBed::define_with_files`].
const METRIC: &str = r#"
[[metric]]
name = "figure"
class = "throughput"
unit = "1/s"
primary = true
regex = 'figure: (\S+)'
"#;

/// The environment of a test.
pub(crate) struct TestBed {
    folder: TempDir,
    registry: Registry,
    pub(crate) agents: Vec<FakeAgent>,
    pub(crate) sampling: Sampling,
    /// User tools around the samples of every test.
    pub(crate) tools: Vec<String>,
    cancel: watch::Sender<bool>,
}

/// Makes programs that print figures: the function is called with the number of the process, from 0.
pub(crate) fn figures(value: impl Fn(u32) -> f64 + Send + Sync + 'static) -> impl Fn(&Command) -> FakeProcess {
    let count = AtomicU32::new(0);
    move |_| printing(value(count.fetch_add(1, Ordering::Relaxed)))
}

/// Makes a process that prints this figure.
pub(crate) fn printing(figure: f64) -> FakeProcess {
    FakeProcess::printing(format!("figure: {figure}\n"))
}

/// Returns ten, plus or minus 0.1 %.
pub(crate) fn steady(number: u32) -> f64 {
    10.0 + f64::from(number % 3) * 0.01
}

impl TestBed {
    /// Creates an environment with one worker, `local`. The runtime's time has to be paused: it advances only while all
    /// tasks are idle.
    pub(crate) fn new(program: impl Fn(&Command) -> FakeProcess + Send + Sync + 'static) -> Self {
        Self::with_workers(&["local"], program)
    }

    /// Creates an environment with several workers that run the same programs.
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
        let (agents, cancel) = (names.iter().map(agent).collect(), watch::channel(false).0);
        Self { folder, registry, agents, sampling, tools: Vec::new(), cancel }
    }

    /// Adds a test definition.
    pub(crate) fn define(&mut self, toml: &str) {
        self.registry.add(DeclarativeTest::parse("test.toml", toml, None).unwrap());
    }

    /// Writes a file beside the definitions of [`TestBed::define_with_files`]; returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Adds the definition of a test that prints a figure; it can refer to files beside it.
    pub(crate) fn define_with_files(&mut self, toml: &str) {
        let toml = format!("{toml}{METRIC}");
        self.registry.add(DeclarativeTest::parse("test.toml", &toml, Some(self.folder.path())).unwrap());
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("RUN")
    }

    /// Returns the sender that cancels the run like Ctrl-C.
    pub(crate) fn cancel(&self) -> watch::Sender<bool> {
        self.cancel.clone()
    }

    async fn pool(&self) -> WorkerPool {
        let mut pool = WorkerPool::default();
        for agent in &self.agents {
            pool.workers.push(PooledWorker::with_facts(agent.worker()).await.unwrap());
        }
        pool
    }

    /// Expands tests, as given on the command line, to a plan.
    pub(crate) async fn plan(&self, tests: &[&str]) -> Plan {
        self.try_plan(tests).await.unwrap()
    }

    /// Plans like a session: values that the folder's samples were resolved with are kept.
    async fn try_plan(&self, tests: &[&str]) -> Result<Plan, RunError> {
        let mut requests: Vec<_> = tests.iter().map(|test| spec::parse(test).unwrap()).collect();
        requests.iter_mut().for_each(|request| request.tools = self.tools.clone());
        let profile = ProfileName::new("Localhost").unwrap();
        let workers = self.pool().await.plan_workers();
        let selection = Selection::default();
        let plan = |workers: &PlanWorkers| {
            expand(&requests, &self.sampling, &self.registry, Some(workers), &profile, &selection)
        };
        let workers = keep_resolved_values(&self.path(), &profile, workers, plan)?;
        Ok(plan(&workers).unwrap())
    }

    /// Runs tests, as given on the command line, in the folder; returns the result and the progress events.
    pub(crate) async fn run(&self, tests: &[&str]) -> (Result<RunEnd, RunError>, Vec<Progress>) {
        let mut events = Vec::new();
        let (pool, plan) = match self.try_plan(tests).await {
            Ok(plan) => (self.pool().await, plan),
            Err(error) => return (Err(error), events),
        };
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
            agent_sha256: String::new(),
            registry: &self.registry,
            pool,
            host_states: Vec::new(),
            cancel: self.cancel.subscribe(),
            stopping_rule: None,
            publisher: None,
            input_recorder: None,
        };
        let end = run(job, |progress| events.push(progress)).await;
        (end, events)
    }

    /// Runs tests that must succeed; returns the progress events.
    pub(crate) async fn measure(&self, tests: &[&str]) -> Vec<Progress> {
        let (end, events) = self.run(tests).await;
        end.unwrap();
        assert!(self.agents.iter().all(|agent| agent.open_groups() == 0), "a group was left");
        events
    }

    pub(crate) fn study(&self) -> Study {
        self.try_study().unwrap()
    }

    pub(crate) fn try_study(&self) -> Result<Study, StudyError> {
        wb_study::study(&RunFolder::open(&self.path()).unwrap(), &self.registry)
    }

    pub(crate) fn write_results(&self) -> Study {
        wb_study::write_results(&RunFolder::open(&self.path()).unwrap(), &self.registry).unwrap()
    }

    /// Returns the only cell.
    pub(crate) fn cell(&self) -> CellResult {
        let [cell] = &self.study().cells[..] else { panic!("one cell") };
        cell.clone()
    }

    fn events(&self) -> impl Iterator<Item = JournalEvent> {
        let lines = RunFolder::open(&self.path()).unwrap().journal_lines().unwrap();
        lines.into_iter().map(|line| line.event)
    }

    /// Returns the ends of all attempts, in chronological order.
    pub(crate) fn ended_attempts(&self) -> Vec<AttemptEnd> {
        let ended = |event| match event {
            JournalEvent::AttemptEnded(ended) => Some(ended),
            _ => None,
        };
        self.events().filter_map(ended).collect()
    }

    /// Returns the problems of all cleanups outside of attempts.
    pub(crate) fn cleanup_problems(&self) -> Vec<String> {
        let problems = |event| match event {
            JournalEvent::CleanupFailed { problems, .. } => problems,
            _ => Vec::new(),
        };
        self.events().flat_map(problems).collect()
    }

    /// Lists the attempts in chronological order: case, purpose, sample.
    pub(crate) fn attempts(&self) -> Vec<(String, AttemptPurpose, u32)> {
        let attempt = |ended: AttemptEnd| (ended.cell.case.to_string(), ended.purpose, ended.sample);
        self.ended_attempts().into_iter().map(attempt).collect()
    }

    /// Returns the total time of all attempts, in seconds.
    pub(crate) fn measured_seconds(&self) -> f64 {
        self.ended_attempts().iter().map(|ended| ended.seconds).sum()
    }
}

pub(crate) fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

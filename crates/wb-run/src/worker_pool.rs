//! The workers of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wb_agent::Worker;
use wb_model::roles::all_workers;
use wb_model::{Facts, WorkerName};
use wb_plan::{Cell, PlanWorkers};

/// A worker that takes part in a run.
#[derive(Debug, Clone)]
pub struct PooledWorker {
    /// The handle on it.
    pub worker: Worker,
    /// What it is.
    pub facts: Arc<Facts>,
    /// The address by which other workers reach it; none where nobody said.
    pub address: Option<String>,
    /// Its console; none of one that is no guest.
    pub console: Option<GuestConsole>,
}

/// The console of a guest: a file of its host.
#[derive(Debug, Clone)]
pub struct GuestConsole {
    /// The host.
    pub host: Worker,
    /// Where on it.
    pub path: String,
}

impl GuestConsole {
    /// Its last lines; nothing where they cannot be read.
    pub(crate) async fn last_lines(&self) -> String {
        let bytes = wb_profile::console(&self.host, &self.path).await;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(CONSOLE_LINES)..].join(" | ")
    }
}

/// How much of a console a reason has, in lines.
const CONSOLE_LINES: usize = 5;

impl PooledWorker {
    /// One that no other has to reach.
    pub async fn with_facts(worker: Worker) -> Result<Self, wb_agent::WorkerError> {
        let facts = Arc::new(worker.facts().await?);
        Ok(Self { worker, facts, address: None, console: None })
    }
}

/// All workers of a run.
#[derive(Debug, Clone, Default)]
pub struct WorkerPool {
    /// In the order they were given.
    pub workers: Vec<PooledWorker>,
    /// Those to which there is no way, and why.
    pub unreachable: BTreeMap<WorkerName, String>,
    /// Machines that others of them run upon, and that measure nothing themselves.
    pub vm_hosts: Vec<PooledWorker>,
    /// Groups of them, by name.
    pub groups: BTreeMap<String, Vec<WorkerName>>,
}

impl WorkerPool {
    /// One worker alone.
    pub fn single(member: PooledWorker) -> Self {
        Self { workers: vec![member], ..Self::default() }
    }

    /// As plans need to know them.
    pub fn plan_workers(&self) -> PlanWorkers {
        let here = self.workers.iter().map(|it| (it.worker.name().clone(), Ok(Facts::clone(&it.facts))));
        let absent = self.unreachable.iter().map(|(name, why)| (name.clone(), Err(why.clone())));
        PlanWorkers { workers: here.chain(absent).collect(), groups: self.groups.clone(), ..PlanWorkers::default() }
    }

    /// Goes on without one of its members, and says why.
    pub fn remove(&mut self, name: &WorkerName, why: String) {
        self.workers.retain(|member| member.worker.name() != name);
        self.unreachable.insert(name.clone(), why);
    }

    /// The one of this name.
    pub fn get(&self, name: &WorkerName) -> Option<&PooledWorker> {
        self.workers.iter().find(|member| member.worker.name() == name)
    }

    /// Those that measure a cell: all that its teams name.
    pub fn of<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a PooledWorker> {
        let names: BTreeSet<&WorkerName> = all_workers(&cell.teams);
        self.workers.iter().filter(move |member| names.contains(member.worker.name()))
    }
}

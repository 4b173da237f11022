//! The workers of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wb_agent::{Worker, WorkerError};
use wb_model::roles::all_workers;
use wb_model::{Facts, WorkerName};
use wb_plan::{Cell, PlanWorkers};

#[derive(Debug, Clone)]
pub struct PooledWorker {
    pub worker: Worker,
    pub facts: Arc<Facts>,
    /// Address for connections from other workers, if configured.
    pub address: Option<String>,
    /// Its console, if it is a guest.
    pub console: Option<GuestConsole>,
}

/// The console of a guest: a file of its host.
#[derive(Debug, Clone)]
pub struct GuestConsole {
    pub host: Worker,
    pub path: String,
}

impl GuestConsole {
    /// Reads its last lines; empty if they cannot be read.
    pub(crate) async fn last_lines(&self) -> String {
        let bytes = wb_profile::console(&self.host, &self.path).await;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(CONSOLE_LINES)..].join(" | ")
    }
}

/// Maximum number of console lines in a failure reason.
const CONSOLE_LINES: usize = 5;

impl PooledWorker {
    /// Creates a member from a worker, without address and console.
    pub async fn with_facts(worker: Worker) -> Result<Self, WorkerError> {
        let facts = Arc::new(worker.facts().await?);
        Ok(Self { worker, facts, address: None, console: None })
    }
}

#[derive(Debug, Clone, Default)]
pub struct WorkerPool {
    /// In the order given.
    pub workers: Vec<PooledWorker>,
    /// Unreachable workers, with the reason.
    pub unreachable: BTreeMap<WorkerName, String>,
    /// Hosts of the guests in the pool; they run no workload themselves.
    pub vm_hosts: Vec<PooledWorker>,
    pub groups: BTreeMap<String, Vec<WorkerName>>,
}

impl WorkerPool {
    pub fn single(member: PooledWorker) -> Self {
        Self { workers: vec![member], ..Self::default() }
    }

    /// Reads the facts of all workers again, since whatever was done to their machines may have changed them: setup
    /// scripts, settings of a profile, kernel parameters, reboots. Lost workers are removed.
    pub async fn read_facts(&mut self) -> Result<(), WorkerError> {
        let mut lost = Vec::new();
        for member in &mut self.workers {
            match member.worker.facts().await {
                Ok(facts) => member.facts = Arc::new(facts),
                Err(WorkerError::Lost { worker, reason }) => lost.push((worker, reason)),
                Err(error) => return Err(error),
            }
        }
        lost.into_iter().for_each(|(worker, reason)| self.remove(&worker, reason));
        Ok(())
    }

    pub fn plan_workers(&self) -> PlanWorkers {
        let available =
            self.workers.iter().map(|member| (member.worker.name().clone(), Ok(Facts::clone(&member.facts))));
        let absent = self.unreachable.iter().map(|(name, reason)| (name.clone(), Err(reason.clone())));
        PlanWorkers {
            workers: available.chain(absent).collect(),
            groups: self.groups.clone(),
            ..PlanWorkers::default()
        }
    }

    pub fn remove(&mut self, name: &WorkerName, reason: String) {
        self.workers.retain(|member| member.worker.name() != name);
        self.unreachable.insert(name.clone(), reason);
    }

    pub fn get(&self, name: &WorkerName) -> Option<&PooledWorker> {
        self.workers.iter().find(|member| member.worker.name() == name)
    }

    /// Returns the workers of a cell: all that its role assignments name.
    pub fn of<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a PooledWorker> {
        let names: BTreeSet<&WorkerName> = all_workers(&cell.roles);
        self.workers.iter().filter(move |member| names.contains(member.worker.name()))
    }
}

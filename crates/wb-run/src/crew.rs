//! The workers of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wb_agent::Worker;
use wb_model::team::members;
use wb_model::{Facts, WorkerName};
use wb_plan::{Cell, Workers};

/// A worker that takes part in a run.
#[derive(Debug, Clone)]
pub struct Member {
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
        lines[lines.len().saturating_sub(SHOWN)..].join(" | ")
    }
}

/// How much of a console a reason has, in lines.
const SHOWN: usize = 5;

impl Member {
    /// One that no other has to reach.
    pub async fn of(worker: Worker) -> Result<Self, wb_agent::WorkerError> {
        let facts = Arc::new(worker.facts().await?);
        Ok(Self { worker, facts, address: None, console: None })
    }
}

/// All workers of a run.
#[derive(Debug, Clone, Default)]
pub struct Crew {
    /// In the order they were given.
    pub members: Vec<Member>,
    /// Those to which there is no way, and why.
    pub absent: BTreeMap<WorkerName, String>,
    /// Machines that others of them run upon, and that measure nothing themselves.
    pub below: Vec<Member>,
    /// Groups of them, by name.
    pub groups: BTreeMap<String, Vec<WorkerName>>,
}

impl Crew {
    /// One worker alone.
    pub fn alone(member: Member) -> Self {
        Self { members: vec![member], ..Self::default() }
    }

    /// As plans need to know them.
    pub fn workers(&self) -> Workers {
        let here = self.members.iter().map(|it| (it.worker.name().clone(), Ok(Facts::clone(&it.facts))));
        let absent = self.absent.iter().map(|(name, why)| (name.clone(), Err(why.clone())));
        Workers { all: here.chain(absent).collect(), groups: self.groups.clone(), ..Workers::default() }
    }

    /// Goes on without one of its members, and says why.
    pub fn leave(&mut self, name: &WorkerName, why: String) {
        self.members.retain(|member| member.worker.name() != name);
        self.absent.insert(name.clone(), why);
    }

    /// The one of this name.
    pub fn get(&self, name: &WorkerName) -> Option<&Member> {
        self.members.iter().find(|member| member.worker.name() == name)
    }

    /// Those that measure a cell: all that its teams name.
    pub fn of<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a Member> {
        let names: BTreeSet<&WorkerName> = members(&cell.teams);
        self.members.iter().filter(move |member| names.contains(member.worker.name()))
    }
}

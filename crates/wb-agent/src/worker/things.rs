//! Groups and private folders on a worker: both are gone when their handles are.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use wb_knobs::tune::Tuned;
use wb_model::Nanos;
use wb_sys::undo::{Step, Undone};

use crate::protocol::{Command, Place, Request, Spawned};

use super::{Process, Recording, Worker, WorkerError};

/// What the end of a group came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Teardown {
    /// The processes that were alive and were killed.
    pub killed: Vec<u32>,
    /// Those that do not end even so: they hang inside the kernel.
    pub left: Vec<u32>,
    /// What was changed for the group, the last first, and what became of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<PutBack>,
}

/// Something that was changed for a group, once that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutBack {
    /// What it is, for people.
    pub what: String,
    /// What became of it.
    #[serde(flatten)]
    pub how: Undone,
}

/// What agents that were killed had changed on a machine, when the next one started there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeftBehind {
    /// What was changed, and what became of it.
    pub put_back: Vec<PutBack>,
    /// Why not all could be put back.
    pub fault: Option<String>,
}

/// What belongs to one attempt. When it is dropped, whatever runs in it is killed, daemons included.
#[derive(Debug)]
pub struct Group {
    worker: Worker,
    place: Place,
    open: bool,
}

impl Group {
    pub(super) fn new(worker: Worker, place: Place) -> Self {
        Self { worker, place, open: true }
    }

    /// The worker that it is on.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Its private folder: where its processes start and have their temporary files. Gone with it.
    pub fn folder(&self) -> &str {
        &self.place.path
    }

    /// Its cgroup, where one could be made; descent holds it together elsewhere.
    pub fn cgroup(&self) -> Option<&str> {
        self.place.cgroup.as_deref()
    }

    /// Starts a process in it.
    pub async fn spawn(&self, command: Command) -> Result<Process, WorkerError> {
        self.start(command, false).await
    }

    /// Makes a process ready, placed as asked, up to becoming its program: [`Process::release`] lets
    /// several start together.
    pub async fn spawn_held(&self, command: Command) -> Result<Process, WorkerError> {
        self.start(command, true).await
    }

    /// Sets knobs, by name or `NAME@TARGET`, until it is torn down.
    ///
    /// # Errors
    /// When one of them cannot be set so, or somebody else is changing the machine.
    pub async fn tune(&self, knobs: BTreeMap<String, String>) -> Result<Vec<Tuned>, WorkerError> {
        self.worker.ask(Request::Tune { group: self.place.id, knobs, strict: true }).await
    }

    /// The same for those that can be set; what hinders another is told with it.
    ///
    /// # Errors
    /// When there is no such knob, or somebody else is changing the machine.
    pub async fn tune_leniently(&self, knobs: BTreeMap<String, String>) -> Result<Vec<Tuned>, WorkerError> {
        self.worker.ask(Request::Tune { group: self.place.id, knobs, strict: false }).await
    }

    /// Makes one thing so until it is torn down; whether anything had to be changed.
    ///
    /// # Errors
    /// When it cannot be made so, or somebody else is changing the machine.
    pub async fn change(&self, step: Step, state: Option<String>) -> Result<bool, WorkerError> {
        self.worker.ask(Request::Change { group: self.place.id, step: Box::new(step), state }).await
    }

    /// Starts to record what the system does, its processes being the workload: now, at every interval
    /// (10 ms or more), and when the recording is finished.
    pub async fn record(&self, interval: Nanos) -> Result<Recording, WorkerError> {
        let id = self.worker.ask(Request::Record { group: self.place.id, interval }).await?;
        Ok(Recording::new(self.worker.clone(), id))
    }

    /// Kills whatever runs in it and removes it.
    pub async fn teardown(mut self) -> Result<Teardown, WorkerError> {
        self.open = false;
        self.worker.ask(Request::Teardown { group: self.place.id }).await
    }

    async fn start(&self, mut command: Command, hold: bool) -> Result<Process, WorkerError> {
        let stdin = std::mem::take(&mut command.stdin);
        let request = Request::Spawn { group: self.place.id, command, hold };
        let (spawned, _): (Spawned, _) = self.worker.ask_with(request, stdin).await?;
        Ok(Process::new(self.worker.clone(), spawned))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.open {
            self.worker.tell(Request::Teardown { group: self.place.id });
        }
    }
}

/// A private folder (0700) on a worker, removed with all in it when it is dropped, and when the agent ends.
#[derive(Debug)]
pub struct Scratch {
    worker: Worker,
    place: Place,
    open: bool,
}

impl Scratch {
    pub(super) fn new(worker: Worker, place: Place) -> Self {
        Self { worker, place, open: true }
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.place.path
    }

    /// The path of something in it.
    pub fn join(&self, name: &str) -> String {
        format!("{}/{name}", self.place.path)
    }

    /// Removes it, and says so when that did not work.
    pub async fn close(mut self) -> Result<(), WorkerError> {
        self.open = false;
        self.worker.ask(Request::DropScratch { id: self.place.id }).await
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.open {
            self.worker.tell(Request::DropScratch { id: self.place.id });
        }
    }
}

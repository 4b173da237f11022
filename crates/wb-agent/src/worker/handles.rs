//! Groups and private folders on a worker: both are gone when their handles are.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use wb_knobs::tune::KnobResult;
use wb_model::Nanos;
use wb_sys::undo::{RevertOutcome, Step};

use crate::protocol::{Command, FolderHandle, ProcessHandle, Request};

use super::{Process, Recording, Worker, WorkerError};

/// What the end of a group came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TeardownReport {
    /// The processes that were alive and were killed.
    pub killed: Vec<u32>,
    /// Those that do not end even so: they hang inside the kernel.
    pub unkillable: Vec<u32>,
    /// What was changed for the group, the last first, and what became of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverted: Vec<RestoredChange>,
    /// Why not all of it could be put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Something that was changed for a group, once that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredChange {
    /// What it is, for people.
    pub what: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: RevertOutcome,
}

/// What agents that were killed had changed on a machine, when the next one started there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// What was changed and is no longer, the last first.
    pub reverted: Vec<RestoredChange>,
    /// What is still changed; none where all is as it was.
    pub unreverted: Option<UnrevertedChanges>,
    /// Why it is not known whether anything is changed: the log is root's, and the agent has a user's rights.
    pub fault: Option<String>,
}

/// Changes of a run that are still in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnrevertedChanges {
    /// What is changed: files, settings, commands by their names; nothing where the log cannot be read.
    pub what: Vec<String>,
    /// Why it was not put back.
    pub why: String,
    /// Whether another run holds it.
    pub is_locked: bool,
}

impl UnrevertedChanges {
    /// The way out.
    pub fn help(&self) -> &'static str {
        if self.is_locked {
            "wait for it or end it; what it has changed is put back at its end"
        } else {
            "`weighbridge profile revert`, as root and with `--hosts` for another machine, tries again to put it back"
        }
    }
}

impl std::fmt::Display for UnrevertedChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, why, is_locked: _ } = self;
        if what.is_empty() { f.write_str(why) } else { write!(f, "{why}; still changed: {}", what.join(", ")) }
    }
}

/// What belongs to one attempt. When it is dropped, whatever runs in it is killed, daemons included.
#[derive(Debug)]
pub struct Group {
    worker: Worker,
    place: FolderHandle,
    open: bool,
}

impl Group {
    pub(super) fn new(worker: Worker, place: FolderHandle) -> Self {
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
    pub async fn tune(&self, knobs: BTreeMap<String, String>) -> Result<Vec<KnobResult>, WorkerError> {
        self.set_knobs(knobs, true).await
    }

    /// The same for those that can be set; what hinders another is told with it.
    ///
    /// # Errors
    /// When there is no such knob, or somebody else is changing the machine.
    pub async fn tune_best_effort(&self, knobs: BTreeMap<String, String>) -> Result<Vec<KnobResult>, WorkerError> {
        self.set_knobs(knobs, false).await
    }

    /// Makes one thing so until it is torn down; whether anything had to be changed.
    ///
    /// # Errors
    /// When it cannot be made so, or somebody else is changing the machine.
    pub async fn apply_step(&self, step: Step, state: Option<String>) -> Result<bool, WorkerError> {
        // Before it is asked for: an agent that ends meanwhile may have begun.
        self.track_changes([step.description()]);
        self.worker.call(Request::ApplyStep { group: self.place.id, step: Box::new(step), state }).await
    }

    async fn set_knobs(&self, knobs: BTreeMap<String, String>, strict: bool) -> Result<Vec<KnobResult>, WorkerError> {
        self.track_changes(knobs.keys().map(|knob| format!("the knob {knob}")));
        self.worker.call(Request::Tune { group: self.place.id, knobs, strict }).await
    }

    fn track_changes(&self, what: impl IntoIterator<Item = String>) {
        self.worker.changes().entry(self.place.id).or_default().extend(what);
    }

    /// Starts to record what the system does, its processes being the workload: now, at every interval
    /// (10 ms or more), and when the recording is finished.
    pub async fn record(&self, interval: Nanos) -> Result<Recording, WorkerError> {
        let id = self.worker.call(Request::StartRecording { group: self.place.id, interval }).await?;
        Ok(Recording::new(self.worker.clone(), id))
    }

    /// Kills whatever runs in it and removes it.
    pub async fn teardown(mut self) -> Result<TeardownReport, WorkerError> {
        self.open = false;
        let ended = self.worker.call(Request::Teardown { group: self.place.id }).await;
        if ended.is_ok() {
            self.worker.changes().remove(&self.place.id);
        }
        ended
    }

    async fn start(&self, mut command: Command, hold: bool) -> Result<Process, WorkerError> {
        let stdin = std::mem::take(&mut command.stdin);
        let request = Request::Spawn { group: self.place.id, command, hold };
        let (spawned, _): (ProcessHandle, _) = self.worker.call_with_payload(request, stdin).await?;
        Ok(Process::new(self.worker.clone(), spawned))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(Request::Teardown { group: self.place.id });
        }
    }
}

/// A private folder (0700) on a worker, removed with all in it when it is dropped, and when the agent ends.
#[derive(Debug)]
pub struct Scratch {
    worker: Worker,
    place: FolderHandle,
    open: bool,
}

impl Scratch {
    pub(super) fn new(worker: Worker, place: FolderHandle) -> Self {
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
        self.worker.call(Request::RemoveScratch { id: self.place.id }).await
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(Request::RemoveScratch { id: self.place.id });
        }
    }
}

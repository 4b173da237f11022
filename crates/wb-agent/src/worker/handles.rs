//! Handles of process groups and private folders on a worker, both removed on drop.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use wb_knobs::tune::KnobResult;
use wb_model::Nanos;
use wb_sys::undo::{RevertOutcome, Step};

use crate::protocol::{Command, FolderHandle, ProcessHandle, Request};

use super::{Process, Recording, Worker, WorkerError};

/// Result of tearing down a group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TeardownReport {
    /// Processes that were alive and were killed.
    pub killed: Vec<u32>,
    /// Processes that survived SIGKILL because they hang inside the kernel.
    pub unkillable: Vec<u32>,
    /// Changes made for the group and the outcome of reverting each, latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverted: Vec<RestoredChange>,
    /// Why some changes could not be reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A change of a group and the outcome of reverting it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredChange {
    /// Description of the changed setting, for people.
    pub description: String,
    /// Outcome of reverting it.
    #[serde(flatten)]
    pub outcome: RevertOutcome,
}

/// What was recovered after agents were killed without reverting their changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// Changes that were reverted, latest first.
    pub reverted: Vec<RestoredChange>,
    /// Changes still in effect; none if everything was reverted.
    pub unreverted: Option<UnrevertedChanges>,
    /// Why it is unknown whether changes remain: the undo log belongs to root, and the agent runs unprivileged.
    pub fault: Option<String>,
}

/// Changes of a run that are still in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnrevertedChanges {
    /// Descriptions of the changes: files, settings, and commands by name; empty if the log cannot be read.
    pub what: Vec<String>,
    /// Why they were not reverted.
    pub reason: String,
    /// Whether another run holds the undo log.
    pub is_locked: bool,
}

impl UnrevertedChanges {
    /// Advice for the user.
    pub fn help(&self) -> &'static str {
        if self.is_locked {
            "wait for it to finish or stop it: its changes are reverted when it ends"
        } else {
            "`weighbridge profile revert`, as root and with `--hosts` for another machine, tries again to revert them"
        }
    }
}

impl std::fmt::Display for UnrevertedChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, reason: why, is_locked: _ } = self;
        if what.is_empty() { f.write_str(why) } else { write!(f, "{why}; still changed: {}", what.join(", ")) }
    }
}

/// Process group of one attempt. Dropping it kills all its processes, daemons included.
#[derive(Debug)]
pub struct Group {
    worker: Worker,
    handle: FolderHandle,
    open: bool,
}

impl Group {
    pub(super) fn new(worker: Worker, handle: FolderHandle) -> Self {
        Self { worker, handle, open: true }
    }

    /// The worker it runs on.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Its private folder: working directory and `TMPDIR` of its processes, removed with the group.
    pub fn folder(&self) -> &str {
        &self.handle.path
    }

    /// Its cgroup; without one, membership is determined by descent.
    pub fn cgroup(&self) -> Option<&str> {
        self.handle.cgroup.as_deref()
    }

    /// Starts a process in the group.
    pub async fn spawn(&self, command: Command) -> Result<Process, WorkerError> {
        self.start(command, false).await
    }

    /// Forks a process, applies its placement and holds it before exec, so that several can start together by
    /// [`Process::release`].
    pub async fn spawn_held(&self, command: Command) -> Result<Process, WorkerError> {
        self.start(command, true).await
    }

    /// Sets knobs (`NAME` or `NAME@TARGET`) until the group is torn down.
    ///
    /// # Errors
    /// If a knob cannot be set to its value, or another process is changing the machine.
    pub async fn tune(&self, knobs: BTreeMap<String, String>) -> Result<Vec<KnobResult>, WorkerError> {
        self.set_knobs(knobs, true).await
    }

    /// Like [`Group::tune`], but a knob that cannot be set is reported in the result.
    ///
    /// # Errors
    /// If a knob is unknown, or another process is changing the machine.
    pub async fn tune_best_effort(&self, knobs: BTreeMap<String, String>) -> Result<Vec<KnobResult>, WorkerError> {
        self.set_knobs(knobs, false).await
    }

    /// Applies an undo step until the group is torn down; returns whether anything had to be changed.
    ///
    /// # Errors
    /// If the step cannot be applied, or another process is changing the machine.
    pub async fn apply_step(&self, step: Step, state: Option<String>) -> Result<bool, WorkerError> {
        // Noted before the request: an agent that dies meanwhile may have begun the change.
        self.track_changes([step.description()]);
        self.worker.call(Request::ApplyStep { group: self.handle.id, step: Box::new(step), state }).await
    }

    async fn set_knobs(&self, knobs: BTreeMap<String, String>, strict: bool) -> Result<Vec<KnobResult>, WorkerError> {
        self.track_changes(knobs.keys().map(|knob| format!("the knob {knob}")));
        self.worker.call(Request::Tune { group: self.handle.id, knobs, strict }).await
    }

    fn track_changes(&self, what: impl IntoIterator<Item = String>) {
        self.worker.changes().entry(self.handle.id).or_default().extend(what);
    }

    /// Starts recording telemetry with the group's processes as the workload. Readings are taken now, at every interval
    /// (10 ms or more), and when the recording is finished.
    pub async fn record(&self, interval: Nanos) -> Result<Recording, WorkerError> {
        let id = self.worker.call(Request::StartRecording { group: self.handle.id, interval }).await?;
        Ok(Recording::new(self.worker.clone(), id))
    }

    /// Kills all processes of the group and removes it.
    pub async fn teardown(mut self) -> Result<TeardownReport, WorkerError> {
        self.open = false;
        let report = self.worker.call(Request::Teardown { group: self.handle.id }).await;
        if report.is_ok() {
            self.worker.changes().remove(&self.handle.id);
        }
        report
    }

    async fn start(&self, mut command: Command, hold: bool) -> Result<Process, WorkerError> {
        let stdin = std::mem::take(&mut command.stdin);
        let request = Request::Spawn { group: self.handle.id, command, hold };
        let (spawned, _): (ProcessHandle, _) = self.worker.call_with_payload(request, stdin).await?;
        Ok(Process::new(self.worker.clone(), spawned))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(Request::Teardown { group: self.handle.id });
        }
    }
}

/// A private folder (mode 0700) on a worker, removed with its contents on drop and when the agent exits.
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

    /// Its path.
    pub fn path(&self) -> &str {
        &self.place.path
    }

    /// Joins a name to its path.
    pub fn join(&self, name: &str) -> String {
        format!("{}/{name}", self.place.path)
    }

    /// Removes the folder.
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

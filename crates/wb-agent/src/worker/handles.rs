//! Handles of process groups and private folders on a worker, both removed on drop.

use std::collections::BTreeMap;

use wb_model::Nanos;
use wb_sys::undo::Step;

use crate::protocol::{Command, FolderHandle, TeardownReport, TuneReport, call};

use super::{Process, Recording, Worker, WorkerError};

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
    pub async fn tune(&self, knobs: BTreeMap<String, String>) -> Result<TuneReport, WorkerError> {
        self.set_knobs(knobs, true).await
    }

    /// Like [`Group::tune`], but a knob that cannot be set is reported in the result.
    ///
    /// # Errors
    /// If a knob is unknown, or another process is changing the machine.
    pub async fn tune_best_effort(&self, knobs: BTreeMap<String, String>) -> Result<TuneReport, WorkerError> {
        self.set_knobs(knobs, false).await
    }

    /// Applies an undo step until the group is torn down; returns whether anything had to be changed.
    ///
    /// # Errors
    /// If the step cannot be applied, or another process is changing the machine.
    pub async fn apply_step(&self, step: Step, state: Option<String>) -> Result<bool, WorkerError> {
        // Noted before the request: an agent that dies meanwhile may have begun the change.
        self.track_changes([step.description()]);
        self.worker.call(call::ApplyStep { group: self.handle.id, step: Box::new(step), state }).await
    }

    async fn set_knobs(&self, knobs: BTreeMap<String, String>, strict: bool) -> Result<TuneReport, WorkerError> {
        self.track_changes(knobs.keys().map(|knob| format!("the knob {knob}")));
        self.worker.call(call::Tune { group: self.handle.id, knobs, strict }).await
    }

    fn track_changes(&self, what: impl IntoIterator<Item = String>) {
        self.worker.changes().entry(self.handle.id).or_default().extend(what);
    }

    /// Starts recording telemetry with the group's processes as the workload. Readings are taken now, at every interval
    /// (10 ms or more), and when the recording is finished.
    pub async fn record(&self, interval: Nanos) -> Result<Recording, WorkerError> {
        let id = self.worker.call(call::StartRecording { group: self.handle.id, interval }).await?;
        Ok(Recording::new(self.worker.clone(), id))
    }

    /// Kills all processes of the group and removes it.
    pub async fn teardown(mut self) -> Result<TeardownReport, WorkerError> {
        self.open = false;
        let report = self.worker.call(call::Teardown { group: self.handle.id }).await;
        if report.is_ok() {
            self.worker.changes().remove(&self.handle.id);
        }
        report
    }

    /// Like [`Group::teardown`], for a group in which nothing was changed.
    ///
    /// # Errors
    /// Also if something is left on the machine.
    pub async fn close(self) -> Result<(), WorkerError> {
        let worker = self.worker.name().clone();
        self.teardown().await?.into_result().map_err(|fault| WorkerError::Fault { worker, fault })
    }

    async fn start(&self, command: Command, hold: bool) -> Result<Process, WorkerError> {
        let handle = self.worker.call(call::Spawn { group: self.handle.id, command, hold }).await?;
        Ok(Process::new(self.worker.clone(), handle))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(call::Teardown { group: self.handle.id });
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
        self.worker.call(call::RemoveScratch { id: self.place.id }).await
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(call::RemoveScratch { id: self.place.id });
        }
    }
}

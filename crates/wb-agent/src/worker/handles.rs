//! Handles of groups and scratch folders on a worker. Dropping a handle has the agent remove the group or folder.

use wb_knobs::tune::KnobSetting;
use wb_model::Nanos;
use wb_sys::undo::ManagedResource;

use crate::protocol::{CleanupCommand, Command, GroupHandle, ScratchHandle, TeardownReport, TuneReport, call};

use super::{Process, Recording, Worker, WorkerError};

/// The processes of one attempt, with their scratch folder and the changes that were made to the machine for them. Not
/// a POSIX process group: daemons and processes in other sessions belong to it too. Dropping it has the agent kill all
/// its processes and revert the changes.
#[derive(Debug)]
pub struct TeardownGroup {
    worker: Worker,
    handle: GroupHandle,
    /// False once the agent has been told to tear it down.
    open: bool,
}

impl TeardownGroup {
    pub(super) fn new(worker: Worker, handle: GroupHandle) -> Self {
        Self { worker, handle, open: true }
    }

    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Its scratch folder: working directory and `TMPDIR` of its processes, removed with the group.
    pub fn folder(&self) -> &str {
        &self.handle.folder
    }

    /// The path of its cgroup; `None` if the agent could not create one, and therefore finds its processes by ancestry.
    pub fn cgroup(&self) -> Option<&str> {
        self.handle.cgroup.as_deref()
    }

    pub async fn spawn(&self, command: Command) -> Result<Process, WorkerError> {
        self.start(command, false).await
    }

    /// Starts a process that is suspended before it executes its program, with its placement applied, so that several
    /// can be started together by [`Process::release`].
    pub async fn spawn_suspended(&self, command: Command) -> Result<Process, WorkerError> {
        self.start(command, true).await
    }

    /// Sets knobs until the group is torn down. Fails if a knob cannot be set to its value, another run is measuring on
    /// the machine, or another process has locked its undo log.
    pub async fn tune(&self, knobs: Vec<KnobSetting>) -> Result<TuneReport, WorkerError> {
        self.set_knobs(knobs, true).await
    }

    /// Like [`TeardownGroup::tune`], but a knob that cannot be set is no error: it is reported in the result.
    pub async fn tune_best_effort(&self, knobs: Vec<KnobSetting>) -> Result<TuneReport, WorkerError> {
        self.set_knobs(knobs, false).await
    }

    /// Makes a change that is reverted when the group is torn down. `resource` is the object that is changed, and
    /// `state` is its new state; `None` if it must not exist. Returns whether anything had to be changed. Fails in the
    /// cases of [`TeardownGroup::tune`].
    pub async fn apply_change(&self, resource: ManagedResource, state: Option<String>) -> Result<bool, WorkerError> {
        // Recorded before the request: an agent that dies meanwhile may have begun the change.
        self.track_changes([resource.description()]);
        self.worker.call(call::ApplyChange { group: self.handle.id, resource: Box::new(resource), state }).await
    }

    async fn set_knobs(&self, knobs: Vec<KnobSetting>, strict: bool) -> Result<TuneReport, WorkerError> {
        self.track_changes(knobs.iter().map(|setting| format!("the knob {}", setting.key())));
        self.worker.call(call::Tune { group: self.handle.id, knobs, strict }).await
    }

    /// Remembers changes that must be reverted when the group is torn down.
    fn track_changes(&self, descriptions: impl IntoIterator<Item = String>) {
        self.worker.changes().entry(self.handle.id).or_default().extend(descriptions);
    }

    /// Sets the commands that undo what the group's processes do outside of its folder; none withdraws them. They run
    /// when the group is torn down, however the controller and the agent end: at the latest when the next agent starts.
    pub async fn set_cleanup(&self, commands: &[CleanupCommand]) -> Result<(), WorkerError> {
        self.worker.call(call::SetCleanup { group: self.handle.id, commands: commands.to_vec() }).await
    }

    /// Starts recording telemetry with the group's processes as the workload. Readings are taken now, at every interval
    /// (10 ms or more), and when the recording is finished.
    pub async fn record(&self, interval: Nanos) -> Result<Recording, WorkerError> {
        let id = self.worker.call(call::StartRecording { group: self.handle.id, interval }).await?;
        Ok(Recording::new(self.worker.clone(), id))
    }

    /// Kills all processes of the group, reverts its changes and removes it. What could not be done is in the report.
    pub async fn teardown(mut self) -> Result<TeardownReport, WorkerError> {
        // The call is sent even if this future is dropped while it waits for the reply.
        self.open = false;
        let report = self.worker.call(call::Teardown { group: self.handle.id }).await;
        if report.is_ok() {
            self.worker.changes().remove(&self.handle.id);
        }
        report
    }

    /// Like [`TeardownGroup::teardown`], for a group that has made no changes: whatever is left of it is an error.
    pub async fn close(self) -> Result<(), WorkerError> {
        let worker = self.worker.name().clone();
        // The report has no place to go here, so this is only for groups that have changed nothing.
        self.teardown().await?.into_result().map_err(|fault| WorkerError::Fault { worker, fault })
    }

    async fn start(&self, command: Command, suspended: bool) -> Result<Process, WorkerError> {
        let handle = self.worker.call(call::Spawn { group: self.handle.id, command, suspended }).await?;
        Ok(Process::new(self.worker.clone(), handle))
    }
}

impl Drop for TeardownGroup {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(call::Teardown { group: self.handle.id });
        }
    }
}

/// A scratch folder on a worker, accessible only to the agent's user (mode 0700). It is removed with its contents on
/// drop and when the agent exits.
#[derive(Debug)]
pub struct Scratch {
    worker: Worker,
    handle: ScratchHandle,
    /// False once the agent has been told to remove it.
    open: bool,
}

impl Scratch {
    pub(super) fn new(worker: Worker, handle: ScratchHandle) -> Self {
        Self { worker, handle, open: true }
    }

    pub fn path(&self) -> &str {
        &self.handle.path
    }

    pub fn join(&self, name: &str) -> String {
        format!("{}/{name}", self.handle.path)
    }

    pub async fn close(mut self) -> Result<(), WorkerError> {
        // As in `TeardownGroup::teardown`, the call is sent in any case.
        self.open = false;
        self.worker.call(call::RemoveScratch { id: self.handle.id }).await
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.open {
            self.worker.notify(call::RemoveScratch { id: self.handle.id });
        }
    }
}

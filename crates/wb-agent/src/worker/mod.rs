//! The handle on a worker: everything that can be asked of a machine, the same for this one and any other.

mod connection;
mod error;
mod handles;
mod pipe;
mod process;
mod recording;
mod synchronized_start;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Child;
use wb_knobs::doctor::Diagnosis;
use wb_model::{Bytes, Facts, Nanos, ProcessEnvironment, WorkerName};
use wb_sys::Environment;
use wb_sys::environment::tools::VersionQueries;
use wb_sys::undo::Step;

use crate::clock::{ClockOffset, ClockReading, monotonic_ns, wall_ns};
use crate::protocol::{FileEntry, FolderHandle, Request};
use crate::session::{ActiveRuns, Controller, SessionConfig};

pub use connection::{Connection, Reply};
pub use error::WorkerError;
pub use handles::{Group, RecoveryReport, RestoredChange, Scratch, TeardownReport, UnrevertedChanges};
use pipe::PipeConnection;
pub use process::{ExitReason, Process, ProcessOutput};
pub use recording::{Recording, TelemetryRecord};
pub use synchronized_start::{ProcessStart, SynchronizedStart, start_synchronized};

/// How much of a file travels at once, in bytes.
const CHUNK: usize = 4 << 20;
/// How long an agent may take to end after it said that it is done.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the clock is asked for one answer.
const CLOCK_SAMPLES: usize = 16;

/// A program on a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InstalledProgram {
    /// Where it lies.
    pub path: String,
    /// The SHA-256 of its file, in hexadecimal digits.
    pub sha256: String,
    /// What it says of its version, if it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A worker. Clones are the same one; when the last is gone, its agent ends and leaves nothing behind.
#[derive(Debug, Clone)]
pub struct Worker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: WorkerName,
    program: String,
    connection: Box<dyn Connection>,
    child: Mutex<Option<Child>>,
    /// What is changed for each group.
    changed: Mutex<BTreeMap<u32, Vec<String>>>,
}

impl Worker {
    /// This machine, through an agent that is started here: `program agent`, in a process group of its
    /// own, so that Ctrl-C on the terminal is not for it.
    ///
    /// # Errors
    /// When the program cannot be started or is not an agent of this version.
    pub async fn local(program: &Path) -> Result<Self, WorkerError> {
        Self::local_named(WorkerName::local(), program).await
    }

    /// The same under another name: one of several on this machine.
    ///
    /// # Errors
    /// As for [`Worker::local`].
    pub async fn local_named(name: WorkerName, program: &Path) -> Result<Self, WorkerError> {
        let start = |source| WorkerError::StartFailed { program: program.display().to_string(), source };
        let mut child = tokio::process::Command::new(program)
            .arg("agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(start)?;
        let (Some(input), Some(output)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(start(std::io::Error::other("no pipes")));
        };
        let (link, hello) =
            PipeConnection::new(&name, input, output, SessionConfig::default(), std::future::ready(None)).await?;
        Ok(Self::new(name, hello.program, link, Some(child)))
    }

    /// A worker whose agent is spoken to over these, whoever started it, and on these terms. `why_ended` may take a
    /// moment after the input's end to say what happened; it is not waited for otherwise. Reading and writing are done
    /// by tasks of the runtime that this is called on, and by it alone.
    ///
    /// # Errors
    /// When what answers is not an agent of this version, or does not take the terms.
    pub async fn from_streams(
        name: WorkerName,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        terms: SessionConfig,
        why_ended: impl Future<Output = Option<String>> + Send + 'static,
    ) -> Result<Self, WorkerError> {
        let (link, hello) = PipeConnection::new(&name, input, output, terms, why_ended).await?;
        Ok(Self::new(name, hello.program, link, None))
    }

    /// A worker behind any connection. `program` is the path of the weighbridge program there.
    pub fn from_connection(
        name: WorkerName,
        program: impl Into<String>,
        connection: impl Connection + 'static,
    ) -> Self {
        Self::new(name, program.into(), connection, None)
    }

    fn new(name: WorkerName, program: String, connection: impl Connection + 'static, child: Option<Child>) -> Self {
        let (connection, child, changed) = (Box::new(connection), Mutex::new(child), Mutex::default());
        Self(Arc::new(Inner { name, program, connection, child, changed }))
    }

    /// Its name.
    pub fn name(&self) -> &WorkerName {
        &self.0.name
    }

    /// Where the weighbridge program lies on it: what runs native workloads there.
    pub fn program(&self) -> &str {
        &self.0.program
    }

    /// The agent's process, when it was started by [`Worker::local`] and not closed.
    pub fn agent_pid(&self) -> Option<u32> {
        self.child().as_ref().and_then(Child::id)
    }

    /// How far its clocks are ahead of ours, by the quickest of some questions.
    pub async fn clock_offset(&self) -> Result<ClockOffset, WorkerError> {
        let mut best = self.query_clock().await?;
        for _ in 1..CLOCK_SAMPLES {
            let next = self.query_clock().await?;
            if next.rtt < best.rtt {
                best = next;
            }
        }
        Ok(best)
    }

    async fn query_clock(&self) -> Result<ClockOffset, WorkerError> {
        let sent_ns = monotonic_ns();
        let reading: ClockReading = self.call(Request::Clock).await?;
        Ok(ClockOffset::from_exchange(sent_ns, reading, monotonic_ns(), wall_ns()))
    }

    /// Its facts, as they are now.
    pub async fn facts(&self) -> Result<Facts, WorkerError> {
        self.call(Request::Facts).await
    }

    /// Its world as it is now, with the versions of these programs; one without arguments is not run. Takes a moment: for between samples.
    pub async fn environment(&self, programs: VersionQueries) -> Result<Environment, WorkerError> {
        self.call_for_payload(Request::Environment { programs }).await
    }

    /// What makes it noisy. It is looked at for 200 ms.
    pub async fn doctor(&self) -> Result<Diagnosis, WorkerError> {
        self.call_for_payload(Request::Doctor).await
    }

    /// Which of these knobs, by name or `NAME@TARGET`, cannot be set so on it, and why. Nothing is tried.
    pub async fn check_knobs(&self, knobs: BTreeMap<String, String>) -> Result<Vec<(String, String)>, WorkerError> {
        self.call(Request::CheckKnobs { knobs }).await
    }

    /// Why something cannot be changed on it; none where it can, as far as reading tells. Nothing is tried.
    pub async fn refusal(&self, step: Step) -> Result<Option<String>, WorkerError> {
        self.call(Request::Refusal { step: Box::new(step) }).await
    }

    /// What agents that were killed had changed there, and what became of it when this one started.
    pub async fn recovery_report(&self) -> Result<RecoveryReport, WorkerError> {
        self.call(Request::RecoveryReport).await
    }

    /// What was changed on it through this handle and is not known to be put back: knobs, files, commands by their names.
    /// Of use once its agent is lost.
    pub fn pending_changes(&self) -> Vec<String> {
        self.changes().values().flatten().cloned().collect()
    }

    /// Announces that a run of this controller is under way on it, until its agent ends; finds those that other agents
    /// have announced there.
    ///
    /// # Errors
    /// When it cannot be announced: nothing can be written into the worker's folder for temporary files.
    pub async fn announce(&self, controller: Controller) -> Result<ActiveRuns, WorkerError> {
        self.call(Request::Announce { controller }).await
    }

    /// Where a program lies on it, and its hash; none when it is not there. With arguments it is also
    /// asked for its version: the first line that it prints when it is run with them.
    pub async fn which(&self, program: &str, version: &[&str]) -> Result<Option<InstalledProgram>, WorkerError> {
        let tool: Option<InstalledProgram> = self.call(Request::Which { program: program.to_owned() }).await?;
        let Some(tool) = tool else { return Ok(None) };
        let version = if version.is_empty() { None } else { self.first_line(&tool.path, version).await? };
        Ok(Some(InstalledProgram { version, ..tool }))
    }

    /// A private folder on it, in the agent's own or below `base`.
    pub async fn new_scratch(&self, base: Option<&str>) -> Result<Scratch, WorkerError> {
        let place: FolderHandle = self.call(Request::Scratch { base: base.map(str::to_owned) }).await?;
        Ok(Scratch::new(self.clone(), place))
    }

    /// Writes a file, made with these permissions or replaced.
    pub async fn put(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), WorkerError> {
        let mut offset = 0;
        loop {
            let end = bytes.len().min(offset + CHUNK);
            let request = Request::Put { path: path.to_owned(), offset: offset as u64, mode };
            let ((), _) = self.call_with_payload(request, bytes[offset..end].to_vec()).await?;
            offset = end;
            if offset == bytes.len() {
                return Ok(());
            }
        }
    }

    /// The bytes of a file; an error where it is longer than `most`.
    pub async fn get(&self, path: &str, most: Bytes) -> Result<Vec<u8>, WorkerError> {
        let mut bytes = Vec::new();
        loop {
            let request = Request::Get { path: path.to_owned(), offset: bytes.len() as u64 };
            let (length, part): (u64, _) = self.call_with_payload(request, Vec::new()).await?;
            if length.max((bytes.len() + part.len()) as u64) > most.0 {
                return Err(WorkerError::FileTooLarge { worker: self.name().clone(), path: path.to_owned(), most });
            }
            if part.is_empty() {
                return Ok(bytes);
            }
            bytes.extend(part);
        }
    }

    /// What is in a folder, by name.
    pub async fn list(&self, path: &str) -> Result<Vec<FileEntry>, WorkerError> {
        self.call_for_payload(Request::List { path: path.to_owned() }).await
    }

    /// Removes a file, or a folder with all in it if it lies in a private one.
    pub async fn remove(&self, path: &str) -> Result<(), WorkerError> {
        self.call(Request::Remove { path: path.to_owned() }).await
    }

    /// A new group of processes: what belongs to one attempt.
    pub async fn new_group(&self) -> Result<Group, WorkerError> {
        self.new_group_with(ProcessEnvironment::default()).await
    }

    /// The same, all of whose processes find these variables and programs.
    ///
    /// # Errors
    /// When one of the programs is not there, too.
    pub async fn new_group_with(&self, found: ProcessEnvironment) -> Result<Group, WorkerError> {
        Ok(Group::new(self.clone(), self.call(Request::Group { overrides: found }).await?))
    }

    /// Ends and removes everything on the worker that was started and made through this handle, and
    /// ends the agent.
    pub async fn close(self) -> Result<(), WorkerError> {
        let closed = self.call::<()>(Request::Close).await;
        let child = self.child().take();
        if let Some(mut child) = child
            && tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await.is_err()
        {
            let _ = child.kill().await;
        }
        // Whoever carried the pipe ends too.
        let _ = tokio::time::timeout(EXIT_TIMEOUT, self.0.connection.closed()).await;
        closed
    }

    /// Whether a program succeeds with these arguments, within ten seconds.
    pub async fn succeeds(&self, program: &str, arguments: &[&str]) -> Result<bool, WorkerError> {
        Ok(self.run_to_end(program, arguments).await?.ending.is_success())
    }

    async fn run_to_end(&self, program: &str, arguments: &[&str]) -> Result<ProcessOutput, WorkerError> {
        let group = self.new_group().await?;
        let argv = [program].into_iter().chain(arguments.iter().copied());
        let process = group.spawn(crate::Command::new(argv).output_limit(Bytes(1 << 20))).await?;
        let finished = process.wait(Some(Nanos(10_000_000_000))).await?;
        group.teardown().await?;
        Ok(finished)
    }

    async fn first_line(&self, program: &str, arguments: &[&str]) -> Result<Option<String>, WorkerError> {
        let finished = self.run_to_end(program, arguments).await?;
        let both = [finished.stdout, finished.stderr].concat();
        let text = String::from_utf8_lossy(&both);
        Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned))
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.0.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Vec<String>>> {
        self.0.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<T: serde::de::DeserializeOwned>(&self, request: Request) -> Result<T, WorkerError> {
        Ok(self.call_with_payload(request, Vec::new()).await?.0)
    }

    /// Asks for what comes as the payload, in JSON.
    async fn call_for_payload<T: serde::de::DeserializeOwned>(&self, request: Request) -> Result<T, WorkerError> {
        Ok(self.call_for_value_and_payload::<(), T>(request).await?.1)
    }

    /// Asks for something short, and what comes as the payload beside it, in JSON.
    async fn call_for_value_and_payload<S: serde::de::DeserializeOwned, T: serde::de::DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<(S, T), WorkerError> {
        let (short, json) = self.call_with_payload(request, Vec::new()).await?;
        Ok((short, serde_json::from_slice(&json).map_err(|error| self.invalid_reply(&error))?))
    }

    async fn call_with_payload<T: serde::de::DeserializeOwned>(
        &self,
        request: Request,
        payload: Vec<u8>,
    ) -> Result<(T, Vec<u8>), WorkerError> {
        let (value, payload) = self.0.connection.call(request, payload).await?;
        Ok((serde_json::from_value(value).map_err(|error| self.invalid_reply(&error))?, payload))
    }

    fn invalid_reply(&self, error: &serde_json::Error) -> WorkerError {
        WorkerError::Lost { worker: self.name().clone(), why: format!("invalid reply of its agent: {error}") }
    }

    /// Asks for something without waiting for it: for what is dropped.
    fn notify(&self, request: Request) {
        self.0.connection.notify(request);
    }
}

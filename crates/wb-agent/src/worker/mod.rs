//! The handle on a worker: everything that can be asked of a machine, the same for this one and any other.

mod connection;
mod error;
mod link;
mod process;
mod recording;
mod things;
mod together;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Child;
use wb_knobs::doctor::Diagnosis;
use wb_model::{Bytes, Facts, Found, Nanos, WorkerName};
use wb_sys::Environment;
use wb_sys::environment::tools::Asked;
use wb_sys::undo::Step;

use crate::clock::{ClockOffset, Reading, monotonic_ns, wall_ns};
use crate::protocol::{FileEntry, Place, Request};
use crate::terms::{Announced, Controller, Terms};

pub use connection::{Connection, Reply};
pub use error::WorkerError;
use link::Link;
pub use process::{Ending, Finished, Process};
pub use recording::{Recorded, Recording};
pub use things::{Group, LeftBehind, PutBack, Scratch, StillChanged, Teardown};
pub use together::{Start, Together, start_together};

/// How much of a file travels at once, in bytes.
const CHUNK: usize = 4 << 20;
/// How long an agent may take to end after it said that it is done.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the clock is asked for one answer.
const CLOCK_QUESTIONS: usize = 16;

/// A program on a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tool {
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
        Self::here(WorkerName::local(), program).await
    }

    /// The same under another name: one of several on this machine.
    ///
    /// # Errors
    /// As for [`Worker::local`].
    pub async fn here(name: WorkerName, program: &Path) -> Result<Self, WorkerError> {
        let start = |source| WorkerError::Start { program: program.display().to_string(), source };
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
        let (link, hello) = Link::new(&name, input, output, Terms::default(), std::future::ready(None)).await?;
        Ok(Self::new(name, hello.program, link, Some(child)))
    }

    /// A worker whose agent is spoken to over these, whoever started it, and on these terms. `why_ended` may take a
    /// moment after the input's end to say what happened; it is not waited for otherwise. Reading and writing are done
    /// by tasks of the runtime that this is called on, and by it alone.
    ///
    /// # Errors
    /// When what answers is not an agent of this version, or does not take the terms.
    pub async fn over(
        name: WorkerName,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        terms: Terms,
        why_ended: impl Future<Output = Option<String>> + Send + 'static,
    ) -> Result<Self, WorkerError> {
        let (link, hello) = Link::new(&name, input, output, terms, why_ended).await?;
        Ok(Self::new(name, hello.program, link, None))
    }

    /// A worker behind any connection. `program` is the path of the weighbridge program there.
    pub fn connected(name: WorkerName, program: impl Into<String>, connection: impl Connection + 'static) -> Self {
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
    pub async fn clock(&self) -> Result<ClockOffset, WorkerError> {
        let mut best = self.clock_once().await?;
        for _ in 1..CLOCK_QUESTIONS {
            let next = self.clock_once().await?;
            if next.rtt < best.rtt {
                best = next;
            }
        }
        Ok(best)
    }

    async fn clock_once(&self) -> Result<ClockOffset, WorkerError> {
        let sent_ns = monotonic_ns();
        let reading: Reading = self.ask(Request::Clock).await?;
        Ok(ClockOffset::of(sent_ns, reading, monotonic_ns(), wall_ns()))
    }

    /// Its facts, as they are now.
    pub async fn facts(&self) -> Result<Facts, WorkerError> {
        self.ask(Request::Facts).await
    }

    /// Its world as it is now, with the versions of these programs; one without arguments is not run. Takes a moment: for between samples.
    pub async fn environment(&self, programs: Asked) -> Result<Environment, WorkerError> {
        self.ask_long(Request::Environment { programs }).await
    }

    /// What makes it noisy. It is looked at for 200 ms.
    pub async fn doctor(&self) -> Result<Diagnosis, WorkerError> {
        self.ask_long(Request::Doctor).await
    }

    /// Which of these knobs, by name or `NAME@TARGET`, cannot be set so on it, and why. Nothing is tried.
    pub async fn unsettable(&self, knobs: BTreeMap<String, String>) -> Result<Vec<(String, String)>, WorkerError> {
        self.ask(Request::Unsettable { knobs }).await
    }

    /// Why something cannot be changed on it; none where it can, as far as reading tells. Nothing is tried.
    pub async fn refusal(&self, step: Step) -> Result<Option<String>, WorkerError> {
        self.ask(Request::Refusal { step: Box::new(step) }).await
    }

    /// What agents that were killed had changed there, and what became of it when this one started.
    pub async fn left_behind(&self) -> Result<LeftBehind, WorkerError> {
        self.ask(Request::LeftBehind).await
    }

    /// What was changed on it through this handle and is not known to be put back: knobs, files, commands by their names.
    /// Of use once its agent is lost.
    pub fn changed(&self) -> Vec<String> {
        self.changes().values().flatten().cloned().collect()
    }

    /// Announces that a run of this controller is under way on it, until its agent ends; finds those that other agents
    /// have announced there.
    ///
    /// # Errors
    /// When it cannot be announced: nothing can be written into the worker's folder for temporary files.
    pub async fn announce(&self, controller: Controller) -> Result<Announced, WorkerError> {
        self.ask(Request::Announce { controller }).await
    }

    /// Where a program lies on it, and its hash; none when it is not there. With arguments it is also
    /// asked for its version: the first line that it prints when it is run with them.
    pub async fn which(&self, program: &str, version: &[&str]) -> Result<Option<Tool>, WorkerError> {
        let tool: Option<Tool> = self.ask(Request::Which { program: program.to_owned() }).await?;
        let Some(tool) = tool else { return Ok(None) };
        let version = if version.is_empty() { None } else { self.first_line(&tool.path, version).await? };
        Ok(Some(Tool { version, ..tool }))
    }

    /// A private folder on it, in the agent's own or below `base`.
    pub async fn scratch(&self, base: Option<&str>) -> Result<Scratch, WorkerError> {
        let place: Place = self.ask(Request::Scratch { base: base.map(str::to_owned) }).await?;
        Ok(Scratch::new(self.clone(), place))
    }

    /// Writes a file, made with these permissions or replaced.
    pub async fn put(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), WorkerError> {
        let mut offset = 0;
        loop {
            let end = bytes.len().min(offset + CHUNK);
            let request = Request::Put { path: path.to_owned(), offset: offset as u64, mode };
            let ((), _) = self.ask_with(request, bytes[offset..end].to_vec()).await?;
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
            let (length, part): (u64, _) = self.ask_with(request, Vec::new()).await?;
            if length.max((bytes.len() + part.len()) as u64) > most.0 {
                return Err(WorkerError::TooLong { worker: self.name().clone(), path: path.to_owned(), most });
            }
            if part.is_empty() {
                return Ok(bytes);
            }
            bytes.extend(part);
        }
    }

    /// What is in a folder, by name.
    pub async fn list(&self, path: &str) -> Result<Vec<FileEntry>, WorkerError> {
        self.ask_long(Request::List { path: path.to_owned() }).await
    }

    /// Removes a file, or a folder with all in it if it lies in a private one.
    pub async fn remove(&self, path: &str) -> Result<(), WorkerError> {
        self.ask(Request::Remove { path: path.to_owned() }).await
    }

    /// A new group of processes: what belongs to one attempt.
    pub async fn group(&self) -> Result<Group, WorkerError> {
        self.group_with(Found::default()).await
    }

    /// The same, all of whose processes find these variables and programs.
    ///
    /// # Errors
    /// When one of the programs is not there, too.
    pub async fn group_with(&self, found: Found) -> Result<Group, WorkerError> {
        Ok(Group::new(self.clone(), self.ask(Request::Group { found }).await?))
    }

    /// Ends and removes everything on the worker that was started and made through this handle, and
    /// ends the agent.
    pub async fn close(self) -> Result<(), WorkerError> {
        let closed = self.ask::<()>(Request::Close).await;
        let child = self.child().take();
        if let Some(mut child) = child
            && tokio::time::timeout(PATIENCE, child.wait()).await.is_err()
        {
            let _ = child.kill().await;
        }
        // Whoever carried the pipe ends too.
        let _ = tokio::time::timeout(PATIENCE, self.0.connection.closed()).await;
        closed
    }

    /// Whether a program succeeds with these arguments, within ten seconds.
    pub async fn succeeds(&self, program: &str, arguments: &[&str]) -> Result<bool, WorkerError> {
        Ok(self.finish(program, arguments).await?.ending.is_success())
    }

    async fn finish(&self, program: &str, arguments: &[&str]) -> Result<Finished, WorkerError> {
        let group = self.group().await?;
        let argv = [program].into_iter().chain(arguments.iter().copied());
        let process = group.spawn(crate::Command::new(argv).output_limit(Bytes(1 << 20))).await?;
        let finished = process.wait(Some(Nanos(10_000_000_000))).await?;
        group.teardown().await?;
        Ok(finished)
    }

    async fn first_line(&self, program: &str, arguments: &[&str]) -> Result<Option<String>, WorkerError> {
        let finished = self.finish(program, arguments).await?;
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

    async fn ask<T: serde::de::DeserializeOwned>(&self, request: Request) -> Result<T, WorkerError> {
        Ok(self.ask_with(request, Vec::new()).await?.0)
    }

    /// Asks for what comes as the payload, in JSON.
    async fn ask_long<T: serde::de::DeserializeOwned>(&self, request: Request) -> Result<T, WorkerError> {
        Ok(self.ask_beside::<(), T>(request).await?.1)
    }

    /// Asks for something short, and what comes as the payload beside it, in JSON.
    async fn ask_beside<S: serde::de::DeserializeOwned, T: serde::de::DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<(S, T), WorkerError> {
        let (short, json) = self.ask_with(request, Vec::new()).await?;
        Ok((short, serde_json::from_slice(&json).map_err(|error| self.invalid_reply(&error))?))
    }

    async fn ask_with<T: serde::de::DeserializeOwned>(
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
    fn tell(&self, request: Request) {
        self.0.connection.notify(request);
    }
}

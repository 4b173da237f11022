//! Handle of a worker: the calls to a machine, the same for local and remote ones.

mod connection;
mod error;
mod handles;
mod pipe;
mod process;
mod recording;
mod synchronized_start;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Child;
use wb_knobs::doctor::Diagnosis;
use wb_knobs::tune::{KnobRefusal, KnobSetting};
use wb_model::{Bytes, Facts, Nanos, ProcessEnvironment, WorkerName};
use wb_sys::Environment;
use wb_sys::environment::tools::VersionQueries;
use wb_sys::undo::ManagedResource;

use crate::clock::{ClockOffset, monotonic_ns, wall_ns};
use crate::protocol::{
    ActiveRuns, CHUNK, Call, Command, Controller, FileEntry, InstalledProgram, RecoveryReport, SessionConfig,
    WithBytes, call,
};

pub use connection::Connection;
pub use error::WorkerError;
pub use handles::{Scratch, TeardownGroup};
use pipe::PipeConnection;
pub use process::{Process, ProcessOutput};
pub use recording::{Recording, TelemetryRecord};
pub use synchronized_start::{ProcessStart, SynchronizedStart, start_synchronized};

/// How long an agent may take to exit after it has confirmed the close.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a program that only reports something, such as its version.
const PROBE_LIMIT: Nanos = Nanos(10_000_000_000);
/// Number of exchanges for one estimate of the clock offset.
const CLOCK_SAMPLES: usize = 16;

/// A machine driven through its agent. Clones share one agent; when the last is dropped, the agent exits and cleans up.
#[derive(Debug, Clone)]
pub struct Worker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: WorkerName,
    program: String,
    connection: Box<dyn Connection>,
    child: Mutex<Option<Child>>,
    /// Descriptions of the changes made for each group.
    changes: Mutex<BTreeMap<u32, Vec<String>>>,
}

impl Worker {
    /// Starts an agent on this machine: `program agent`, in its own process group, so that Ctrl-C on the terminal does
    /// not reach it.
    pub async fn local(program: &Path) -> Result<Self, WorkerError> {
        Self::local_named(WorkerName::local(), program).await
    }

    /// Like [`Worker::local`] with another name, for several workers on this machine.
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

    /// Connects to an agent that is already running, through its output and input streams, with a session
    /// configuration. `exit_reason` may complete shortly after the end of the input with the reason; it is not awaited
    /// otherwise. Reading and writing are done by tasks of the calling runtime.
    pub async fn from_streams(
        name: WorkerName,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        config: SessionConfig,
        exit_reason: impl Future<Output = Option<String>> + Send + 'static,
    ) -> Result<Self, WorkerError> {
        let (link, hello) = PipeConnection::new(&name, input, output, config, exit_reason).await?;
        Ok(Self::new(name, hello.program, link, None))
    }

    /// Creates a worker from any connection. `program` is the path of the weighbridge program on it.
    pub fn from_connection(
        name: WorkerName,
        program: impl Into<String>,
        connection: impl Connection + 'static,
    ) -> Self {
        Self::new(name, program.into(), connection, None)
    }

    fn new(name: WorkerName, program: String, connection: impl Connection + 'static, child: Option<Child>) -> Self {
        let (connection, child, changed) = (Box::new(connection), Mutex::new(child), Mutex::default());
        Self(Arc::new(Inner { name, program, connection, child, changes: changed }))
    }

    pub fn name(&self) -> &WorkerName {
        &self.0.name
    }

    /// Path of the agent's program on the worker, which runs the native workloads too.
    pub fn program(&self) -> &str {
        &self.0.program
    }

    /// Process id of the agent, if it was started by [`Worker::local`] and not closed.
    pub fn agent_pid(&self) -> Option<u32> {
        self.child().as_ref().and_then(Child::id)
    }

    /// Estimates the offset of its clocks, from the fastest of several exchanges.
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
        let reading = self.call(call::Clock {}).await?;
        Ok(ClockOffset::from_exchange(sent_ns, reading, monotonic_ns(), wall_ns()))
    }

    pub async fn facts(&self) -> Result<Facts, WorkerError> {
        self.call(call::Facts {}).await
    }

    /// Reads the current environment, with the versions of the given programs; programs without arguments are not run.
    /// This takes a moment and must not run during a sample.
    pub async fn environment(&self, programs: VersionQueries) -> Result<Environment, WorkerError> {
        self.call(call::Environment { programs }).await
    }

    /// Diagnoses sources of noise, observing the machine for 200 ms.
    pub async fn doctor(&self) -> Result<Diagnosis, WorkerError> {
        self.call(call::Doctor {}).await
    }

    /// Returns the settings of knobs that cannot be made, with reasons. Writes nothing.
    pub async fn check_knobs(&self, knobs: Vec<KnobSetting>) -> Result<Vec<(KnobSetting, KnobRefusal)>, WorkerError> {
        self.call(call::CheckKnobs { knobs }).await
    }

    /// Returns the reason why a resource cannot be changed; none if it can, as far as reading shows. Writes nothing.
    pub async fn refusal(&self, resource: ManagedResource) -> Result<Option<String>, WorkerError> {
        self.call(call::Refusal { resource: Box::new(resource) }).await
    }

    pub async fn recovery_report(&self) -> Result<RecoveryReport, WorkerError> {
        self.call(call::Recovery {}).await
    }

    /// Lists the changes made through this handle that are not known to be reverted: knobs, files, and commands by
    /// name. Useful once the agent is lost.
    pub fn pending_changes(&self) -> Vec<String> {
        self.changes().values().flatten().cloned().collect()
    }

    /// Announces a run of this controller on the machine until the agent exits; returns the runs that other agents have
    /// announced there. Fails if the worker's folder for announcements is not writable.
    pub async fn announce(&self, controller: Controller) -> Result<ActiveRuns, WorkerError> {
        self.call(call::Announce { controller }).await
    }

    /// Finds a program and its hash; none if it is not installed. If `version` arguments are given, the program is run
    /// with them, and the first line that it prints is its version.
    pub async fn which(&self, program: &str, version: &[&str]) -> Result<Option<InstalledProgram>, WorkerError> {
        let Some(tool) = self.call(call::Which { program: program.to_owned() }).await? else { return Ok(None) };
        let version = if version.is_empty() { None } else { self.first_line(&tool.path, version).await? };
        Ok(Some(InstalledProgram { version, ..tool }))
    }

    /// Creates a scratch folder, in the agent's own folder or below `base`.
    pub async fn new_scratch(&self, base: Option<&str>) -> Result<Scratch, WorkerError> {
        let handle = self.call(call::Scratch { base: base.map(str::to_owned) }).await?;
        Ok(Scratch::new(self.clone(), handle))
    }

    /// A new file gets the permissions `mode`; an existing one keeps its own.
    pub async fn put(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), WorkerError> {
        let mut offset = 0;
        loop {
            let end = bytes.len().min(offset + CHUNK);
            let part = bytes[offset..end].to_vec();
            self.call(call::Put { path: path.to_owned(), offset: offset as u64, mode, bytes: part }).await?;
            offset = end;
            if offset == bytes.len() {
                return Ok(());
            }
        }
    }

    /// Reads a file; fails if it is larger than `max_length`.
    pub async fn get(&self, path: &str, max_length: Bytes) -> Result<Vec<u8>, WorkerError> {
        let mut bytes = Vec::new();
        loop {
            let get = call::Get { path: path.to_owned(), offset: bytes.len() as u64 };
            let WithBytes { value: length, bytes: chunk } = self.call(get).await?;
            if length.max((bytes.len() + chunk.len()) as u64) > max_length.0 {
                return Err(WorkerError::FileTooLarge {
                    worker: self.name().clone(),
                    path: path.to_owned(),
                    limit: max_length,
                });
            }
            let is_last = chunk.len() < CHUNK;
            bytes.extend(chunk);
            if is_last {
                return Ok(bytes);
            }
        }
    }

    /// Finds a port in the range that no TCP or UDP socket is bound to; fails if there is none.
    pub async fn find_free_port(&self, ports: RangeInclusive<u16>) -> Result<u16, WorkerError> {
        self.call(call::FreePort { first: *ports.start(), last: *ports.end() }).await
    }

    /// Sorted by name.
    pub async fn list(&self, path: &str) -> Result<Vec<FileEntry>, WorkerError> {
        self.call(call::List { path: path.to_owned() }).await
    }

    /// Removes a file, or a folder inside a scratch folder with its contents.
    pub async fn remove(&self, path: &str) -> Result<(), WorkerError> {
        self.call(call::Remove { path: path.to_owned() }).await
    }

    /// Creates a group for the processes of one attempt.
    pub async fn new_group(&self) -> Result<TeardownGroup, WorkerError> {
        self.new_group_with(ProcessEnvironment::default()).await
    }

    /// Like [`Worker::new_group`], with environment variables and program replacements for all its processes. Fails if
    /// one of the programs does not exist.
    pub async fn new_group_with(&self, overrides: ProcessEnvironment) -> Result<TeardownGroup, WorkerError> {
        Ok(TeardownGroup::new(self.clone(), self.call(call::Group { overrides }).await?))
    }

    /// Kills all processes and removes all files created through this handle, and ends the agent.
    pub async fn close(self) -> Result<(), WorkerError> {
        let result = self.call(call::Close {}).await;
        let child = self.child().take();
        if let Some(mut child) = child
            && tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await.is_err()
        {
            let _ = child.kill().await;
        }
        // The transport ends too.
        let _ = tokio::time::timeout(EXIT_TIMEOUT, self.0.connection.closed()).await;
        result
    }

    /// Runs a process in a group of its own, up to the limit. Fails if it cannot be started, or something of it is
    /// left.
    pub async fn run(&self, command: Command, limit: Nanos) -> Result<ProcessOutput, WorkerError> {
        let group = self.new_group().await?;
        let output = group.spawn(command).await?.wait(Some(limit)).await?;
        group.close().await?;
        Ok(output)
    }

    /// Runs a program and returns whether it succeeds within ten seconds.
    pub async fn succeeds(&self, command: Command) -> Result<bool, WorkerError> {
        Ok(self.probe(command).await?.exit_reason.is_success())
    }

    async fn probe(&self, command: Command) -> Result<ProcessOutput, WorkerError> {
        self.run(command.output_limit(Bytes(1 << 20)), PROBE_LIMIT).await
    }

    async fn first_line(&self, program: &str, arguments: &[&str]) -> Result<Option<String>, WorkerError> {
        let argv = [program].into_iter().chain(arguments.iter().copied());
        let finished = self.probe(Command::new(argv)).await?;
        let output = [finished.stdout, finished.stderr].concat();
        let text = String::from_utf8_lossy(&output);
        Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned))
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.0.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Vec<String>>> {
        self.0.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<C: Call>(&self, call: C) -> Result<C::Reply, WorkerError> {
        let reply = self.0.connection.call(call.into()).await?;
        let invalid = |error| WorkerError::Lost {
            worker: self.name().clone(),
            reason: format!("invalid reply from its agent: {error}"),
        };
        C::decode_reply(reply).map_err(invalid)
    }

    /// Makes a call without waiting for the reply, as `Drop` needs it.
    fn notify(&self, call: impl Call) {
        self.0.connection.notify(call.into());
    }
}

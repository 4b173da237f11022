//! Context of a test on a worker, and one attempt at a sample.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::watch;
use wb_agent::{
    Capture, Command, ExitReason, Group, PlacementReport, Process, ProcessOutput, ProcessStart, Worker, WorkerError,
};
use wb_model::secrets::{mask_arguments, mask_value};
use wb_model::{Bytes, Facts, Nanos, Placement, Purpose, Quantity, Roles, Sha256};
use wb_sys::process::{HugePagesMethod, ResourceUsage};

use crate::Failure;
use crate::start_barrier::BarrierSlot;

/// What is recorded of standard output for which the run has no room any more, in bytes.
const STDOUT_HEAD: usize = 64 << 10;

/// Processes, facts, placement and limits of a test on one worker; processes are killed when it is dropped.
#[derive(Debug)]
pub struct WorkerContext {
    /// What the processes belong to; its folder is private and goes with it.
    pub group: Group,
    /// Roles of the workers: this one measures, or serves one that does.
    pub team: Roles,
    /// Contexts of the other workers of this cell.
    pub peers: Vec<WorkerContext>,
    /// The address by which other workers reach this one; none where nobody said.
    pub address: Option<String>,
    /// Where it waits for those that measure at the same time.
    pub barrier_slot: Option<BarrierSlot>,
    /// What the worker is.
    pub facts: Arc<Facts>,
    /// Where and how measured processes run.
    pub placement: Placement,
    /// Time limit of each process and wait.
    pub limit: Nanos,
    /// Becomes true when the user wants to end.
    pub cancel: watch::Receiver<bool>,
}

impl WorkerContext {
    /// Of a worker that does all by itself.
    pub fn new(
        group: Group,
        facts: Arc<Facts>,
        placement: Placement,
        limit: Nanos,
        cancel: watch::Receiver<bool>,
    ) -> Self {
        let team = Roles { worker: group.worker().name().clone(), servers: Vec::new() };
        Self { group, team, peers: Vec::new(), address: None, barrier_slot: None, facts, placement, limit, cancel }
    }

    /// The worker.
    pub fn worker(&self) -> &Worker {
        self.group.worker()
    }

    /// Where its `number`th server is: with itself, unless the team says something else.
    pub fn server(&self, number: usize) -> &Self {
        let name = self.team.servers.get(number);
        self.peers.iter().find(|other| Some(other.worker().name()) == name).unwrap_or(self)
    }

    /// The path of a file in the site's private folder.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.group.folder())
    }

    /// A command placed as the cell asks.
    pub fn command<A: Into<String>>(&self, argv: impl IntoIterator<Item = A>) -> Command {
        Command::new(argv).placement(self.placement.clone())
    }

    /// Starts a process that runs meanwhile.
    pub async fn start(&self, command: Command) -> Result<Process, Failure> {
        self.group.spawn(command).await.map_err(worker_failure)
    }

    /// Starts a server that measured processes talk to.
    pub async fn start_service(&self, command: Command) -> Result<RunningService, Failure> {
        let (argv, env, placement) = (command.argv.clone(), command.env.clone(), command.placement.clone());
        Ok(RunningService { process: self.start(command).await?, argv, env, placement })
    }

    /// Runs a process to its end, whatever that is.
    pub async fn run_to_end(&self, command: Command) -> Result<ProcessOutput, Failure> {
        let process = self.start(command).await?;
        self.wait(&process).await
    }

    /// Like `run_to_end`, but starts at the same time as the processes of the other workers; returns the start time, if
    /// any.
    async fn run_together(&self, command: Command) -> Result<(ProcessOutput, Option<ProcessStart>), Failure> {
        let Some(seat) = &self.barrier_slot else { return Ok((self.run_to_end(command).await?, None)) };
        let process = Arc::new(self.group.spawn_held(command).await.map_err(worker_failure)?);
        let start = self.until_cancelled(seat.start(process.clone())).await??;
        Ok((self.wait(&process).await?, Some(start)))
    }

    async fn wait(&self, process: &Process) -> Result<ProcessOutput, Failure> {
        self.until_cancelled(process.wait(Some(self.limit))).await?.map_err(worker_failure)
    }

    /// Runs a process that has to succeed; what it wrote to standard output.
    pub async fn run(&self, command: Command) -> Result<Vec<u8>, Failure> {
        let program = program_name(&command);
        let finished = self.run_to_end(command).await?;
        check_success(&program, &finished)?;
        Ok(finished.stdout)
    }

    /// Waits for something, but no longer than the user wants.
    pub async fn until_cancelled<T>(&self, something: impl Future<Output = T>) -> Result<T, Failure> {
        let mut cancel = self.cancel.clone();
        let cancelled = async move {
            if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = cancelled => Err(Failure::Cancelled),
            value = something => Ok(value),
        }
    }

    /// Tries something every few milliseconds until it succeeds, or the time is over.
    pub async fn poll_until<F: Future<Output = Option<T>>, T>(
        &self,
        what: &str,
        limit: Nanos,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Failure> {
        let tries = async {
            loop {
                if let Some(done) = attempt().await {
                    return done;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let timed = tokio::time::timeout(limit.into(), tries);
        self.until_cancelled(timed).await?.map_err(|_| Failure::crashed(format!("{what} was not ready after {limit}")))
    }

    /// Reads a file of the worker.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.worker().get(path, Bytes(1 << 30)).await.map_err(worker_failure)
    }

    /// Writes a file on the worker.
    pub async fn put(&self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.worker().put(path, bytes, 0o600).await.map_err(worker_failure)
    }
}

/// One attempt at a sample.
#[derive(Debug)]
pub struct Attempt {
    /// Where.
    pub context: WorkerContext,
    /// What for.
    pub purpose: Purpose,
    /// Which sample of that purpose.
    pub sample: u32,
    /// How long the measured part takes at least.
    pub min_time: Nanos,
    /// The work that earlier samples of this cell did, in the test's own count: do the same. None the first time.
    pub work: Option<u64>,
    /// How many bytes of standard output there is room for in the run.
    pub stdout_limit: Bytes,
    record: AttemptRecord,
}

/// What an attempt leaves.
#[derive(Debug, Default)]
pub struct AttemptRecord {
    /// Files by name.
    pub artefacts: Vec<(String, Vec<u8>)>,
    /// The work that was done.
    pub work: Option<u64>,
    /// How long measured processes ran, in seconds.
    pub workload_seconds: f64,
    /// What was noticed.
    pub findings: Vec<String>,
}

/// Content of NAME.process.json: how a process was started, how it ended, what it used.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ProcessRecord<'a> {
    /// Without what must not be recorded, as the variables are.
    argv: Vec<String>,
    env: Vec<(&'a str, String)>,
    /// Of a process that has ended.
    #[serde(flatten)]
    end: Option<ProcessEnd>,
    /// Of one of several that started together: how late it was, and by which clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<ProcessStart>,
    /// As the cell asks.
    placement: &'a Placement,
    #[serde(flatten)]
    ran: &'a PlacementReport,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ProcessEnd {
    ending: ExitReason,
    elapsed_seconds: f64,
    usage: ResourceUsage,
    /// What became of standard output.
    stdout: Capture,
    /// Its length and its SHA-256, unless it was discarded: whether a command's output changed from sample to sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_sha256: Option<Sha256>,
}

/// A process that serves a measured one: measured with it, it is recorded like it.
#[derive(Debug)]
pub struct RunningService {
    process: Process,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    placement: Placement,
}

impl std::ops::Deref for RunningService {
    type Target = Process;
    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Attempt {
    /// A new attempt, which has left nothing yet.
    pub fn new(context: WorkerContext, purpose: Purpose, sample: u32, min_time: Nanos, work: Option<u64>) -> Self {
        let stdout_limit = Bytes(u64::MAX);
        Self { context, purpose, sample, min_time, work, stdout_limit, record: AttemptRecord::default() }
    }

    /// Keeps a file.
    pub fn add_artefact(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.record.artefacts.push((name.to_owned(), bytes.into()));
    }

    /// Says how much work was done.
    pub fn record_work(&mut self, work: u64) {
        self.record.work = Some(work);
    }

    /// Says what was noticed.
    pub fn add_finding(&mut self, finding: impl Into<String>) {
        self.record.findings.push(finding.into());
    }

    /// Runs a measured process that has to succeed. How it ran and what it used is recorded as `NAME.process.json`,
    /// what it wrote as `NAME.stdout` (where its command has that kept; of one that failed at least the end) and
    /// `NAME.stderr`, whether it succeeds or not.
    pub async fn run(&mut self, name: &str, command: Command) -> Result<ProcessOutput, Failure> {
        let placement = command.placement.clone();
        self.run_with_placement(name, command, &placement).await
    }

    /// Runs a measured process that brings about a part of the cell's placement itself.
    pub async fn run_with_placement(
        &mut self,
        name: &str,
        command: Command,
        asked: &Placement,
    ) -> Result<ProcessOutput, Failure> {
        let program = program_name(&command);
        let finished = self.run_to_end(name, command, asked).await?;
        check_success(&program, &finished)?;
        Ok(finished)
    }

    /// Runs a measured process to its end, whatever that is, and records what [`Attempt::run`] records.
    pub async fn run_to_end(
        &mut self,
        name: &str,
        command: Command,
        asked: &Placement,
    ) -> Result<ProcessOutput, Failure> {
        let (argv, env, placement) = (command.argv.clone(), command.env.clone(), command.placement.clone());
        let (program, capture) = (program_name(&command), command.stdout);
        let (mut finished, start) = self.context.run_together(command).await?;
        let elapsed_seconds = finished.elapsed().seconds();
        self.record.workload_seconds += elapsed_seconds;
        if asked.huge_pages != placement.huge_pages {
            finished.placement.effective.huge_pages_method = Some(HugePagesMethod::Program);
        }
        let end = ProcessEnd {
            ending: finished.ending,
            elapsed_seconds,
            usage: finished.usage,
            stdout: capture,
            stdout_bytes: finished.stdout_digest.as_ref().map(|digest| digest.bytes),
            stdout_sha256: finished.stdout_digest.as_ref().map(|digest| digest.sha256.clone()),
        };
        self.record_process(
            name,
            &ProcessRecord {
                argv: mask_arguments(&argv),
                env: mask_env(&env),
                end: Some(end),
                start,
                placement: asked,
                ran: &finished.placement,
            },
        )?;
        if capture == Capture::Keep || (!finished.ending.is_success() && !finished.stdout.is_empty()) {
            self.add_artefact(&format!("{name}.stdout"), finished.stdout.clone());
        }
        if !finished.stderr.is_empty() {
            self.add_artefact(&format!("{name}.stderr"), finished.stderr.clone());
        }
        self.record_placement_differences(&program, &placement, &finished.placement);
        Ok(finished)
    }

    /// Cuts what is recorded of a process's standard output to its beginning where the run has no room for all of it.
    pub(crate) fn cap_stdout(&mut self, name: &str) {
        let (file, room) = (format!("{name}.stdout"), self.stdout_limit.0);
        let output = self.record.artefacts.iter_mut().find(|(name, _)| *name == file);
        let Some((_, bytes)) = output.filter(|(_, bytes)| bytes.len() as u64 > room && bytes.len() > STDOUT_HEAD)
        else {
            return;
        };
        let [head, all] =
            [STDOUT_HEAD, bytes.len()].map(|bytes| Quantity { value: bytes as f64, unit: "B" }.to_string());
        bytes.truncate(STDOUT_HEAD);
        self.add_finding(format!(
            "the first {head} of {all} of standard output are recorded: more than `max-stdout` would be recorded in the run"
        ));
    }

    /// Keeps how a server runs, as `NAME.process.json`.
    pub async fn record_service(&mut self, name: &str, service: &RunningService) -> Result<(), Failure> {
        let ran = service.inspect().await.map_err(worker_failure)?;
        let RunningService { argv, env, placement, .. } = service;
        let shown = mask_arguments(argv);
        self.record_process(
            name,
            &ProcessRecord { argv: shown, env: mask_env(env), end: None, start: None, placement, ran: &ran },
        )?;
        self.record_placement_differences(argv.first().map_or(name, |program| base_name(program)), placement, &ran);
        Ok(())
    }

    fn record_process(&mut self, name: &str, kept: &ProcessRecord<'_>) -> Result<(), Failure> {
        let json = serde_json::to_vec_pretty(kept).map_err(|error| Failure::crashed(error.to_string()))?;
        self.add_artefact(&format!("{name}.process.json"), json);
        Ok(())
    }

    fn record_placement_differences(&mut self, program: &str, asked: &Placement, ran: &PlacementReport) {
        for difference in ran.effective.differences(asked).iter().chain(&ran.escapes) {
            self.add_finding(format!("{program}: {difference}"));
        }
    }

    /// Takes apart into the site and what was left.
    pub fn into_parts(self) -> (WorkerContext, AttemptRecord) {
        (self.context, self.record)
    }
}

fn mask_env(env: &[(String, String)]) -> Vec<(&str, String)> {
    env.iter().map(|(name, value)| (name.as_str(), mask_value(name, value))).collect()
}

/// Short name of a command, for messages.
pub(crate) fn program_name(command: &Command) -> String {
    let name = command.argv.first().map_or("", |program| base_name(program)).to_owned();
    match command.argv.get(1..3) {
        Some([exec, kernel]) if exec == "exec" => kernel.clone(),
        _ => name,
    }
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// A process that did not succeed, with the last that it said.
pub(crate) fn check_success(program: &str, finished: &ProcessOutput) -> Result<(), Failure> {
    match finished.ending {
        ending if ending.is_success() => Ok(()),
        ExitReason::TimedOut { limit: after } => Err(Failure::Timeout { after }),
        // What it wrote is no reason for its end.
        ending @ ExitReason::TooMuchOutput { .. } => {
            Err(Failure::crashed(format!("{program}: {ending}, the most that is kept")))
        }
        ending => {
            let line = [&finished.stderr, &finished.stdout].into_iter().find_map(|stream| last_line(stream));
            let reason = line.map(|line| format!(": {line}")).unwrap_or_default();
            Err(Failure::crashed(format!("{program}: {ending}{reason}")))
        }
    }
}

/// The last line of a stream that is not empty, for a message; none where it is no text.
fn last_line(stream: &[u8]) -> Option<String> {
    let mut lines = stream.split(|byte| *byte == b'\n').rev().map(<[u8]>::trim_ascii);
    let line = std::str::from_utf8(lines.find(|line| !line.is_empty())?).ok()?;
    let line: String = line.chars().filter(|letter| !letter.is_control()).take(300).collect();
    (!line.is_empty()).then_some(line)
}

/// Converts a worker's error into the failure of an attempt.
pub fn worker_failure(error: WorkerError) -> Failure {
    match error {
        WorkerError::Lost { worker, why } => Failure::Lost { worker, why },
        other => Failure::refused(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_stream_is_text_or_nothing() {
        assert_eq!(last_line(b"one\ntwo \n\n").as_deref(), Some("two"));
        assert_eq!(last_line("größer\x1b[0m\r\n".as_bytes()).as_deref(), Some("größer[0m"));
        assert_eq!(last_line(b"error: no space\n\x1f\x8b\x08\xff\xfe"), None);
        assert_eq!(last_line(&[0; 100]), None);
        assert_eq!(last_line(b""), None);
    }
}

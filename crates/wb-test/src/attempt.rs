//! Context of a test on a worker, and one attempt at a sample.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::watch;
use wb_agent::{
    AgentSession, Capture, Command, ExitReason, PlacementReport, Process, ProcessOutput, ProcessStart, TeardownGroup,
    Worker,
};
use wb_model::secrets::{mask_arguments, mask_value};
use wb_model::{AttemptPurpose, Bytes, Facts, Nanos, Placement, Quantity, Roles, Sha256, WorkerName};
use wb_sys::process::{HugePagesMethod, ResourceUsage};

use crate::Failure;
use crate::start_barrier::BarrierSlot;

/// Bytes of standard output that are recorded where all of it would exceed the run's limit.
const STDOUT_HEAD: usize = 64 << 10;

/// Processes, facts, placement and limits of a test on one worker; processes are killed when it is dropped.
#[derive(Debug)]
pub struct WorkerContext {
    /// Owns the processes and the private folder.
    pub group: TeardownGroup,
    /// This worker measures, or serves one that does.
    pub roles: Roles,
    /// The other workers of this cell.
    pub peers: Vec<WorkerContext>,
    /// Address at which other workers reach this one, if configured.
    pub address: Option<String>,
    /// Only if several workers measure at the same time.
    pub barrier_slot: Option<BarrierSlot>,
    pub facts: Arc<Facts>,
    pub placement: Placement,
    /// Of each process and wait.
    pub limit: Nanos,
    /// Becomes true when the user cancels.
    pub cancel: watch::Receiver<bool>,
}

impl WorkerContext {
    /// Creates the context of a worker that needs no other workers.
    pub fn new(
        group: TeardownGroup,
        facts: Arc<Facts>,
        placement: Placement,
        limit: Nanos,
        cancel: watch::Receiver<bool>,
    ) -> Self {
        let roles = Roles { worker: group.worker().name().clone(), servers: Vec::new() };
        Self { group, roles, peers: Vec::new(), address: None, barrier_slot: None, facts, placement, limit, cancel }
    }

    pub fn worker(&self) -> &Worker {
        self.group.worker()
    }

    /// Context of its `number`th server: the worker itself, unless the roles name another one.
    pub fn server(&self, number: usize) -> &Self {
        let name = self.roles.servers.get(number);
        self.peers.iter().find(|other| Some(other.worker().name()) == name).unwrap_or(self)
    }

    /// Path of a file in the worker's private folder.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.group.folder())
    }

    pub fn command<A: Into<String>>(&self, argv: impl IntoIterator<Item = A>) -> Command {
        Command::new(argv).placement(self.placement.clone())
    }

    /// Starts a process without waiting for its end.
    pub async fn start(&self, command: Command) -> Result<Process, Failure> {
        self.group.spawn(command).await.map_err(Failure::from)
    }

    /// Starts a server that measured processes connect to. It may print any amount of output.
    pub async fn start_service(&self, command: Command) -> Result<RunningService, Failure> {
        let command = command.cut_output();
        let (argv, env, placement) = (command.argv.clone(), command.env.clone(), command.placement.clone());
        Ok(RunningService { process: self.start(command).await?, argv, env, placement })
    }

    /// Runs a process to its end, whether it succeeds or not.
    pub async fn run_to_end(&self, command: Command) -> Result<ProcessOutput, Failure> {
        let process = self.start(command).await?;
        self.wait(&process).await
    }

    /// Like `run_to_end`, but starts with the processes of the other workers; returns the start time, if any.
    async fn run_together(&self, command: Command) -> Result<(ProcessOutput, Option<ProcessStart>), Failure> {
        let Some(slot) = &self.barrier_slot else { return Ok((self.run_to_end(command).await?, None)) };
        let process = Arc::new(self.group.spawn_suspended(command).await?);
        let start = self.until_cancelled(slot.start(process.clone())).await??;
        Ok((self.wait(&process).await?, Some(start)))
    }

    async fn wait(&self, process: &Process) -> Result<ProcessOutput, Failure> {
        self.until_cancelled(process.wait(Some(self.limit))).await?.map_err(Failure::from)
    }

    /// Runs a process that has to succeed, and returns its standard output.
    pub async fn run(&self, command: Command) -> Result<Vec<u8>, Failure> {
        let program = program_name(&command);
        let finished = self.run_to_end(command).await?;
        check_success(&program, &finished)?;
        Ok(finished.stdout)
    }

    pub async fn until_cancelled<T>(&self, future: impl Future<Output = T>) -> Result<T, Failure> {
        let mut cancel = self.cancel.clone();
        let cancelled = async move {
            if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = cancelled => Err(Failure::Cancelled),
            value = future => Ok(value),
        }
    }

    /// Calls `attempt` every 5 ms until it returns a value or the time limit is reached. `name` is for messages.
    pub async fn poll_until<F: Future<Output = Option<T>>, T>(
        &self,
        name: &str,
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
        self.until_cancelled(timed).await?.map_err(|_| Failure::crashed(format!("{name} not ready within {limit}")))
    }

    pub async fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.worker().get(path, Bytes(1 << 30)).await.map_err(Failure::from)
    }

    pub async fn put(&self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.worker().put(path, bytes, 0o600).await.map_err(Failure::from)
    }
}

/// One attempt at a sample.
#[derive(Debug)]
pub struct Attempt {
    pub context: WorkerContext,
    pub purpose: AttemptPurpose,
    /// Index among the samples of the same purpose.
    pub sample: u32,
    /// Of the measured part.
    pub min_time: Nanos,
    /// Work of earlier samples of this cell, in the test's own unit, to be repeated; none for the first sample.
    pub work: Option<u64>,
    /// Bytes of standard output that may still be recorded in the run.
    pub stdout_limit: Bytes,
    pub record: AttemptRecord,
}

/// Results of an attempt: artefacts, work, run time, findings and interference from outside.
#[derive(Debug, Default)]
pub struct AttemptRecord {
    pub artefacts: Vec<(String, Vec<u8>)>,
    pub work: Option<u64>,
    /// Total run time of the measured processes in seconds. It includes their start, filling of memory, calibration and
    /// checks, so it is not the measured time.
    pub workload_seconds: f64,
    /// A sentence each.
    pub findings: Vec<String>,
    /// Influences that make a sample incomparable, a sentence each.
    pub disturbances: Vec<String>,
    /// Runs of other controllers that were active meanwhile, by machine.
    pub other_runs: BTreeSet<(WorkerName, AgentSession)>,
}

/// Content of NAME.process.json: how a process was started, how it ended, what it used.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ProcessRecord<'a> {
    /// With secrets masked, like the variables.
    argv: Vec<String>,
    env: Vec<(&'a str, String)>,
    /// Only for a process that has ended.
    #[serde(flatten)]
    end: Option<ProcessEnd>,
    /// How late the process started, and by which clock; only if several were started together.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<ProcessStart>,
    /// That the cell requests.
    placement: &'a Placement,
    #[serde(flatten)]
    process_state: &'a PlacementReport,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ProcessEnd {
    ending: ExitReason,
    elapsed_seconds: f64,
    usage: ResourceUsage,
    /// Names of descendants that were still running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outlived_by: Vec<String>,
    stdout: Capture,
    /// Of standard output, unless it was discarded; with the hash it shows whether the output differs between samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_sha256: Option<Sha256>,
}

/// A running server of a measured process; it is recorded like the measured process.
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
    pub fn new(
        context: WorkerContext,
        purpose: AttemptPurpose,
        sample: u32,
        min_time: Nanos,
        work: Option<u64>,
    ) -> Self {
        let stdout_limit = Bytes(u64::MAX);
        Self { context, purpose, sample, min_time, work, stdout_limit, record: AttemptRecord::default() }
    }

    pub fn add_artefact(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.record.artefacts.push((name.to_owned(), bytes.into()));
    }

    /// Renames the artefacts of a process, `NAME.…`; returns whether there are any.
    pub fn rename_process(&mut self, from: &str, to: &str) -> bool {
        let mut found = false;
        for (name, _) in &mut self.record.artefacts {
            if let Some(suffix) = name.strip_prefix(from).filter(|suffix| suffix.starts_with('.')) {
                *name = format!("{to}{suffix}");
                found = true;
            }
        }
        found
    }

    pub fn remove_artefact(&mut self, name: &str) {
        self.record.artefacts.retain(|(existing, _)| existing != name);
    }

    pub fn add_json(&mut self, name: &str, value: &impl Serialize) -> Result<(), Failure> {
        let json = serde_json::to_vec(value);
        self.add_artefact(name, json.map_err(|error| Failure::refused(format!("cannot record `{name}`: {error}")))?);
        Ok(())
    }

    pub fn record_work(&mut self, work: u64) {
        self.record.work = Some(work);
    }

    /// Adds an observation, in a sentence.
    pub fn add_finding(&mut self, finding: impl Into<String>) {
        self.record.findings.push(finding.into());
    }

    /// Runs a measured process that has to succeed. Even if it fails, records how it ran and what it used as
    /// `NAME.process.json`, its output as `NAME.stdout` (if the command captures it; after a failure at least its end)
    /// and `NAME.stderr`.
    pub async fn run(&mut self, name: &str, command: Command) -> Result<ProcessOutput, Failure> {
        let placement = command.placement.clone();
        self.run_with_placement(name, command, &placement).await
    }

    /// Runs a measured process that applies a part of the cell's placement, `requested`, itself.
    pub async fn run_with_placement(
        &mut self,
        name: &str,
        command: Command,
        requested: &Placement,
    ) -> Result<ProcessOutput, Failure> {
        let program = program_name(&command);
        let finished = self.run_to_end(name, command, requested).await?;
        check_success(&program, &finished)?;
        Ok(finished)
    }

    /// Runs a measured process to its end, whether it succeeds or not, and records what [`Attempt::run`] records.
    pub async fn run_to_end(
        &mut self,
        name: &str,
        command: Command,
        requested: &Placement,
    ) -> Result<ProcessOutput, Failure> {
        let (argv, env, placement) = (command.argv.clone(), command.env.clone(), command.placement.clone());
        let (program, capture) = (program_name(&command), command.stdout);
        let (mut finished, start) = self.context.run_together(command).await?;
        let elapsed_seconds = finished.elapsed().seconds();
        self.record.workload_seconds += elapsed_seconds;
        if requested.huge_pages != placement.huge_pages {
            finished.placement.effective.huge_pages_method = Some(HugePagesMethod::Program);
        }
        let end = ProcessEnd {
            ending: finished.exit_reason,
            elapsed_seconds,
            usage: finished.usage,
            outlived_by: finished.outlived_by.clone(),
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
                placement: requested,
                process_state: &finished.placement,
            },
        )?;
        if capture == Capture::Keep || (!finished.exit_reason.is_success() && !finished.stdout.is_empty()) {
            self.add_artefact(&format!("{name}.stdout"), finished.stdout.clone());
        }
        if !finished.stderr.is_empty() {
            self.add_artefact(&format!("{name}.stderr"), finished.stderr.clone());
        }
        self.record_placement_differences(&program, &placement, &finished.placement);
        Ok(finished)
    }

    /// Truncates the recorded standard output to its beginning if all of it would exceed the run's limit.
    pub fn cap_stdout(&mut self, name: &str) {
        let (file, limit) = (format!("{name}.stdout"), self.stdout_limit.0);
        let output = self.record.artefacts.iter_mut().find(|(name, _)| *name == file);
        let Some((_, bytes)) = output.filter(|(_, bytes)| bytes.len() as u64 > limit && bytes.len() > STDOUT_HEAD)
        else {
            return;
        };
        let [head, all] =
            [STDOUT_HEAD, bytes.len()].map(|bytes| Quantity { value: bytes as f64, unit: "B" }.to_string());
        bytes.truncate(STDOUT_HEAD);
        self.add_finding(format!(
            "standard output truncated to {head} of {all}: limit `max-stdout` of the run reached"
        ));
    }

    /// Records how a server runs, as `NAME.process.json`.
    pub async fn record_service(&mut self, name: &str, service: &RunningService) -> Result<(), Failure> {
        let ran = service.inspect().await?;
        let RunningService { argv, env, placement, .. } = service;
        let masked = mask_arguments(argv);
        self.record_process(
            name,
            &ProcessRecord { argv: masked, env: mask_env(env), end: None, start: None, placement, process_state: &ran },
        )?;
        self.record_placement_differences(argv.first().map_or(name, |program| base_name(program)), placement, &ran);
        Ok(())
    }

    fn record_process(&mut self, name: &str, process: &ProcessRecord<'_>) -> Result<(), Failure> {
        let json = serde_json::to_vec_pretty(process).map_err(|error| Failure::crashed(error.to_string()))?;
        self.add_artefact(&format!("{name}.process.json"), json);
        Ok(())
    }

    fn record_placement_differences(&mut self, program: &str, requested: &Placement, ran: &PlacementReport) {
        for difference in ran.effective.differences(requested).iter().chain(&ran.escapes) {
            self.add_finding(format!("{program}: {difference}"));
        }
    }

    pub fn into_parts(self) -> (WorkerContext, AttemptRecord) {
        (self.context, self.record)
    }
}

fn mask_env(env: &[(String, String)]) -> Vec<(&str, String)> {
    env.iter().map(|(name, value)| (name.as_str(), mask_value(name, value))).collect()
}

pub fn program_name(command: &Command) -> String {
    let name = command.argv.first().map_or("", |program| base_name(program)).to_owned();
    match command.argv.get(1..3) {
        Some([exec, kernel]) if exec == "exec" => kernel.clone(),
        _ => name,
    }
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns an error with the last line of output if a process did not succeed.
pub fn check_success(program: &str, finished: &ProcessOutput) -> Result<(), Failure> {
    match finished.exit_reason {
        ending if ending.is_success() => Ok(()),
        ExitReason::TimedOut { limit: after } => Err(Failure::Timeout { after }),
        // Its output does not explain why it ended.
        ending @ ExitReason::TooMuchOutput { .. } => {
            Err(Failure::crashed(format!("{program}: {ending}, the limit of captured output")))
        }
        ending => {
            let line = [&finished.stderr, &finished.stdout].into_iter().find_map(|stream| last_line(stream));
            let reason = line.map(|line| format!(": {line}")).unwrap_or_default();
            Err(Failure::crashed(format!("{program}: {ending}{reason}")))
        }
    }
}

/// Last line that is not empty; none if it is not UTF-8.
fn last_line(stream: &[u8]) -> Option<String> {
    let mut lines = stream.split(|byte| *byte == b'\n').rev().map(<[u8]>::trim_ascii);
    let line = std::str::from_utf8(lines.find(|line| !line.is_empty())?).ok()?;
    let line: String = line.chars().filter(|letter| !letter.is_control()).take(300).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_of_a_stream_is_text_or_none() {
        assert_eq!(last_line(b"one\ntwo \n\n").as_deref(), Some("two"));
        assert_eq!(last_line("größer\x1b[0m\r\n".as_bytes()).as_deref(), Some("größer[0m"));
        assert_eq!(last_line(b"error: no space\n\x1f\x8b\x08\xff\xfe"), None);
        assert_eq!(last_line(&[0; 100]), None);
        assert_eq!(last_line(b""), None);
    }
}

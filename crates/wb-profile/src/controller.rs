//! Programs on this machine, the controller: run for the hosts and not measured.

use std::cell::RefCell;
use std::path::Path;

use wb_agent::{Command, ExitReason, Group, Process, Stream, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};

/// The most that is kept of what a program says.
const OUTPUT: Bytes = Bytes(64 << 20);
/// So much of what a program said last is told when it fails.
const LAST_LINES: usize = 5;

/// This machine, as a place to run programs on. They have an agent of their own, which ends them and all that they started
/// when this program ends, however it does.
#[derive(Debug)]
pub struct Controller {
    worker: Worker,
}

/// A program to be run here: with the variables and in the folder of this process.
#[derive(Debug, Clone, Default)]
pub struct ControllerProgram {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// More variables.
    pub env: Vec<(String, String)>,
    /// Its standard input.
    pub stdin: Vec<u8>,
}

/// A program that has ended.
#[derive(Debug)]
pub struct ProgramOutput {
    /// How.
    pub ending: ExitReason,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
    /// How long it ran.
    pub elapsed: Nanos,
}

impl Controller {
    /// Starts its agent: `program agent`.
    ///
    /// # Errors
    /// When that cannot be started.
    pub async fn start(program: &Path) -> Result<Self, WorkerError> {
        Ok(Self { worker: Worker::local_named(WorkerName::local(), program).await? })
    }

    /// The handle on this machine.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Runs a program to its end, or up to a limit; `hear` is given each line of its standard output as it comes.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn run(
        &self,
        program: ControllerProgram,
        limit: Nanos,
        hear: impl FnMut(&str),
    ) -> Result<ProgramOutput, WorkerError> {
        let group = self.worker.new_group().await?;
        let ended = self.run_in(&group, program, limit, hear).await;
        group.teardown().await?;
        ended
    }

    /// The same in a group that has been made, for what needs its folder.
    pub(crate) async fn run_in(
        &self,
        group: &Group,
        program: ControllerProgram,
        limit: Nanos,
        hear: impl FnMut(&str),
    ) -> Result<ProgramOutput, WorkerError> {
        let ControllerProgram { argv, env, stdin } = program;
        let own =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut command = Command::new(argv).stdin(stdin).output_limit(OUTPUT);
        // An agent's processes speak C, in which some programs refuse to read anything else.
        let locale = [("LC_ALL".to_owned(), "C.UTF-8".to_owned())];
        command.env = locale.into_iter().chain(own).chain(env).collect();
        command.cwd = std::env::current_dir().ok().and_then(|folder| Some(folder.to_str()?.to_owned()));
        let process = group.spawn(command).await?;
        let (finished, ()) = tokio::join!(process.wait(Some(limit)), forward_lines(&process, limit, hear));
        let finished = finished?;
        let elapsed = finished.elapsed();
        Ok(ProgramOutput { ending: finished.ending, stdout: finished.stdout, stderr: finished.stderr, elapsed })
    }

    /// Ends its agent.
    ///
    /// # Errors
    /// When that has ended before.
    pub async fn close(self) -> Result<(), WorkerError> {
        self.worker.close().await
    }
}

/// Hands on the lines of a process as they come.
async fn forward_lines(process: &Process, limit: Nanos, hear: impl FnMut(&str)) {
    let hear = RefCell::new(hear);
    let none = |line: &str| {
        hear.borrow_mut()(line);
        false
    };
    // Whoever waits for its end is told what became of the process.
    let _ = process.wait_for_line(Stream::Stdout, limit, none).await;
}

impl ProgramOutput {
    /// What went wrong with it, if anything: how it ended, and the last that it said.
    ///
    /// # Errors
    /// With that.
    pub fn result(&self) -> Result<(), String> {
        if self.ending.is_success() {
            return Ok(());
        }
        let said = [&self.stderr, &self.stdout].into_iter().map(|stream| last_lines(stream));
        let said = said.into_iter().find(|said| !said.is_empty());
        Err(said.map_or_else(|| self.ending.to_string(), |said| format!("{}: {said}", self.ending)))
    }

    /// Everything that it said, under a line of what it was.
    pub fn log(&self, what: &str) -> Vec<u8> {
        log(what, &self.ending, &self.stdout, &self.stderr)
    }
}

/// Everything that a program said, under a line of what it was.
pub(crate) fn log(what: &str, ending: &ExitReason, stdout: &[u8], stderr: &[u8]) -> Vec<u8> {
    let mut log = format!("{what}\n{ending}\n").into_bytes();
    for (name, stream) in [("standard output", stdout), ("standard error", stderr)] {
        if !stream.is_empty() {
            log.extend(format!("\n{name}:\n").into_bytes());
            log.extend(stream);
        }
    }
    log
}

/// The end of what was said, in a line.
pub(crate) fn last_lines(stream: &[u8]) -> String {
    let text = String::from_utf8_lossy(stream);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.join(" | ").chars().take(600).collect()
}

//! Runs programs on this machine, the controller, on behalf of the hosts; they are not measured.

use std::cell::RefCell;
use std::path::Path;

use wb_agent::{Command, ExitReason, OutputStream, Process, TeardownGroup, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};

/// Maximum size of what is kept of each output stream of a program.
const MAX_OUTPUT: Bytes = Bytes(64 << 20);
/// Number of last output lines quoted when a program fails.
const LAST_LINES: usize = 5;

/// This machine, as a place to run programs. They have an agent of their own, which ends them and their descendants
/// when this program ends for any reason.
#[derive(Debug)]
pub struct Controller {
    worker: Worker,
}

/// A program to run on the controller, with the environment and working directory of this process.
#[derive(Debug, Clone, Default)]
pub struct ControllerProgram {
    pub argv: Vec<String>,
    /// Additional environment variables.
    pub env: Vec<(String, String)>,
    pub stdin: Vec<u8>,
}

#[derive(Debug)]
pub struct ProgramOutput {
    pub ending: ExitReason,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub elapsed: Nanos,
}

impl Controller {
    /// Starts its agent: `program agent`.
    pub async fn start(program: &Path) -> Result<Self, WorkerError> {
        // Whatever ends, limits and records the output of processes on hosts does the same here, also when this program
        // is killed.
        Ok(Self { worker: Worker::local_named(WorkerName::local(), program).await? })
    }

    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Runs a program to its end, or up to a limit; `on_line` is called with each line of its standard output as it
    /// arrives.
    pub async fn run(
        &self,
        program: ControllerProgram,
        limit: Nanos,
        on_line: impl FnMut(&str),
    ) -> Result<ProgramOutput, WorkerError> {
        let group = self.worker.new_group().await?;
        let ended = self.run_in(&group, program, limit, on_line).await;
        group.close().await?;
        ended
    }

    /// Like [`Controller::run`], but in an existing group, for callers that need the group's folder.
    pub(crate) async fn run_in(
        &self,
        group: &TeardownGroup,
        program: ControllerProgram,
        limit: Nanos,
        on_line: impl FnMut(&str),
    ) -> Result<ProgramOutput, WorkerError> {
        let ControllerProgram { argv, env, stdin } = program;
        let inherited =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut command = Command::new(argv).stdin(stdin).output_limit(MAX_OUTPUT).cut_output();
        // An agent's processes have the locale C, in which some programs refuse to read anything but ASCII.
        let locale = [("LC_ALL".to_owned(), "C.UTF-8".to_owned())];
        command.env = locale.into_iter().chain(inherited).chain(env).collect();
        command.cwd = std::env::current_dir().ok().and_then(|folder| Some(folder.to_str()?.to_owned()));
        let process = group.spawn(command).await?;
        let (finished, ()) = tokio::join!(process.wait(Some(limit)), forward_lines(&process, limit, on_line));
        let finished = finished?;
        let elapsed = finished.elapsed();
        Ok(ProgramOutput { ending: finished.exit_reason, stdout: finished.stdout, stderr: finished.stderr, elapsed })
    }

    pub async fn close(self) -> Result<(), WorkerError> {
        self.worker.close().await
    }
}

async fn forward_lines(process: &Process, limit: Nanos, on_line: impl FnMut(&str)) {
    let on_line = RefCell::new(on_line);
    let forward = |line: &str| {
        on_line.borrow_mut()(line);
        false
    };
    // Errors of the process are reported to the caller that waits for its end.
    let _ = process.wait_for_line(OutputStream::Stdout, limit, forward).await;
}

impl ProgramOutput {
    /// Fails unless the program succeeded, with how it ended and its last output.
    pub fn result(&self) -> Result<(), String> {
        if self.ending.is_success() {
            return Ok(());
        }
        let streams = [&self.stderr, &self.stdout].into_iter().map(|stream| last_lines(stream));
        let output = streams.into_iter().find(|output| !output.is_empty());
        Err(output.map_or_else(|| self.ending.to_string(), |output| format!("{}: {output}", self.ending)))
    }

    pub fn log(&self, title: &str) -> Vec<u8> {
        log(title, &self.ending, &self.stdout, &self.stderr)
    }
}

/// A program's complete output under a title line.
pub(crate) fn log(title: &str, ending: &ExitReason, stdout: &[u8], stderr: &[u8]) -> Vec<u8> {
    let mut log = format!("{title}\n{ending}\n").into_bytes();
    for (name, stream) in [("standard output", stdout), ("standard error", stderr)] {
        if !stream.is_empty() {
            log.extend(format!("\n{name}:\n").into_bytes());
            log.extend(stream);
        }
    }
    log
}

/// The last lines of an output, joined into one.
pub(crate) fn last_lines(stream: &[u8]) -> String {
    let text = String::from_utf8_lossy(stream);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.join(" | ").chars().take(600).collect()
}

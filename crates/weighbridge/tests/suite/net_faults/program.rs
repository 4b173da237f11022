//! Programs on hosts: started, observed, and killed after the test.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::result::ProgramResult;
use crate::lab::KillOnDrop;

/// Time limit after which a program is considered to hang.
const PATIENCE: Duration = Duration::from_secs(45);

/// A running program.
pub(crate) struct Program {
    child: KillOnDrop,
    out: PathBuf,
    err: PathBuf,
}

impl Program {
    /// Starts a program with its output redirected to files, so that it never blocks on a pipe.
    pub(crate) fn start(mut command: Command, output: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let (out, err) =
            (output.with_extension(format!("{number}.out")), output.with_extension(format!("{number}.err")));
        let child = command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap()).spawn().unwrap();
        Self { child: KillOnDrop(child), out, err }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Its standard error so far.
    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// Waits until its standard error contains this.
    pub(crate) fn wait_for_stderr(&self, words: &str) {
        eventually(&format!("standard error contains `{words}`"), || match self.stderr() {
            stderr if stderr.contains(words) => Ok(()),
            stderr => Err(stderr),
        });
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.0), signal).unwrap();
    }

    /// Waits for its end and returns the result.
    pub(crate) fn finish(mut self) -> ProgramResult {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                let out = std::fs::read_to_string(&self.out).unwrap();
                return ProgramResult { code: status.code(), out, err: self.stderr() };
            }
            assert!(begin.elapsed() < PATIENCE, "the program hangs; standard error: {}", self.stderr());
            sleep(Duration::from_millis(5));
        }
    }
}

/// Waits until a condition holds; panics with its error after a time limit.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> Result<(), String>) {
    let begin = Instant::now();
    while let Err(error) = condition() {
        assert!(begin.elapsed() < PATIENCE, "timeout: {what}: {error}");
        sleep(Duration::from_millis(10));
    }
}

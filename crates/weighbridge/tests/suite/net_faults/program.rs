//! Programs at hosts: started, looked after, and ended with the test.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::result::Ran;

/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(45);

/// A program that was started.
pub(crate) struct Program {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Program {
    /// Starts it; what it says goes to files, so that it never waits for a reader.
    pub(crate) fn start(mut command: Command, output: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let (out, err) =
            (output.with_extension(format!("{number}.out")), output.with_extension(format!("{number}.err")));
        let child = command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap()).spawn().unwrap();
        Self { child, out, err }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said to people.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// Waits until it has said this.
    pub(crate) fn says(&self, words: &str) {
        eventually(&format!("it says `{words}`"), || match self.said() {
            said if said.contains(words) => Ok(()),
            said => Err(said),
        });
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid(self.pid()), signal).unwrap();
    }

    /// Its end.
    pub(crate) fn finish(mut self) -> Ran {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let out = std::fs::read_to_string(&self.out).unwrap();
                return Ran { code: status.code(), out, err: self.said() };
            }
            assert!(begin.elapsed() < PATIENCE, "it hangs; it said: {}", self.said());
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends a process that is not a child of this one.
pub(crate) fn kill(process: u32) {
    // It may have ended meanwhile.
    let _ = kill_process(pid(process), Signal::KILL);
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number as i32).unwrap()
}

/// Waits until something is so; panics with what is the matter where it does not become so.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> Result<(), String>) {
    let begin = Instant::now();
    while let Err(matter) = is_so() {
        assert!(begin.elapsed() < PATIENCE, "not so: {what}; but: {matter}");
        sleep(Duration::from_millis(10));
    }
}

//! Servers, and checks that sessions leave nothing behind in them.

use std::{fs::read_dir, thread::sleep, time::Duration};

use rustix::process::Signal;

use super::{
    program::{Program, eventually},
    result::ProgramResult,
};

/// A server that is ready for clients.
pub(crate) struct Server {
    program: Program,
    /// Number of descriptors, and the names of threads, when no session runs.
    descriptors: usize,
    threads: Vec<String>,
}

impl Server {
    /// Waits until the server is ready.
    pub(crate) fn ready(program: Program) -> Self {
        program.wait_for_stderr("serving at");
        let mut this = Self { program, descriptors: 0, threads: Vec::new() };
        // It opens descriptors for signals just after printing that line.
        while this.descriptors != this.count_descriptors() || this.descriptors == 0 {
            this.descriptors = this.count_descriptors();
            sleep(Duration::from_millis(30));
        }
        this.threads = this.threads();
        this
    }

    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    pub(crate) fn stderr(&self) -> String {
        self.program.stderr()
    }

    pub(crate) fn wait_for_stderr(&self, words: &str) {
        self.program.wait_for_stderr(words);
    }

    /// Bytes that its host has received.
    pub(crate) fn received(&self) -> u64 {
        let devices = std::fs::read_to_string(format!("/proc/{}/net/dev", self.pid())).unwrap();
        let mut counts = devices.lines().filter_map(|line| line.trim().strip_prefix("eth0:"));
        counts.next().unwrap().split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Waits until its host has received this many bytes.
    pub(crate) fn receives(&self, bytes: u64) {
        eventually(&format!("{bytes} bytes received"), || {
            let received = self.received();
            if received >= bytes { Ok(()) } else { Err(format!("{received} received so far")) }
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }

    /// Terminates it and returns the result.
    pub(crate) fn end(self) -> ProgramResult {
        self.program.signal(Signal::TERM);
        self.program.finish()
    }

    /// Waits until nothing of a session is left: no descriptor, thread or process, not even a zombie.
    pub(crate) fn assert_unchanged(&self) {
        eventually("nothing of the session is left in the server", || {
            let left = (self.count_descriptors().saturating_sub(self.descriptors), self.threads(), self.children());
            if left == (0, self.threads.clone(), Vec::new()) {
                Ok(())
            } else {
                Err(format!("{left:?}; standard error: {}", self.stderr()))
            }
        });
    }

    /// Number of descriptors, without the source of random numbers that a library opens once.
    fn count_descriptors(&self) -> usize {
        let entries = read_dir(format!("/proc/{}/fd", self.pid())).into_iter().flatten().flatten();
        let targets = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets.filter(|target| target.as_os_str() != "/dev/urandom").count()
    }

    /// The names of threads other than the first.
    fn threads(&self) -> Vec<String> {
        let tasks = read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten().flatten();
        let others = tasks.filter(|task| task.file_name().to_string_lossy() != self.pid().to_string());
        others.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect()
    }

    fn children(&self) -> Vec<String> {
        let processes = read_dir("/proc").unwrap().flatten();
        let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
        let parent =
            |stat: &str| stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        stats.filter(|stat| parent(stat) == Some(self.pid())).collect()
    }
}

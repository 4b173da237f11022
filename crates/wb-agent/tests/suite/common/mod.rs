//! Shared test helpers: a temporary worker, and checks that nothing is left of it.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wb_agent::{Command, ProcessOutput, Worker};

pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_wb-test-agent");

/// Runs a test against a worker, closes it, and checks that nothing is left.
pub(crate) fn with_worker<F: Future<Output = ()>>(test: impl FnOnce(Worker) -> F) {
    run(async {
        let worker = Worker::local(Path::new(AGENT)).await.unwrap();
        let agent = worker.agent_pid().unwrap();
        test(worker.clone()).await;
        worker.close().await.unwrap();
        nothing_is_left_of(agent);
    });
}

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// Runs one command to its end.
pub(crate) async fn finish(worker: &Worker, command: Command) -> ProcessOutput {
    let group = worker.new_group().await.unwrap();
    let finished = group.spawn(command).await.unwrap().wait(None).await.unwrap();
    group.close().await.unwrap();
    finished
}

pub(crate) fn sh(script: &str) -> Command {
    Command::new(["sh", "-c", script])
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Asserts that no process, folder or cgroup carries this agent's name.
pub(crate) fn nothing_is_left_of(agent: u32) {
    let name = format!("weighbridge-{agent:08}-");
    eventually("processes", || !alive(agent) && marked(&name).is_empty());
    eventually("folders", || named(&std::env::temp_dir(), &name).is_empty());
    for base in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/cpuacct"] {
        assert!(named(Path::new(base), &name).is_empty(), "{base}");
    }
}

/// Lists the processes that have a group name with this prefix in their environment.
pub(crate) fn marked(name: &str) -> Vec<u32> {
    let marker = format!("WEIGHBRIDGE_GROUP={name}");
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).split('\0').any(|line| line.starts_with(&marker))
    })
    .collect()
}

/// Whether a process exists and is not a zombie.
pub(crate) fn alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

pub(crate) fn named(folder: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries
        .filter(|path| path.file_name().is_some_and(|file_name| file_name.to_string_lossy().starts_with(name)))
        .collect()
}

/// Waits up to a minute, for busy machines, for a condition.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! Sessions with agents on other machines: exclusive use, idle timeout, clock offset and synchronised start.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::common::{AGENT, alive, eventually, marked, nothing_is_left_of, run, sh, with_worker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::Child;
use wb_agent::{Command, Controller, SessionConfig, Worker, WorkerError, start_synchronized};
use wb_model::{Nanos, WorkerName};

fn start() -> Child {
    let mut agent = tokio::process::Command::new(AGENT);
    agent.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
}

/// Starts an agent and connects to it as over ssh: only keepalives show that it is alive.
async fn far(config: SessionConfig) -> Result<(Worker, Child), WorkerError> {
    let mut agent = start();
    let (input, output) = (agent.stdout.take().unwrap(), agent.stdin.take().unwrap());
    Ok((over(input, output, config).await?, agent))
}

async fn over(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    config: SessionConfig,
) -> Result<Worker, WorkerError> {
    Worker::from_streams(WorkerName::new("far").unwrap(), input, output, config, std::future::ready(None)).await
}

/// A reader that counts successful reads.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicUsize>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

fn idle_timeout(milliseconds: u64) -> SessionConfig {
    SessionConfig { idle_timeout: Some(Nanos(milliseconds * 1_000_000)), ..SessionConfig::default() }
}

#[test]
fn an_agent_exits_with_its_processes_after_the_idle_timeout() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (worker, agent, _group) = runtime.block_on(async {
        let (worker, agent) = far(idle_timeout(2_000)).await.unwrap();
        let group = worker.new_group().await.unwrap();
        group.spawn(Command::new(["sleep", "1000"])).await.unwrap();
        (worker, agent, group)
    });
    let pid = agent.id().unwrap();
    assert_eq!(marked(&format!("weighbridge-{pid:08}-")).len(), 1);
    // From here on nobody drives the runtime: the pipe stays open, and no keepalives are sent.
    nothing_is_left_of(pid);
    assert!(runtime.block_on(worker.facts()).unwrap_err().is_lost());
}

#[test]
fn an_agent_that_sends_nothing_is_lost() {
    run(async {
        let (worker, agent) = far(idle_timeout(2_000)).await.unwrap();
        let pid = agent.id().unwrap().to_string();
        assert!(Program::new("kill").args(["-STOP", &pid]).status().unwrap().success());
        let error = worker.facts().await.unwrap_err();
        assert_eq!(error.to_string(), "the worker `far` is lost: no data received for 2s");
        assert!(Program::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    });
}

#[test]
fn keepalives_are_sent_while_the_connection_is_idle() {
    run(async {
        let mut agent = start();
        let count = Arc::new(AtomicUsize::new(0));
        let input = Counted { inner: agent.stdout.take().unwrap(), count: count.clone() };
        let worker = over(input, agent.stdin.take().unwrap(), idle_timeout(1_000)).await.unwrap();
        // Each keepalive is answered, in one or more reads, and six are sent per idle timeout.
        let handshake_reads = count.load(Ordering::Relaxed);
        let replies = async {
            while count.load(Ordering::Relaxed) < handshake_reads + 36 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), replies).await.unwrap();
        worker.facts().await.unwrap();
        let pid = agent.id().unwrap();
        worker.close().await.unwrap();
        nothing_is_left_of(pid);
    });
}

#[test]
fn a_second_controller_is_refused_with_the_name_of_the_first() {
    run(async {
        let config = |user: &str| SessionConfig {
            exclusive: Some(Controller { user: user.to_owned(), pid: 4711 }),
            ..SessionConfig::default()
        };
        let (first, agent) = far(config("anna@desk")).await.unwrap();
        let refused = far(config("bert@lap")).await.unwrap_err();
        let WorkerError::InUse { holder: Some(holder), .. } = &refused else { panic!("{refused}") };
        assert_eq!((holder.controller.pid, Some(holder.agent)), (4711, agent.id()));
        let message = refused.to_string();
        assert!(message.starts_with("`far` is in use by user root (agent "), "{message}");

        let pid = agent.id().unwrap();
        assert!(Program::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
        eventually("the agent's end", || !alive(pid));
        drop(first);
        let (second, _agent) = far(config("bert@lap")).await.unwrap();
        second.close().await.unwrap();
        assert!(!std::path::Path::new("/var/lib/weighbridge/agent.lock").exists());
    });
}

/// Starts an agent with a folder for announcements, as root or as `nobody`.
async fn far_as(nobody: bool, folder: &Path, user: &str) -> Result<(Worker, Child), WorkerError> {
    let mut agent = tokio::process::Command::new(if nobody { "setpriv" } else { AGENT });
    if nobody {
        agent.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(folder.join("binary"));
    }
    agent.arg("agent").env("WEIGHBRIDGE_LOCKS", folder).env("HOME", folder).env_remove("XDG_STATE_HOME");
    let mut agent = agent.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let (input, output) = (agent.stdout.take().unwrap(), agent.stdin.take().unwrap());
    let exclusive = Some(Controller { user: user.to_owned(), pid: 4711 });
    Ok((over(input, output, SessionConfig { exclusive, ..SessionConfig::default() }).await?, agent))
}

#[test]
fn controllers_that_log_in_as_different_users_exclude_each_other() {
    if !rustix::process::geteuid().is_root() {
        wb_test_skip::skip!("only root can be two users");
        return;
    }
    run(async {
        let folder = tempfile::tempdir().unwrap();
        // Written by another process: a child of this one forked meanwhile would keep the file open for writing.
        let script = r#"chmod 1777 "$2" && install -m 755 "$1" "$2/binary""#;
        let path = folder.path().display().to_string();
        assert!(Program::new("sh").args(["-c", script, "sh", AGENT, &path]).status().unwrap().success());
        for (first, second) in [(false, true), (true, false)] {
            let (worker, _agent) = far_as(first, folder.path(), "anna@desk").await.unwrap();
            let refused = far_as(second, folder.path(), "bert@lap").await.unwrap_err().to_string();
            let owner = if first { "nobody" } else { "root" };
            assert!(refused.starts_with(&format!("`far` is in use by user {owner} (agent ")), "{refused}");
            assert!(refused.contains(" here, for process 4711 of anna@desk) since "), "{refused}");
            worker.close().await.unwrap();
            let (worker, _agent) = far_as(second, folder.path(), "bert@lap").await.unwrap();
            worker.close().await.unwrap();
        }
    });
}

#[test]
fn clocks_of_one_machine_have_no_offset() {
    with_worker(|worker| async move {
        let clock = worker.clock_offset().await.unwrap();
        assert!(clock.offset_ns.unsigned_abs() <= clock.error_ns + 1, "{clock:?}");
        assert_eq!(clock.error_ns, clock.rtt.0.div_ceil(2));
    });
}

#[test]
fn held_processes_of_several_workers_start_at_one_time() {
    with_worker(|one| async move {
        with_other(async |other| {
            let (first_group, second_group) = (one.new_group().await.unwrap(), other.new_group().await.unwrap());
            let ready = [
                first_group.spawn_suspended(sh("echo started")).await.unwrap(),
                second_group.spawn_suspended(sh("echo started")).await.unwrap(),
            ];
            let together = start_synchronized(&[&ready[0], &ready[1]]).await.unwrap();
            let mut started = Vec::new();
            for (process, start) in ready.iter().zip(&together.starts) {
                let finished = process.wait(None).await.unwrap();
                assert_eq!(finished.stdout, b"started\n");
                started.push(finished.started_ns - start.delay.0);
            }
            // Both got the same start time, up to the errors of the clock offsets.
            let error: u64 = together.starts.iter().map(|start| start.clock.error_ns).sum();
            assert!(started[0].abs_diff(started[1]) <= error + 2, "{together:?}");
            eprintln!("two processes started within {}", together.skew());
        })
        .await;
    });
}

/// Runs a test with another worker on this machine.
async fn with_other(test: impl AsyncFnOnce(Worker)) {
    let worker = Worker::local(std::path::Path::new(AGENT)).await.unwrap();
    test(worker.clone()).await;
    worker.close().await.unwrap();
}

#[test]
fn a_start_time_in_the_past_starts_at_once_and_reports_the_delay() {
    with_worker(|worker| async move {
        let group = worker.new_group().await.unwrap();
        let process = group.spawn_suspended(sh("exit 3")).await.unwrap();
        let late = process.release_at(1).await.unwrap();
        assert!(late > Nanos(0));
        assert_eq!(process.wait(None).await.unwrap().exit_reason, wb_agent::ExitReason::Exited { status: 3 });
    });
}

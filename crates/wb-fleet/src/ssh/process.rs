use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::inventory::Address;

use super::Ssh;
use super::classify::last_line;

/// Maximum size of the tail of standard error that is kept, in bytes.
const MAX_STDERR: usize = 64 << 10;
/// How long ssh may take to exit after the session is dropped: the agent cleans up meanwhile.
const GRACE: Duration = Duration::from_secs(15);
/// How long standard error may take to end after the exit of ssh; the ssh of a jump host may keep the pipe open.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub(crate) struct SshExit {
    /// Exit status, which is the remote command's unless it is 255; none if ssh was killed.
    pub(crate) status: Option<i32>,
    /// Standard error of ssh and the remote command.
    pub(crate) stderr: String,
}

impl SshExit {
    /// Describes why the worker was lost; none if ssh gives no reason.
    pub(crate) fn describe(&self) -> Option<String> {
        let is_empty = self.stderr.trim().is_empty();
        match self.status {
            Some(255) if !is_empty => Some(format!("its ssh connection ended: {}", last_line(&self.stderr))),
            Some(255) => Some("its agent or its ssh connection was killed".to_owned()),
            Some(0) | None => None,
            Some(_) if is_empty => None,
            Some(_) => {
                let line = last_line(&self.stderr);
                Some(format!("its agent ended: {}", line.strip_prefix("error: ").unwrap_or(&line)))
            }
        }
    }
}

/// A shell on a host. After it is dropped, ssh gets some time to exit and is then killed.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) input: BufReader<ChildStdout>,
    pub(crate) output: ChildStdin,
    pub(crate) process: SshProcess,
}

#[derive(Debug)]
pub(crate) struct SshProcess {
    exit: watch::Receiver<Option<SshExit>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    _drop_sender: oneshot::Sender<()>,
}

impl Session {
    /// Starts ssh in its own process group, so that Ctrl-C on the terminal does not reach it.
    pub(crate) fn start(ssh: &Ssh<'_>, address: &Address) -> std::io::Result<Self> {
        let mut child = ssh
            .shell(address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(output), Some(input), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::Error::other("no pipes"));
        };
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (exit_sender, exit_receiver) = watch::channel(None);
        let (drop_sender, drop_receiver) = oneshot::channel();
        tokio::spawn(supervise(child, errors, stderr.clone(), drop_receiver, exit_sender));
        let end = SshProcess { exit: exit_receiver, stderr, _drop_sender: drop_sender };
        Ok(Self { input: BufReader::new(input), output, process: end })
    }
}

impl SshProcess {
    pub(crate) async fn wait(&mut self) -> SshExit {
        let value = self.exit.wait_for(Option::is_some).await;
        let exit = value.ok().and_then(|exit| exit.clone());
        exit.unwrap_or_else(|| SshExit { status: None, stderr: self.stderr() })
    }

    /// Standard error so far.
    pub(crate) fn stderr(&self) -> String {
        text(&self.stderr)
    }
}

async fn supervise(
    mut child: Child,
    errors: ChildStderr,
    stderr: Arc<Mutex<Vec<u8>>>,
    dropped: oneshot::Receiver<()>,
    exit_sender: watch::Sender<Option<SshExit>>,
) {
    let reader = tokio::spawn(collect_stderr(errors, stderr.clone()));
    let status = tokio::select! {
        status = child.wait() => status,
        // No value is ever sent: the sender is dropped with the session.
        _ = dropped => match timeout(GRACE, child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                let _ = child.start_kill();
                child.wait().await
            }
        },
    };
    let _ = timeout(STDERR_TIMEOUT, reader).await;
    let _ =
        exit_sender.send(Some(SshExit { status: status.ok().and_then(|status| status.code()), stderr: text(&stderr) }));
}

async fn collect_stderr(mut errors: ChildStderr, stderr: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = errors.read(&mut buffer).await {
        let mut tail = stderr.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&buffer[..length]);
        let excess = tail.len().saturating_sub(MAX_STDERR);
        tail.drain(..excess);
    }
}

fn text(stderr: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&stderr.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}

//! One ssh process, from its start to its end.

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

/// What is kept of what ssh says on standard error, in bytes.
const MAX_STDERR: usize = 64 << 10;
/// How long it may take to end once it is not needed any more: the agent puts things in order meanwhile.
const GRACE: Duration = Duration::from_secs(15);
/// How long what it said may take to come once it has ended; a jump host's ssh may keep the pipe open.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

/// ssh has ended.
#[derive(Debug, Clone)]
pub(crate) struct SshExit {
    /// Its exit status, which is the remote command's unless it is 255; none where it was killed.
    pub(crate) status: Option<i32>,
    /// What it and the remote command said on standard error.
    pub(crate) said: String,
}

impl SshExit {
    /// What happened, for whoever reads what a lost worker was lost by.
    pub(crate) fn describe(&self) -> Option<String> {
        let nothing = self.said.trim().is_empty();
        match self.status {
            Some(255) if !nothing => Some(format!("its ssh connection ended: {}", last_line(&self.said))),
            Some(255) => Some("its agent was killed, or its ssh connection".to_owned()),
            Some(0) | None => None,
            Some(_) if nothing => None,
            Some(_) => {
                let line = last_line(&self.said);
                Some(format!("its agent ended: {}", line.strip_prefix("error: ").unwrap_or(&line)))
            }
        }
    }
}

/// A shell on a host. When it is dropped, ssh gets some time to end, and is killed.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) input: BufReader<ChildStdout>,
    pub(crate) output: ChildStdin,
    pub(crate) end: SshProcess,
}

/// What comes of a session's process.
#[derive(Debug)]
pub(crate) struct SshProcess {
    gone: watch::Receiver<Option<SshExit>>,
    said: Arc<Mutex<Vec<u8>>>,
    _needed: oneshot::Sender<()>,
}

impl Session {
    /// Starts ssh. It is in a process group of its own: Ctrl-C on the terminal is not for it.
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
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, gone) = watch::channel(None);
        let (needed, not_needed) = oneshot::channel();
        tokio::spawn(supervise(child, errors, said.clone(), not_needed, tell));
        let end = SshProcess { gone, said, _needed: needed };
        Ok(Self { input: BufReader::new(input), output, end })
    }
}

impl SshProcess {
    /// Waits for it.
    pub(crate) async fn wait(&mut self) -> SshExit {
        let seen = self.gone.wait_for(Option::is_some).await;
        let gone = seen.ok().and_then(|gone| gone.clone());
        gone.unwrap_or_else(|| SshExit { status: None, said: self.stderr() })
    }

    /// What was said until now.
    pub(crate) fn stderr(&self) -> String {
        text(&self.said)
    }
}

async fn supervise(
    mut child: Child,
    errors: ChildStderr,
    said: Arc<Mutex<Vec<u8>>>,
    not_needed: oneshot::Receiver<()>,
    tell: watch::Sender<Option<SshExit>>,
) {
    let listening = tokio::spawn(collect_stderr(errors, said.clone()));
    let status = tokio::select! {
        status = child.wait() => status,
        // Nothing is sent: the other end is dropped.
        _ = not_needed => match timeout(GRACE, child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                let _ = child.start_kill();
                child.wait().await
            }
        },
    };
    let _ = timeout(STDERR_TIMEOUT, listening).await;
    let _ = tell.send(Some(SshExit { status: status.ok().and_then(|status| status.code()), said: text(&said) }));
}

/// Keeps the end of what is said.
async fn collect_stderr(mut errors: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = errors.read(&mut buffer).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(&buffer[..length]);
        let too_much = said.len().saturating_sub(MAX_STDERR);
        said.drain(..too_much);
    }
}

fn text(said: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&said.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}

//! A command that the user can end: what reaches this program is handed on to all that the command has started, and it is
//! waited for all the same.

use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use crate::commands::runtime;
use crate::error::Error;

/// How a command ended.
pub(super) struct ChildExit {
    pub(super) status: ExitStatus,
    /// The user wanted the end.
    pub(super) interrupted: bool,
}

/// Runs a command to its end in a process group of its own.
pub(super) fn run_interruptible(command: Command) -> Result<ChildExit, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source| Error::File { path: program.clone(), source };
    runtime()?.block_on(async {
        let listen = |kind| signal(kind).map_err(failed);
        let mut interrupt = listen(SignalKind::interrupt())?;
        let (mut terminate, mut hangup) = (listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
        let mut child = tokio::process::Command::from(command).process_group(0).spawn().map_err(failed)?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let mut interrupted = false;
        loop {
            let sent = tokio::select! {
                status = child.wait() => return Ok(ChildExit { status: status.map_err(failed)?, interrupted }),
                _ = interrupt.recv() => Signal::INT,
                _ = terminate.recv() => Signal::TERM,
                _ = hangup.recv() => Signal::HUP,
            };
            interrupted = true;
            if let Some(group) = group {
                // One that has ended meanwhile is waited for next.
                let _ = kill_process_group(group, sent);
            }
        }
    })
}

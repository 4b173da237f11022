//! Runs a child process in its own process group, forwards signals to the group and waits for the child to exit.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::SessionError;
use crate::program::runtime;

pub(super) struct ChildExit {
    pub(super) status: ExitStatus,
    pub(super) interrupted: bool,
}

pub(super) fn run_interruptible(command: Command) -> Result<ChildExit, SessionError> {
    let program = PathBuf::from(command.get_program());
    let failed = SessionError::file("run", &program);
    runtime()?.block_on(async {
        let listen = |kind| signal(kind).map_err(failed);
        let mut interrupt = listen(SignalKind::interrupt())?;
        let (mut terminate, mut hangup) = (listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
        let mut child = tokio::process::Command::from(command).process_group(0).spawn().map_err(failed)?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let mut interrupted = false;
        loop {
            let received = tokio::select! {
                status = child.wait() => return Ok(ChildExit { status: status.map_err(failed)?, interrupted }),
                _ = interrupt.recv() => Signal::INT,
                _ = terminate.recv() => Signal::TERM,
                _ = hangup.recv() => Signal::HUP,
            };
            interrupted = true;
            if let Some(group) = group {
                // A child that has exited meanwhile is reaped in the next iteration.
                let _ = kill_process_group(group, received);
            }
        }
    })
}

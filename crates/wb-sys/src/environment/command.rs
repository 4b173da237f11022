//! Asking a program a question that it answers at once.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// Longer than any program takes to say what it is.
const TIMEOUT: Duration = Duration::from_secs(5);

/// More than any answer: a list of packages.
const MAX_OUTPUT: u64 = 8 << 20;

/// What a program says, on both its outputs and however it ends; none where it cannot be started or
/// does not end in five seconds, and then it and its children are ended.
pub(super) fn output(program: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Option<String> {
    let (reader, writer) = std::io::pipe().ok()?;
    let mut command = Command::new(program);
    // Some programs run and write where they should only answer; nothing can be written there.
    command.current_dir("/proc");
    command.args(arguments).stdin(Stdio::null()).stdout(writer.try_clone().ok()?).stderr(writer).process_group(0);
    let mut child = command.spawn().ok()?;
    // It holds our ends of the pipe, without which the reading would never end.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = reader.take(MAX_OUTPUT).read_to_end(&mut bytes);
        // Nobody listens any more where patience ended first.
        let _ = sender.send(read.ok().map(|_| bytes));
    });
    let said = receiver.recv_timeout(TIMEOUT);
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // It has answered or never will; not yet reaped, its id is still its own.
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait().ok()?;
    said.ok().flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_outputs_are_heard_and_a_missing_program_is_none() {
        let said = output(Path::new("sh"), &["-c", "echo one; echo two >&2; exit 3"]).unwrap();
        assert_eq!(said, "one\ntwo\n");
        assert_eq!(output(Path::new("/no/such/program"), &["--version"]), None);
    }

    #[test]
    fn a_program_that_writes_instead_of_answering_leaves_nothing() {
        let said = output(Path::new("sh"), &["-c", "echo x > left-behind && echo wrote"]).unwrap();
        assert!(!said.contains("wrote"), "{said}");
    }
}

//! Captures the output of a program that ends at once, such as `fio --version`.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// More time than any program takes to print its version.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Limit on captured output, in bytes; a list of packages is the longest.
const MAX_OUTPUT: u64 = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoOutput {
    /// The program cannot be started or read.
    NotRun,
    /// It did not end in time, and was killed with its children.
    TimedOut,
}

/// Runs a program and returns its standard output and error, whatever its exit status, if it ends within five seconds.
pub(super) fn output(program: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Result<String, NoOutput> {
    output_within(TIMEOUT, program, arguments)
}

fn output_within(
    limit: Duration,
    program: &Path,
    arguments: &[impl AsRef<std::ffi::OsStr>],
) -> Result<String, NoOutput> {
    let failed = |_: std::io::Error| NoOutput::NotRun;
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let mut command = Command::new(program);
    // Some programs do not know the flag and start working instead; no file can be created in `/proc`.
    command.current_dir("/proc");
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer)
        .process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    // `Command` holds write ends of the pipe; the reader would never see the end of file.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = reader.take(MAX_OUTPUT).read_to_end(&mut bytes);
        // The receiver is gone after the timeout.
        let _ = sender.send(read.ok().map(|_| bytes));
    });
    let received = receiver.recv_timeout(limit);
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // The child has ended or timed out. It is not reaped yet, so its id cannot have been reused.
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait().map_err(failed)?;
    let bytes = received.map_err(|_| NoOutput::TimedOut)?.ok_or(NoOutput::NotRun)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_outputs_are_captured_and_a_missing_program_is_none() {
        let text = output(Path::new("sh"), &["-c", "echo one; echo two >&2; exit 3"]).unwrap();
        assert_eq!(text, "one\ntwo\n");
        assert_eq!(output(Path::new("/no/such/program"), &["--version"]), Err(NoOutput::NotRun));
        let late = output_within(Duration::from_millis(100), Path::new("sh"), &["-c", "echo 1.0; sleep 9"]);
        assert_eq!(late, Err(NoOutput::TimedOut));
    }

    // Some programs do not know `--version`, and start working instead.
    #[test]
    fn a_program_cannot_create_files_in_its_working_folder() {
        let text = output(Path::new("sh"), &["-c", "echo x > left-behind && echo wrote"]).unwrap();
        assert!(!text.contains("wrote"), "{text}");
    }
}

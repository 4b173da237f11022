//! States that are read and set by commands.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::ResourceError;

/// Runs a command and returns its standard output.
pub(super) fn output(name: &str, words: &[String]) -> Result<Vec<u8>, ResourceError> {
    run(name, words, Stdio::null())
}

/// Runs a command that sets a state.
///
/// The command gets the lock as its standard input, which it must not read, and a process group of its own. If this
/// process is killed meanwhile, the next one finds the command by them and kills it before it reverts anything.
pub(super) fn set(name: &str, words: &[String], state: &[u8], lock: &File) -> Result<(), ResourceError> {
    let state = String::from_utf8_lossy(state).trim().to_owned();
    let words: Vec<String> = words.iter().map(|word| word.replace("{}", &state)).collect();
    let lock = lock.try_clone().map_err(|error| failed(name, error.to_string()))?;
    run(name, &words, lock.into()).map(drop)
}

fn failed(name: &str, reason: String) -> ResourceError {
    ResourceError::Command { name: name.to_owned(), reason }
}

fn run(name: &str, words: &[String], input: Stdio) -> Result<Vec<u8>, ResourceError> {
    let (program, arguments) = words.split_first().ok_or_else(|| failed(name, "missing command".to_owned()))?;
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").stdin(input).process_group(0).output();
    let output = output.map_err(|error| failed(name, format!("{program}: {error}")))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        let message = if message.trim().is_empty() { String::new() } else { format!(": {}", message.trim()) };
        Err(failed(name, format!("{program}: {}{message}", output.status)))
    }
}

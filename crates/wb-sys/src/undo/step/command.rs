//! What commands show and set.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::StepError;

/// What a command prints.
pub(super) fn output(name: &str, words: &[String]) -> Result<Vec<u8>, StepError> {
    run(name, words, Stdio::null())
}

/// Lets a command set a state.
///
/// It has the lock as its standard input, which none of them reads, and a process group of its own: where we are killed
/// while it runs, whoever comes next finds it by them, and ends it before anything is put back.
pub(super) fn set(name: &str, words: &[String], state: &[u8], lock: &File) -> Result<(), StepError> {
    let state = String::from_utf8_lossy(state).trim().to_owned();
    let words: Vec<String> = words.iter().map(|word| word.replace("{}", &state)).collect();
    let lock = lock.try_clone().map_err(|error| failed(name, error.to_string()))?;
    run(name, &words, lock.into()).map(drop)
}

fn failed(name: &str, why: String) -> StepError {
    StepError::Command { name: name.to_owned(), why }
}

fn run(name: &str, words: &[String], input: Stdio) -> Result<Vec<u8>, StepError> {
    let (program, arguments) = words.split_first().ok_or_else(|| failed(name, "there is no command".to_owned()))?;
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").stdin(input).process_group(0).output();
    let output = output.map_err(|error| failed(name, format!("{program}: {error}")))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = if said.trim().is_empty() { String::new() } else { format!(": {}", said.trim()) };
            Err(failed(name, format!("{program}, {}{said}", output.status)))
        }
    }
}

//! Runs a command of this program on other machines and prints its output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wb_agent::{Command, ExitReason, ProcessOutput, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};

use super::hosts::{close, connect_hosts, report_all_leftovers};
use super::{print_json, print_text, runtime};
use crate::cli::HostSelectionFlags;
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;

/// Time limit for a command on a machine.
const COMMAND_TIMEOUT: Nanos = Nanos(600_000_000_000);
/// Maximum size of its output.
const MAX_OUTPUT: Bytes = Bytes(64 << 20);

/// How the output of a command on a machine is printed.
pub(crate) enum OutputMode<'a> {
    /// As it is, under the machine's name.
    Text,
    /// As one JSON object keyed by machine name.
    Json,
    /// Rendered by this function, under the machine's name.
    Rendered(&'a dyn Fn(&RemoteTarget, &[u8]) -> String),
}

/// A machine on which a command was run.
pub(crate) struct RemoteTarget {
    /// Its name.
    pub(crate) name: WorkerName,
    /// Command-line options that select only this machine; empty for the machine of this process.
    pub(crate) options: Vec<String>,
}

/// A command-line argument for the other machines.
pub(crate) enum RemoteArgument {
    /// Passed as it is.
    Plain(String),
    /// A local file, which is uploaded first.
    File(PathBuf),
}

impl RemoteArgument {
    /// An argument that is passed as it is.
    pub(crate) fn plain(word: &str) -> Self {
        Self::Plain(word.to_owned())
    }
}

/// Runs a command of this program on machines and prints its output.
///
/// # Errors
/// When none of them can be reached, or a local file cannot be read.
pub(crate) fn run_on_hosts(
    machines: &HostSelectionFlags,
    words: &[RemoteArgument],
    output: OutputMode<'_>,
    console: &Console,
) -> Result<Exit, Error> {
    runtime()?.block_on(async {
        let hosts = connect_hosts(&machines.clone().into(), console).await?;
        report_all_leftovers(&hosts).await?;
        let mut codes: Vec<Option<i32>> = hosts.pool.unreachable.iter().map(|_| None).collect();
        let mut printed = BTreeMap::new();
        for member in &hosts.pool.workers {
            let name = member.worker.name();
            match upload_and_run(&member.worker, words).await? {
                Ok(finished) => {
                    codes.push(match finished.exit_reason {
                        ExitReason::Exited { status } => Some(status),
                        _ => None,
                    });
                    String::from_utf8_lossy(&finished.stderr).lines().for_each(|line| message!("`{name}`: {line}"));
                    let stdout = &finished.stdout;
                    match output {
                        OutputMode::Json => drop(printed.insert(name.to_string(), parse_json(stdout))),
                        OutputMode::Text => print_text(&format!("`{name}`:\n{}", String::from_utf8_lossy(stdout)))?,
                        OutputMode::Rendered(render) => {
                            let target =
                                RemoteTarget { name: name.clone(), options: hosts.options_for(name, machines) };
                            print_text(&format!("`{name}`:\n{}", render(&target, stdout)))?;
                        }
                    }
                }
                Err(error) => {
                    Error::from(error).warn();
                    codes.push(None);
                }
            }
        }
        if matches!(output, OutputMode::Json) {
            // A machine without output has reported the reason on standard error.
            printed.retain(|_, value| !value.is_null());
            print_json(&printed)?;
        }
        close(hosts).await?;
        Ok(worst_exit(&codes))
    })
}

fn parse_json(stdout: &[u8]) -> serde_json::Value {
    serde_json::from_slice(stdout).unwrap_or_default()
}

/// Uploads the files and runs the program on a machine to completion.
async fn upload_and_run(
    worker: &Worker,
    words: &[RemoteArgument],
) -> Result<Result<ProcessOutput, WorkerError>, Error> {
    let mut files = Vec::new();
    for word in words {
        if let RemoteArgument::File(path) = word {
            let failed = |source| Error::File { path: path.display().to_string(), source };
            files.push((path.as_path(), std::fs::read(path).map_err(failed)?));
        }
    }
    Ok(spawn_and_wait(worker, words, &files).await)
}

async fn spawn_and_wait(
    worker: &Worker,
    words: &[RemoteArgument],
    files: &[(&Path, Vec<u8>)],
) -> Result<ProcessOutput, WorkerError> {
    let group = worker.new_group().await?;
    let remote_path = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{}/{name}", group.folder())
    };
    for (path, bytes) in files {
        worker.put(&remote_path(path), bytes, 0o600).await?;
    }
    let words = words.iter().map(|word| match word {
        RemoteArgument::Plain(word) => word.clone(),
        RemoteArgument::File(path) => remote_path(path),
    });
    let argv = [worker.program().to_owned()].into_iter().chain(words);
    let finished = group.spawn(Command::new(argv).output_limit(MAX_OUTPUT)).await?.wait(Some(COMMAND_TIMEOUT)).await?;
    group.close().await?;
    Ok(finished)
}

/// Combines the exit statuses of all machines; `None` is a machine without one.
fn worst_exit(codes: &[Option<i32>]) -> Exit {
    let has = |exit: Exit| codes.contains(&Some(i32::from(exit.code())));
    match () {
        () if has(Exit::Error) => Exit::Error,
        () if has(Exit::Incomplete) || codes.contains(&None) => Exit::Incomplete,
        () if !codes.is_empty() && codes.iter().all(|code| *code == Some(i32::from(Exit::NothingToDo.code()))) => {
            Exit::NothingToDo
        }
        () => Exit::Success,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_status_wins_and_nothing_to_do_requires_all_machines() {
        for (codes, exit) in [
            (&[Some(0), Some(4)][..], Exit::Success),
            (&[Some(4), Some(4)], Exit::NothingToDo),
            (&[Some(0), None], Exit::Incomplete),
            (&[Some(3), Some(0)], Exit::Incomplete),
            (&[Some(3), Some(1), None], Exit::Error),
        ] {
            assert_eq!(worst_exit(codes).code(), exit.code(), "{codes:?}");
        }
    }
}

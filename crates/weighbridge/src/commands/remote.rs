//! Commands about a machine, carried out on other machines by the program there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wb_agent::{Command, ExitReason, ProcessOutput, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};

use super::hosts::{close, connect_hosts, report_all_left_behind};
use super::{print_json, print_text, runtime};
use crate::cli::HostSelectionFlags;
use crate::console::{Console, tell};
use crate::error::Error;
use crate::exit::Exit;

/// How long a command may take on a machine.
const COMMAND_TIMEOUT: Nanos = Nanos(600_000_000_000);
/// The most that it may print.
const MAX_OUTPUT: Bytes = Bytes(64 << 20);

/// What is printed of the output of a command on a machine.
pub(crate) enum OutputMode<'a> {
    /// The output, under the machine's name.
    Text,
    /// One JSON object with the output of each machine by its name.
    Json,
    /// The text that this makes of it, under the machine's name.
    Rendered(&'a dyn Fn(&RemoteTarget, &[u8]) -> String),
}

/// A machine that a command was carried out on.
pub(crate) struct RemoteTarget {
    /// Its name.
    pub(crate) name: WorkerName,
    /// The options by which a command line means this machine alone; none for the machine of this process.
    pub(crate) options: Vec<String>,
}

/// A word of the command line for the other machines.
pub(crate) enum RemoteArgument {
    /// As it is.
    Plain(String),
    /// A file of this machine, which is put there first.
    File(PathBuf),
}

impl RemoteArgument {
    /// A word as it is.
    pub(crate) fn plain(word: &str) -> Self {
        Self::Plain(word.to_owned())
    }
}

/// Carries out a command of this program on machines, and prints what comes of it.
///
/// # Errors
/// When there is no way to any of them, or a file of this machine cannot be read.
pub(crate) fn run_on_hosts(
    machines: &HostSelectionFlags,
    words: &[RemoteArgument],
    output: OutputMode<'_>,
    console: &Console,
) -> Result<Exit, Error> {
    runtime()?.block_on(async {
        let hosts = connect_hosts(&machines.clone().into(), console).await?;
        report_all_left_behind(&hosts).await?;
        let mut codes: Vec<Option<i32>> = hosts.pool.unreachable.iter().map(|_| None).collect();
        let mut printed = BTreeMap::new();
        for member in &hosts.pool.workers {
            let name = member.worker.name();
            match upload_and_run(&member.worker, words).await? {
                Ok(finished) => {
                    codes.push(match finished.ending {
                        ExitReason::Exited { status } => Some(status),
                        _ => None,
                    });
                    String::from_utf8_lossy(&finished.stderr).lines().for_each(|line| tell!("`{name}`: {line}"));
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
            // What printed nothing has reported why on standard error.
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

/// Runs the program on a machine to its end.
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
    let there = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{}/{name}", group.folder())
    };
    for (path, bytes) in files {
        worker.put(&there(path), bytes, 0o600).await?;
    }
    let words = words.iter().map(|word| match word {
        RemoteArgument::Plain(word) => word.clone(),
        RemoteArgument::File(path) => there(path),
    });
    let argv = [worker.program().to_owned()].into_iter().chain(words);
    let finished = group.spawn(Command::new(argv).output_limit(MAX_OUTPUT)).await?.wait(Some(COMMAND_TIMEOUT)).await?;
    group.teardown().await?;
    Ok(finished)
}

/// The exit status that stands for those of all machines; none of one that has none.
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
    fn an_error_counts_before_what_fell_short_and_nothing_only_where_all_had_nothing() {
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

//! Commands about a machine, carried out on other machines by the program there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wb_agent::{Command, Ending, Finished, Worker, WorkerError};
use wb_model::{Bytes, Nanos, WorkerName};

use super::crew::{close, hosts, report_all_left_behind};
use super::{print_json, print_text, runtime};
use crate::cli::MachineFlags;
use crate::console::{Console, tell};
use crate::error::Error;
use crate::exit::Exit;

/// How long a command may take on a machine.
const LIMIT: Nanos = Nanos(600_000_000_000);
/// The most that it may print.
const OUTPUT: Bytes = Bytes(64 << 20);

/// What is printed of the output of a command on a machine.
pub(crate) enum Output<'a> {
    /// The output, under the machine's name.
    Text,
    /// One JSON object with the output of each machine by its name.
    Json,
    /// The text that this makes of it, under the machine's name.
    Rendered(&'a dyn Fn(&Target, &[u8]) -> String),
}

/// A machine that a command was carried out on.
pub(crate) struct Target {
    /// Its name.
    pub(crate) name: WorkerName,
    /// The options by which a command line means this machine alone; none for the machine of this process.
    pub(crate) options: Vec<String>,
}

/// A word of the command line for the other machines.
pub(crate) enum Word {
    /// As it is.
    Plain(String),
    /// A file of this machine, which is put there first.
    File(PathBuf),
}

impl Word {
    /// A word as it is.
    pub(crate) fn plain(word: &str) -> Self {
        Self::Plain(word.to_owned())
    }
}

/// Carries out a command of this program on machines, and prints what comes of it.
///
/// # Errors
/// When there is no way to any of them, or a file of this machine cannot be read.
pub(crate) fn on_hosts(
    machines: &MachineFlags,
    words: &[Word],
    output: Output<'_>,
    console: &Console,
) -> Result<Exit, Error> {
    runtime()?.block_on(async {
        let hosts = hosts(&machines.clone().into(), console).await?;
        report_all_left_behind(&hosts).await?;
        let mut codes: Vec<Option<i32>> = hosts.crew.absent.iter().map(|_| None).collect();
        let mut printed = BTreeMap::new();
        for member in &hosts.crew.members {
            let name = member.worker.name();
            match carry_out(&member.worker, words).await? {
                Ok(finished) => {
                    codes.push(match finished.ending {
                        Ending::Exited { status } => Some(status),
                        _ => None,
                    });
                    String::from_utf8_lossy(&finished.stderr).lines().for_each(|line| tell!("`{name}`: {line}"));
                    let stdout = &finished.stdout;
                    match output {
                        Output::Json => drop(printed.insert(name.to_string(), parsed(stdout))),
                        Output::Text => print_text(&format!("`{name}`:\n{}", String::from_utf8_lossy(stdout)))?,
                        Output::Rendered(render) => {
                            let target = Target { name: name.clone(), options: hosts.options_for(name, machines) };
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
        if matches!(output, Output::Json) {
            // What printed nothing has reported why on standard error.
            printed.retain(|_, value| !value.is_null());
            print_json(&printed)?;
        }
        close(hosts).await?;
        Ok(worst(&codes))
    })
}

fn parsed(stdout: &[u8]) -> serde_json::Value {
    serde_json::from_slice(stdout).unwrap_or_default()
}

/// Runs the program on a machine to its end.
async fn carry_out(worker: &Worker, words: &[Word]) -> Result<Result<Finished, WorkerError>, Error> {
    let mut files = Vec::new();
    for word in words {
        if let Word::File(path) = word {
            let failed = |source| Error::File { path: path.display().to_string(), source };
            files.push((path.as_path(), std::fs::read(path).map_err(failed)?));
        }
    }
    Ok(run(worker, words, &files).await)
}

async fn run(worker: &Worker, words: &[Word], files: &[(&Path, Vec<u8>)]) -> Result<Finished, WorkerError> {
    let group = worker.group().await?;
    let there = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{}/{name}", group.folder())
    };
    for (path, bytes) in files {
        worker.put(&there(path), bytes, 0o600).await?;
    }
    let words = words.iter().map(|word| match word {
        Word::Plain(word) => word.clone(),
        Word::File(path) => there(path),
    });
    let argv = [worker.program().to_owned()].into_iter().chain(words);
    let finished = group.spawn(Command::new(argv).output_limit(OUTPUT)).await?.wait(Some(LIMIT)).await?;
    group.teardown().await?;
    Ok(finished)
}

/// The exit status that stands for those of all machines; none of one that has none.
fn worst(codes: &[Option<i32>]) -> Exit {
    let has = |exit: Exit| codes.contains(&Some(i32::from(exit.code())));
    match () {
        () if has(Exit::Error) => Exit::Error,
        () if has(Exit::FellShort) || codes.contains(&None) => Exit::FellShort,
        () if !codes.is_empty() && codes.iter().all(|code| *code == Some(i32::from(Exit::Nothing.code()))) => {
            Exit::Nothing
        }
        () => Exit::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_counts_before_what_fell_short_and_nothing_only_where_all_had_nothing() {
        for (codes, exit) in [
            (&[Some(0), Some(4)][..], Exit::Fine),
            (&[Some(4), Some(4)], Exit::Nothing),
            (&[Some(0), None], Exit::FellShort),
            (&[Some(3), Some(0)], Exit::FellShort),
            (&[Some(3), Some(1), None], Exit::Error),
        ] {
            assert_eq!(worst(codes).code(), exit.code(), "{codes:?}");
        }
    }
}

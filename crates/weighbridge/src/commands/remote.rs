//! Runs a command of the agent's program on other machines and prints its output.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wb_agent::ExitReason;
use wb_model::WorkerName;
use wb_session::HostSelection;
use wb_session::hosts::connect_hosts;
use wb_session::program::runtime;
use wb_session::remote::{RemoteArgument, upload_and_run};

use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

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
    pub(crate) name: WorkerName,
    /// Command-line options that select only this machine; empty for the machine of this process.
    pub(crate) options: Vec<String>,
}

/// Fails if none of the machines can be reached.
pub(crate) fn run_on_hosts(
    selection: &HostSelection,
    words: &[RemoteArgument],
    output: OutputMode<'_>,
    console: &Console,
) -> Result<Exit, Error> {
    runtime()?.block_on(async {
        let hosts = connect_hosts(&selection.clone().into(), &console.events()).await?;
        hosts.report_all_leftovers().await?;
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
                            let options = hosts.select_only(name, selection).map_or_else(Vec::new, selecting_options);
                            let target = RemoteTarget { name: name.clone(), options };
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
        hosts.close().await?;
        Ok(worst_exit(&codes))
    })
}

fn selecting_options(selection: HostSelection) -> Vec<String> {
    let file = |flag: &str, path: Option<PathBuf>| {
        path.map_or_else(Vec::new, |path| vec![flag.to_owned(), path.display().to_string()])
    };
    let HostSelection { hosts, inventory, ssh_config } = selection;
    let hosts = vec!["--hosts".to_owned(), hosts.join(",")];
    [file("--inventory", inventory), hosts, file("--ssh-config", ssh_config)].concat()
}

fn parse_json(stdout: &[u8]) -> serde_json::Value {
    serde_json::from_slice(stdout).unwrap_or_default()
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

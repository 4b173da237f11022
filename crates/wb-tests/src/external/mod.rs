//! External runners: any program that takes samples by itself and says what came of them, a JSON line per event.
//!
//! The definition in TOML declares parameters and metrics, so that no program runs before something is
//! measured. docs/tests.md has the protocol. Start with [`Event`]; [`said`] is what the lines of one
//! sample come to.

mod event;
mod parser;

use serde::Serialize;
use wb_agent::Command;
use wb_model::{Params, Purpose};

use crate::{Attempt, Failure};

pub use event::RunnerEvent;
pub use parser::{ProtocolError, RunnerCheck, RunnerMetric, RunnerReport, parse_output};

/// The version of the protocol. Two versions do not understand each other.
pub const PROTOCOL: u32 = 1;

/// What a runner is told on its standard input, in one JSON object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct RunnerTask<'a> {
    protocol: u32,
    params: &'a Params,
    /// The work that earlier samples did; null where the runner has to find out how much takes the time.
    work: Option<u64>,
    /// In seconds.
    min_time: f64,
    /// A private folder, which it starts in.
    folder: &'a str,
    purpose: Purpose,
    sample: u32,
}

/// Lets a runner take a sample, and keeps what it said.
pub(crate) async fn sample(
    params: &Params,
    command: Command,
    folder: &str,
    attempt: &mut Attempt,
) -> Result<(), Failure> {
    let task = RunnerTask {
        protocol: PROTOCOL,
        params,
        work: attempt.work,
        min_time: attempt.min_time.seconds(),
        folder,
        purpose: attempt.purpose,
        sample: attempt.sample,
    };
    let mut task = serde_json::to_vec(&task).map_err(|error| Failure::refused(error.to_string()))?;
    task.push(b'\n');
    let output = attempt.run("run", command.arg("sample").stdin(task)).await?.stdout;
    let said = parse_output(&String::from_utf8_lossy(&output)).map_err(|error| Failure::crashed(error.to_string()))?;
    for (name, bytes) in said.artefacts {
        attempt.add_artefact(&format!("runner/{name}"), bytes);
    }
    if let Some((work, _)) = said.work {
        attempt.record_work(work);
    }
    Ok(())
}

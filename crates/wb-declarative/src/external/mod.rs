//! External runners: programs that take samples on their own and report them as JSON lines, one per event.
//!
//! The definition in TOML declares parameters and metrics, so that no program has to run before a measurement.
//! docs/tests.md describes the protocol. Start with [`RunnerEvent`]; [`parse_output`] turns the lines of one sample
//! into a [`RunnerReport`].

mod event;
mod parser;

use serde::Serialize;
use wb_agent::Command;
use wb_model::{AttemptPurpose, Params};

use wb_test::{Attempt, Failure};

pub use event::RunnerEvent;
pub use parser::{ProtocolError, RunnerCheck, RunnerMetric, RunnerReport, parse_output};

/// Version of the protocol; different versions are incompatible.
pub const PROTOCOL: u32 = 1;

/// Request to a runner: one JSON object on its standard input.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct RunnerTask<'a> {
    protocol: u32,
    params: &'a Params,
    /// Of earlier samples; null if the runner has to calibrate it.
    work: Option<u64>,
    /// In seconds.
    min_time: f64,
    /// Private folder, the working directory of the runner.
    folder: &'a str,
    purpose: AttemptPurpose,
    sample: u32,
}

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
    let report =
        parse_output(&String::from_utf8_lossy(&output)).map_err(|error| Failure::crashed(error.to_string()))?;
    for (name, bytes) in report.artefacts {
        attempt.add_artefact(&format!("runner/{name}"), bytes);
    }
    if let Some((work, _)) = report.work {
        attempt.record_work(work);
    }
    Ok(())
}

//! The time that sizing takes beside another load, and the agreement of its results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;
use wb_sys::SysRoot;
use wb_sys::cgroup::memory::LimitedGroup;

use crate::bench_env::{BenchEnv, require_tool};
use crate::benchmark::{BenchFigure, FigureBound};

const RUNS: usize = 3;
/// Memory of the control group, in bytes.
const MEMORY: u64 = 1 << 30;

/// A line of `hashd --find-params --json` that has the result.
#[derive(Deserialize)]
struct ResultLine {
    result: SizingResult,
}

#[derive(Deserialize)]
struct SizingResult {
    footprint: f64,
    seconds: f64,
    rounds: f64,
}

pub(super) fn figures(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    require_tool("stress-ng")?;
    let program = env.weighbridge_program()?;
    let group =
        LimitedGroup::create(&SysRoot::real(), "weighbridge-bench", MEMORY).map_err(|error| error.to_string())?;
    let load = Command::new("stress-ng").args(["--cpu", "1", "--quiet"]).stdout(Stdio::null()).spawn();
    let load = Load(load.map_err(|error| format!("stress-ng: {error}"))?);
    let run = |index: usize| size(&program, &env.folder().join(format!("params-{index}.toml")), group.procs());
    let results = (0..RUNS).map(run).collect::<Result<Vec<SizingResult>, String>>()?;
    drop(load);
    let column = |of: fn(&SizingResult) -> f64| results.iter().map(of).collect::<Vec<f64>>();
    let footprints = column(|result| result.footprint / f64::from(1 << 20));
    let (low, high) = (min(&footprints), max(&footprints));
    let longest = max(&column(|result| result.seconds));
    Ok(vec![
        BenchFigure::median("footprint", &footprints, "MiB", None)?,
        BenchFigure::new(
            "half of the spread of the footprint",
            (high - low) / (high + low) * 100.0,
            "%",
            Some(FigureBound::Below(5.0)),
        ),
        BenchFigure::new("longest time", longest / 60.0, "min", Some(FigureBound::Below(15.0))),
        BenchFigure::median("rounds", &column(|result| result.rounds), "", None)?,
    ])
}

fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Runs one sizing, whose process joins the group by writing to `procs`.
fn size(program: &Path, params: &Path, procs: PathBuf) -> Result<SizingResult, String> {
    let script = "echo $$ > \"$0\" && exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(procs).arg(program).args(["hashd", "--json", "--fake-cpu-load", "--find-params"]);
    let output = command.arg(params).stderr(Stdio::inherit()).output().map_err(|error| format!("sh: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().rev().find_map(|line| serde_json::from_str::<ResultLine>(line).ok());
    // The journal would be resumed by the next one.
    let _ = fs::remove_file(format!("{}.journal", params.display()));
    result.map(|line| line.result).ok_or(format!("weighbridge hashd --find-params ended with {}", output.status))
}

struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id().cast_signed()) {
            // stress-ng ends its own children on SIGTERM; it may have ended already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

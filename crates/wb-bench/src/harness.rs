//! What the harness itself costs: `weighbridge` as a user starts it, each figure against its limit.

use crate::{
    bench_env::BenchEnv,
    elapsed,
    limits::{BenchFigure, FigureBound, LimitCheck},
};
use procfs::process::Process;
use std::{
    collections::BTreeMap,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};
use wb_stats::Samples;

/// How often the controller and its agent are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Starts of `--help`; the median counts.
const STARTS: usize = 101;

/// Samples as they are by default, one warm-up and six of five seconds, of three kinds of workload.
const DEFAULT_RUN_ARGS: [&str; 5] =
    ["himeno:grid=M,threads=1", "ramspeed:mode=triad", "redis:command=get,requests=auto", "--max-samples", "6"];

pub(crate) fn limits(place: &BenchEnv) -> Vec<LimitCheck<'_>> {
    vec![
        LimitCheck::new("harness, samples of 5 s", || {
            run_figures(place, "default", &DEFAULT_RUN_ARGS, Some(FigureBound::AtLeast(90.0)))
        }),
        LimitCheck::new("harness, plan quick", || run_figures(place, "quick", &["--plan", "quick"], None)),
        LimitCheck::new("harness, weighbridge --help", || help_figures(place)),
        elapsed::limit(place),
    ]
}

/// One run into a fresh folder: the share of workload in its wall time, of which `least` is asked for, and what
/// controller and agent took.
fn run_figures(
    place: &BenchEnv,
    name: &str,
    args: &[&str],
    least: Option<FigureBound>,
) -> Result<Vec<BenchFigure>, String> {
    let folder = place.folder().join(name);
    let program = place.weighbridge_program()?;
    let start = Instant::now();
    let mut child = Command::new(&program)
        .args(["run", "--quiet"])
        .args(args)
        .arg("--into")
        .arg(&folder)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let (cost, ended) = ProcessCost::watch(&mut child)?;
    if !ended.success() {
        return Err(format!("weighbridge run ended with {ended}"));
    }
    let seconds = start.elapsed().as_secs_f64();
    let summary = Command::new(&program).args(["summary", "--json"]).arg(&folder).output();
    let summary = summary.map_err(|error| error.to_string())?;
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).map_err(|error| error.to_string())?;
    let share = |what: &str| {
        let share = summary["run"][what].as_f64().map(|part| part / seconds * 100.0);
        share.ok_or(format!("the summary has no {what}"))
    };
    Ok(vec![
        BenchFigure::new("wall time", seconds, "s", None),
        BenchFigure::new("workload in the wall time", share("workload_seconds")?, "%", least),
        BenchFigure::new("measured in the wall time", share("measured_seconds")?, "%", None),
        BenchFigure::new(
            "controller and agent, of one core",
            cost.cpu / seconds * 100.0,
            "%",
            Some(FigureBound::Below(1.0)),
        ),
        BenchFigure::new(
            "controller and agent, memory at most",
            cost.memory / 1e6,
            "MB",
            Some(FigureBound::Below(40.0)),
        ),
    ])
}

/// The median time from starting `--help` to its end.
fn help_figures(place: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let program = place.weighbridge_program()?;
    let start = || {
        let start = Instant::now();
        let ended = Command::new(&program).arg("--help").stdout(Stdio::null()).status();
        ended.map(|_| start.elapsed().as_secs_f64() * 1e3).map_err(|error| format!("{}: {error}", program.display()))
    };
    let times = (0..STARTS).map(|_| start()).collect::<Result<Vec<f64>, String>>()?;
    let median = Samples::new(&times).map_err(|error| error.to_string())?.median();
    Ok(vec![BenchFigure::new("median time of a start", median, "ms", Some(FigureBound::Below(10.0)))])
}

/// What the controller and the agent, its child, took; what they started is not theirs.
struct ProcessCost {
    /// CPU time in seconds.
    cpu: f64,
    /// Most memory held, in bytes.
    memory: f64,
}

impl ProcessCost {
    /// Looks at both until the controller ends, and says how it did.
    fn watch(controller: &mut Child) -> Result<(Self, ExitStatus), String> {
        let mut seen = BTreeMap::new();
        let ended = loop {
            if let Some(ended) = controller.try_wait().map_err(|error| error.to_string())? {
                break ended;
            }
            for process in controller_and_agents(controller.id()) {
                if let Some(cost) = Self::read(&process) {
                    seen.insert(process.pid(), cost);
                }
            }
            thread::sleep(POLL_INTERVAL);
        };
        let sum = |part: fn(&Self) -> f64| seen.values().map(part).sum();
        Ok((Self { cpu: sum(|cost| cost.cpu), memory: sum(|cost| cost.memory) }, ended))
    }

    fn read(process: &Process) -> Option<Self> {
        let (stat, status) = (process.stat().ok()?, process.status().ok()?);
        let ticks = (stat.utime + stat.stime) as f64;
        Some(Self { cpu: ticks / procfs::ticks_per_second() as f64, memory: status.vmhwm? as f64 * 1024.0 })
    }
}

/// The controller and the agent under it, while they run.
fn controller_and_agents(controller: u32) -> Vec<Process> {
    let is_agent =
        |process: &Process| process.cmdline().is_ok_and(|line| line.get(1).is_some_and(|arg| arg == "agent"));
    let Ok(controller) = Process::new(controller as i32) else { return Vec::new() };
    let children = controller.task_main_thread().and_then(|task| task.children()).unwrap_or_default();
    let agents = children.into_iter().filter_map(|child| Process::new(child as i32).ok()).filter(is_agent);
    agents.chain([controller]).collect()
}

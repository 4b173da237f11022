//! Weighbridge's own overhead: runs of `weighbridge` as a user starts it, some of their figures with a limit.

use crate::bench_env::BenchEnv;
use crate::benchmark::{BenchFigure, Benchmark, FigureBound};
use crate::elapsed;
use procfs::process::Process;
use std::collections::BTreeMap;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the controller and its agent are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Launches of `--help`, whose median is reported.
const LAUNCHES: usize = 101;

/// Three kinds of workload with the default sampling (a warm-up, samples of five seconds), but at most six samples.
const DEFAULT_RUN_ARGS: [&str; 6] =
    ["run", "himeno:grid=M,threads=1", "ramspeed:mode=triad", "redis:command=get,requests=auto", "--max-samples", "6"];

pub(crate) fn benchmarks(env: &BenchEnv) -> Vec<Benchmark<'_>> {
    vec![
        Benchmark::new("harness, samples of 5 s", || {
            run_figures(env, "default", &DEFAULT_RUN_ARGS, Some(FigureBound::AtLeast(90.0)))
        }),
        Benchmark::new("harness, plan quick", || run_figures(env, "quick", &["run", "--plan", "quick"], None)),
        Benchmark::new("harness, weighbridge --help", || help_figures(env)),
        elapsed::limit(env),
    ]
}

/// Runs `weighbridge ARGS` into a new folder. Measures the workload's share of the wall time (with the limit
/// `required`), and the CPU time and peak memory of controller and agents.
pub(crate) fn run_figures(
    env: &BenchEnv,
    name: &str,
    args: &[&str],
    required: Option<FigureBound>,
) -> Result<Vec<BenchFigure>, String> {
    let folder = env.folder().join(name);
    let program = env.weighbridge_program()?;
    let start = Instant::now();
    let mut child = Command::new(&program)
        .args(args)
        .arg("--quiet")
        .arg("--into")
        .arg(&folder)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let (cost, status) = ProcessUsage::watch(&mut child)?;
    if !status.success() {
        return Err(format!("`weighbridge run` failed: {status}"));
    }
    let seconds = start.elapsed().as_secs_f64();
    let summary = Command::new(&program).args(["summary", "--json"]).arg(&folder).output();
    let summary = summary.map_err(|error| error.to_string())?;
    if !summary.status.success() {
        return Err(format!("`weighbridge summary` failed: {}", summary.status));
    }
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).map_err(|error| error.to_string())?;
    let share = |field: &str| {
        let share = summary["run"][field].as_f64().map(|part| part / seconds * 100.0);
        share.ok_or(format!("missing field `{field}` in the summary"))
    };
    Ok(vec![
        BenchFigure::new("wall time", seconds, "s", None),
        BenchFigure::new("workload, share of wall time", share("workload_seconds")?, "%", required),
        BenchFigure::new("measured part, share of wall time", share("measured_seconds")?, "%", None),
        BenchFigure::new(
            "controller and agent, CPU time, share of one core",
            cost.cpu / seconds * 100.0,
            "%",
            Some(FigureBound::Below(1.0)),
        ),
        BenchFigure::new(
            "controller and agent, sum of peak memory",
            cost.memory / 1e6,
            "MB",
            Some(FigureBound::Below(40.0)),
        ),
    ])
}

fn help_figures(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let program = env.weighbridge_program()?;
    let launch = || {
        let start = Instant::now();
        let status = Command::new(&program).arg("--help").stdout(Stdio::null()).status();
        let seconds = start.elapsed().as_secs_f64();
        match status {
            Ok(status) if status.success() => Ok(seconds * 1e3),
            Ok(status) => Err(format!("`weighbridge --help` failed: {status}")),
            Err(error) => Err(format!("{}: {error}", program.display())),
        }
    };
    let times = (0..LAUNCHES).map(|_| launch()).collect::<Result<Vec<f64>, String>>()?;
    Ok(vec![BenchFigure::median("`--help`, launch to exit", &times, "ms", Some(FigureBound::Below(10.0)))?])
}

/// Resource usage of controller and agents, without the workloads, and without what they use after the last poll.
struct ProcessUsage {
    /// CPU time in seconds.
    cpu: f64,
    /// Peak memory in bytes: the sum of each process's peak.
    memory: f64,
}

impl ProcessUsage {
    /// Polls the processes until the controller exits, and returns its exit status too.
    fn watch(controller: &mut Child) -> Result<(Self, ExitStatus), String> {
        let mut costs = BTreeMap::new();
        let status = loop {
            if let Some(status) = controller.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            for process in controller_and_agents(controller.id()) {
                if let Some(cost) = Self::read(&process) {
                    costs.insert(process.pid(), cost);
                }
            }
            thread::sleep(POLL_INTERVAL);
        };
        let sum = |part: fn(&Self) -> f64| costs.values().map(part).sum();
        Ok((Self { cpu: sum(|cost| cost.cpu), memory: sum(|cost| cost.memory) }, status))
    }

    fn read(process: &Process) -> Option<Self> {
        let (stat, status) = (process.stat().ok()?, process.status().ok()?);
        let ticks = (stat.utime + stat.stime) as f64;
        Some(Self { cpu: ticks / procfs::ticks_per_second() as f64, memory: status.vmhwm? as f64 * 1024.0 })
    }
}

fn controller_and_agents(controller: u32) -> Vec<Process> {
    let is_agent =
        |process: &Process| process.cmdline().is_ok_and(|line| line.get(1).is_some_and(|arg| arg == "agent"));
    let Ok(controller) = Process::new(controller as i32) else { return Vec::new() };
    let children = controller.task_main_thread().and_then(|task| task.children()).unwrap_or_default();
    let agents = children.into_iter().filter_map(|child| Process::new(child as i32).ok()).filter(is_agent);
    agents.chain([controller]).collect()
}

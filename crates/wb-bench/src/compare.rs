//! Benchmarks of `weighbridge compare`: the time from start to exit with generated builds, whose files are in the page
//! cache. A check is one compared figure.

use crate::bench_env::BenchEnv;
use crate::benchmark::{BenchFigure, Benchmark, FigureBound};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;
use wb_stats::Samples;
use wb_sys::process::{ExitStatus, reap};
use wb_test_data::{LARGE_PAGE_BUILDS, SyntheticBuilds};

/// Ten builds with 20,000 checks each.
const TEN_BUILDS: SyntheticBuilds = SyntheticBuilds { cases: 125, ..LARGE_PAGE_BUILDS };
/// Two builds with 20,000 checks each.
const SMALL: SyntheticBuilds = SyntheticBuilds { builds: 2, ..TEN_BUILDS };
/// Two builds with 200,000 checks each.
const MEDIUM: SyntheticBuilds = SyntheticBuilds { cases: 1250, ..SMALL };
/// Two builds with 1,000,000 checks each.
const LARGE: SyntheticBuilds = SyntheticBuilds { tests: 25, ..MEDIUM };

/// Runs of a comparison; the figure is their median.
const RUNS: usize = 11;
/// Runs of a comparison that takes seconds.
const FEW_RUNS: usize = 5;

/// Maximum ratio of the times per check with 200,000 and with 20,000 checks.
const MAX_TIME_RATIO: f64 = 1.25;

pub(crate) fn benchmarks(env: &BenchEnv) -> Vec<Benchmark<'_>> {
    vec![
        Benchmark::new("compare, 10 builds × 20,000 checks, tolerances", || {
            let builds = GeneratedBuilds::new(env, "ten", TEN_BUILDS)?;
            builds.time_runs(&["--method", "tolerance"], RUNS)?.figures(0.3, None)
        }),
        Benchmark::new("compare, 10 builds × 20,000 checks, statistics of 2 × 10 samples", || {
            let builds = GeneratedBuilds::new(env, "sampled", SyntheticBuilds { samples: 10, ..TEN_BUILDS })?;
            builds.time_runs(&["--method", "statistical"], RUNS)?.figures(3.0, None)
        }),
        Benchmark::new("compare, page of 10 builds × 8,000 checks", || page_figures(env)),
        Benchmark::new("compare, 2 builds × 1,000,000 checks", || {
            let builds = GeneratedBuilds::new(env, "large", LARGE)?;
            builds.time_runs(&[], FEW_RUNS)?.figures(10.0, Some(2000.0))
        }),
        Benchmark::new("compare, time per check from 20,000 to 200,000 checks", || time_ratio_figures(env)),
    ]
}

fn page_figures(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let builds = GeneratedBuilds::new(env, "page", LARGE_PAGE_BUILDS)?;
    let page = env.folder().join("page.html");
    let mut figures = builds.time_runs(&["--html", &page.display().to_string()], RUNS)?.figures(1.0, None)?;
    let size = fs::metadata(&page).map_err(|error| format!("{}: {error}", page.display()))?.len();
    figures.push(BenchFigure::new("page size", size as f64 / 1e6, "MB", Some(FigureBound::Below(3.0))));
    Ok(figures)
}

fn time_ratio_figures(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let time_per_check = |name, synthetic: SyntheticBuilds| {
        let measurements = GeneratedBuilds::new(env, name, synthetic)?.time_runs(&[], RUNS)?;
        let seconds = Samples::new(&measurements.seconds).map_err(|error| error.to_string())?;
        Ok::<f64, String>(seconds.median() / synthetic.checks() as f64 * 1e6)
    };
    let (few, many) = (time_per_check("small", SMALL)?, time_per_check("medium", MEDIUM)?);
    Ok(vec![
        BenchFigure::new("per check of 20,000", few, "µs", None),
        BenchFigure::new("per check of 200,000", many, "µs", None),
        BenchFigure::new("ratio", many / few, "×", Some(FigureBound::Below(MAX_TIME_RATIO))),
    ])
}

/// Generated builds on disk, removed on drop.
struct GeneratedBuilds {
    program: PathBuf,
    folder: PathBuf,
    builds: Vec<PathBuf>,
}

struct RunMeasurements {
    seconds: Vec<f64>,
    /// The largest peak memory of all runs, in bytes.
    peak_memory: u64,
}

impl GeneratedBuilds {
    fn new(env: &BenchEnv, name: &str, synthetic: SyntheticBuilds) -> Result<Self, String> {
        let (program, folder) = (env.weighbridge_program()?, env.folder().join(name));
        let builds = synthetic.write(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { program, folder, builds })
    }

    fn time_runs(&self, flags: &[&str], runs: usize) -> Result<RunMeasurements, String> {
        let measurements = (0..runs).map(|_| self.time_once(flags)).collect::<Result<Vec<_>, String>>()?;
        let seconds = measurements.iter().map(|(seconds, _)| *seconds).collect();
        let peak_memory = measurements.iter().map(|(_, memory)| *memory).max().unwrap_or(0);
        Ok(RunMeasurements { seconds, peak_memory })
    }

    /// Runs one comparison and returns its seconds and its peak memory in bytes.
    fn time_once(&self, flags: &[&str]) -> Result<(f64, u64), String> {
        let mut command = Command::new(&self.program);
        // Of generated builds, some checks may regress (2), be missing or not be comparable (3).
        time_command(command.arg("compare").args(flags).args(&self.builds), &[0, 2, 3])
    }
}

/// Returns the command's seconds and its peak memory in bytes. Fails if its exit status is not `allowed`.
pub(crate) fn time_command(command: &mut Command, allowed: &[i32]) -> Result<(f64, u64), String> {
    let program = command.get_program().display().to_string();
    let start = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.map_err(|error| format!("{program}: {error}"))?;
    let exit = reap(child.id()).ok_or_else(|| format!("cannot wait for {program}"))?;
    let seconds = start.elapsed().as_secs_f64();
    match exit.status {
        ExitStatus::Exited(status) if allowed.contains(&status) => Ok((seconds, exit.usage.max_rss)),
        status => Err(format!("unexpected exit of `{program}`: {status:?}")),
    }
}

impl Drop for GeneratedBuilds {
    fn drop(&mut self) {
        // If it fails, the folder is removed with the bench's temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl RunMeasurements {
    /// The median time with a limit in seconds, and the peak memory with a limit in MB.
    fn figures(&self, max_seconds: f64, max_memory: Option<f64>) -> Result<Vec<BenchFigure>, String> {
        Ok(vec![
            BenchFigure::median("time", &self.seconds, "s", Some(FigureBound::Below(max_seconds)))?,
            BenchFigure::new("peak memory", self.peak_memory as f64 / 1e6, "MB", max_memory.map(FigureBound::Below)),
        ])
    }
}

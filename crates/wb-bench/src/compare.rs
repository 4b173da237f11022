//! Benchmarks of `weighbridge compare`: the time from start to exit, over generated builds whose files are in the page
//! cache.

use crate::bench_env::BenchEnv;
use crate::limits::{BenchFigure, FigureBound, LimitCheck};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;
use wb_stats::Samples;
use wb_sys::process::{ExitStatus, reap};
use wb_test_data::{LARGE_PAGE, SyntheticBuilds};

/// Ten builds with 20,000 checks.
const TEN_BUILDS: SyntheticBuilds = SyntheticBuilds { cases: 125, ..LARGE_PAGE };
/// Two builds with 20,000 checks.
const SMALL: SyntheticBuilds = SyntheticBuilds { builds: 2, ..TEN_BUILDS };
/// Two builds with 200,000 checks.
const MEDIUM: SyntheticBuilds = SyntheticBuilds { cases: 1250, ..SMALL };
/// Two builds with 1,000,000 checks.
const LARGE: SyntheticBuilds = SyntheticBuilds { tests: 25, ..MEDIUM };

/// Number of runs of a comparison; the median counts.
const RUNS: usize = 11;
/// Number of runs of a comparison that takes seconds.
const FEW_RUNS: usize = 5;

/// Maximum growth of the time per check, with ten times as many checks.
const MAX_GROWTH: f64 = 1.25;

pub(crate) fn limits(place: &BenchEnv) -> Vec<LimitCheck<'_>> {
    vec![
        LimitCheck::new("compare, 10 builds × 20,000 checks, tolerances", || {
            let builds = GeneratedBuilds::new(place, "ten", TEN_BUILDS)?;
            builds.time_runs(&["--method", "tolerance"], RUNS)?.figures(0.3, None)
        }),
        LimitCheck::new("compare, 10 builds × 20,000 checks, statistics of 2 × 10 samples", || {
            let builds = GeneratedBuilds::new(place, "sampled", SyntheticBuilds { samples: 10, ..TEN_BUILDS })?;
            builds.time_runs(&["--method", "statistical"], RUNS)?.figures(3.0, None)
        }),
        LimitCheck::new("compare, page of 10 builds × 8,000 checks", || page_figures(place)),
        LimitCheck::new("compare, 2 builds × 1,000,000 checks", || {
            let builds = GeneratedBuilds::new(place, "large", LARGE)?;
            builds.time_runs(&[], FEW_RUNS)?.figures(10.0, Some(2000.0))
        }),
        LimitCheck::new("compare, time per check from 20,000 to 200,000 checks", || growth_figures(place)),
    ]
}

/// Measures the time to write an HTML page, and its size.
fn page_figures(place: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let builds = GeneratedBuilds::new(place, "page", LARGE_PAGE)?;
    let page = place.folder().join("page.html");
    let mut figures = builds.time_runs(&["--html", &page.display().to_string()], RUNS)?.figures(1.0, None)?;
    let size = fs::metadata(&page).map_err(|error| format!("{}: {error}", page.display()))?.len();
    figures.push(BenchFigure::new("page size", size as f64 / 1e6, "MB", Some(FigureBound::Below(3.0))));
    Ok(figures)
}

/// Measures the growth of the time per check with ten times as many checks.
fn growth_figures(place: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let time_per_check = |name, synthetic: SyntheticBuilds| {
        let timings = GeneratedBuilds::new(place, name, synthetic)?.time_runs(&[], RUNS)?;
        let seconds = Samples::new(&timings.seconds).map_err(|error| error.to_string())?;
        Ok::<f64, String>(seconds.median() / synthetic.checks() as f64 * 1e6)
    };
    let (few, many) = (time_per_check("small", SMALL)?, time_per_check("medium", MEDIUM)?);
    Ok(vec![
        BenchFigure::new("per check of 20,000", few, "µs", None),
        BenchFigure::new("per check of 200,000", many, "µs", None),
        BenchFigure::new("ratio", many / few, "×", Some(FigureBound::Below(MAX_GROWTH))),
    ])
}

/// Generated builds on disk, removed on drop.
struct GeneratedBuilds {
    program: PathBuf,
    folder: PathBuf,
    builds: Vec<PathBuf>,
}

/// Times and memory of repeated comparisons.
struct Timings {
    seconds: Vec<f64>,
    /// The largest peak memory, in bytes.
    memory: u64,
}

impl GeneratedBuilds {
    fn new(place: &BenchEnv, name: &str, synthetic: SyntheticBuilds) -> Result<Self, String> {
        let (program, folder) = (place.weighbridge_program()?, place.folder().join(name));
        let builds = synthetic.write(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { program, folder, builds })
    }

    fn time_runs(&self, flags: &[&str], runs: usize) -> Result<Timings, String> {
        let measured = (0..runs).map(|_| self.time_once(flags)).collect::<Result<Vec<_>, String>>()?;
        let seconds = measured.iter().map(|(seconds, _)| *seconds).collect();
        Ok(Timings { seconds, memory: measured.iter().map(|(_, memory)| *memory).max().unwrap_or(0) })
    }

    /// Runs one comparison and returns its seconds and its peak memory in bytes.
    fn time_once(&self, flags: &[&str]) -> Result<(f64, u64), String> {
        let program = self.program.display();
        let start = Instant::now();
        let mut command = Command::new(&self.program);
        let command = command.arg("compare").args(flags).args(&self.builds);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("{program}: {error}"))?;
        let ended = reap(child.id()).ok_or("cannot wait for the comparison")?;
        let seconds = start.elapsed().as_secs_f64();
        match ended.status {
            // Some generated checks got worse.
            ExitStatus::Exited(0 | 2 | 3) => Ok((seconds, ended.usage.max_rss)),
            status => Err(format!("{program} compare ended with {status:?}")),
        }
    }
}

impl Drop for GeneratedBuilds {
    fn drop(&mut self) {
        // If it fails, the folder is removed with the bench's temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Timings {
    /// The time with a limit in seconds, and the memory with a limit in MB.
    ///
    /// # Errors
    /// If there were no runs.
    fn figures(&self, seconds: f64, memory: Option<f64>) -> Result<Vec<BenchFigure>, String> {
        Ok(vec![
            BenchFigure::median("time", &self.seconds, "s", Some(FigureBound::Below(seconds)))?,
            BenchFigure::new("peak memory", self.memory as f64 / 1e6, "MB", memory.map(FigureBound::Below)),
        ])
    }
}

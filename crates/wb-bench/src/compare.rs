//! How fast builds are compared: `weighbridge compare` as a user types it, from start to exit, over made builds whose
//! files are in the system's cache.

use crate::{
    bench_env::BenchEnv,
    limits::{BenchFigure, FigureBound, LimitCheck},
};
use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::Instant,
};
use wb_stats::Samples;
use wb_synthetic::{PAGE, Synthetic};
use wb_sys::process::{ExitStatus, reap};

/// 20,000 checks in ten builds.
const TEN_BUILDS: Synthetic = Synthetic { cases: 125, ..PAGE };
/// The same in two.
const SMALL: Synthetic = Synthetic { builds: 2, ..TEN_BUILDS };
/// 200,000.
const MEDIUM: Synthetic = Synthetic { cases: 1250, ..SMALL };
/// 1,000,000.
const LARGE: Synthetic = Synthetic { tests: 25, ..MEDIUM };

/// Runs of each; the median counts.
const RUNS: usize = 11;
/// Of those that take seconds.
const FEW_RUNS: usize = 5;

/// So much longer may each of ten times as many checks take.
const MAX_GROWTH: f64 = 1.25;

pub(crate) fn limits(place: &BenchEnv) -> Vec<LimitCheck<'_>> {
    vec![
        LimitCheck::new("compare, 10 builds × 20,000 checks, tolerances", || {
            let made = GeneratedBuilds::new(place, "ten", TEN_BUILDS)?;
            Ok(made.time_runs(&["--method", "tolerance"], RUNS)?.figures(0.3, None))
        }),
        LimitCheck::new("compare, 10 builds × 20,000 checks, statistics of 2 × 10 samples", || {
            let made = GeneratedBuilds::new(place, "sampled", Synthetic { samples: 10, ..TEN_BUILDS })?;
            Ok(made.time_runs(&["--method", "statistical"], RUNS)?.figures(3.0, None))
        }),
        LimitCheck::new("compare, page of 10 builds × 8,000 checks", || page_figures(place)),
        LimitCheck::new("compare, 2 builds × 1,000,000 checks", || {
            let made = GeneratedBuilds::new(place, "large", LARGE)?;
            Ok(made.time_runs(&[], FEW_RUNS)?.figures(10.0, Some(2000.0)))
        }),
        LimitCheck::new("compare, growth from 20,000 to 200,000 checks", || growth_figures(place)),
    ]
}

/// The time that a page takes, and its size.
fn page_figures(place: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let made = GeneratedBuilds::new(place, "page", PAGE)?;
    let page = place.folder().join("page.html");
    let mut figures = made.time_runs(&["--html", &page.display().to_string()], RUNS)?.figures(1.0, None);
    let size = fs::metadata(&page).map_err(|error| format!("{}: {error}", page.display()))?.len();
    figures.push(BenchFigure::new("size of the page", size as f64 / 1e6, "MB", Some(FigureBound::Below(3.0))));
    Ok(figures)
}

/// How much longer a check takes among ten times as many.
fn growth_figures(place: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let each = |name, synthetic: Synthetic| {
        let timed = GeneratedBuilds::new(place, name, synthetic)?.time_runs(&[], RUNS)?;
        Ok::<f64, String>(timed.seconds.median() / synthetic.checks() as f64 * 1e6)
    };
    let (few, many) = (each("small", SMALL)?, each("medium", MEDIUM)?);
    Ok(vec![
        BenchFigure::new("each of 20,000", few, "µs", None),
        BenchFigure::new("each of 200,000", many, "µs", None),
        BenchFigure::new("the one over the other", many / few, "×", Some(FigureBound::Below(MAX_GROWTH))),
    ])
}

/// Builds that were written; gone with this.
struct GeneratedBuilds {
    program: PathBuf,
    folder: PathBuf,
    builds: Vec<PathBuf>,
}

/// What comparing took, some times over.
struct Timings {
    seconds: Samples,
    /// The most memory of any, in bytes.
    memory: u64,
}

impl GeneratedBuilds {
    fn new(place: &BenchEnv, name: &str, synthetic: Synthetic) -> Result<Self, String> {
        let (program, folder) = (place.weighbridge_program()?, place.folder().join(name));
        let builds = synthetic.write(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { program, folder, builds })
    }

    fn time_runs(&self, flags: &[&str], runs: usize) -> Result<Timings, String> {
        let taken = (0..runs).map(|_| self.time_once(flags)).collect::<Result<Vec<_>, String>>()?;
        let seconds: Vec<f64> = taken.iter().map(|(seconds, _)| *seconds).collect();
        let seconds = Samples::new(&seconds).map_err(|error| error.to_string())?;
        Ok(Timings { seconds, memory: taken.iter().map(|(_, memory)| *memory).max().unwrap_or(0) })
    }

    /// Compares once; seconds, and bytes of memory at most.
    fn time_once(&self, flags: &[&str]) -> Result<(f64, u64), String> {
        let program = self.program.display();
        let start = Instant::now();
        let mut command = Command::new(&self.program);
        let command = command.arg("compare").args(flags).args(&self.builds);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("{program}: {error}"))?;
        let ended = reap(child.id()).ok_or("a comparison that cannot be waited for")?;
        let seconds = start.elapsed().as_secs_f64();
        match ended.status {
            // Some of what is made up got worse.
            ExitStatus::Exited(0 | 2 | 3) => Ok((seconds, ended.usage.max_rss)),
            status => Err(format!("{program} compare ended with {status:?}")),
        }
    }
}

impl Drop for GeneratedBuilds {
    fn drop(&mut self) {
        // What stays goes with the folder of the bench.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Timings {
    /// The time against so many seconds, and the memory against so many MB.
    fn figures(&self, seconds: f64, memory: Option<f64>) -> Vec<BenchFigure> {
        let time = format!(
            "median time of {} (from {:.2} to {:.2} s)",
            self.seconds.count(),
            self.seconds.min(),
            self.seconds.max()
        );
        vec![
            BenchFigure::new(time, self.seconds.median(), "s", Some(FigureBound::Below(seconds))),
            BenchFigure::new("memory at most", self.memory as f64 / 1e6, "MB", memory.map(FigureBound::Below)),
        ]
    }
}

//! How fast builds are compared: `weighbridge compare` as a user types it, from start to exit, over made builds whose
//! files are in the system's cache.

use crate::{
    limits::{Bound, Figure, Limit},
    place::Place,
};
use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::Instant,
};
use wb_stats::Samples;
use wb_synthetic::{PAGE, Synthetic};
use wb_sys::process::{Status, reap};

/// 20,000 checks in ten builds.
const TEN: Synthetic = Synthetic { cases: 125, ..PAGE };
/// The same in two.
const SMALL: Synthetic = Synthetic { builds: 2, ..TEN };
/// 200,000.
const MEDIUM: Synthetic = Synthetic { cases: 1250, ..SMALL };
/// 1,000,000.
const LARGE: Synthetic = Synthetic { tests: 25, ..MEDIUM };

/// Runs of each; the median counts.
const RUNS: usize = 11;
/// Of those that take seconds.
const FEW: usize = 5;

/// So much longer may each of ten times as many checks take.
const GROWTH: f64 = 1.25;

pub(crate) fn limits(place: &Place) -> Vec<Limit<'_>> {
    vec![
        Limit::new("compare, 10 builds × 20,000 checks, tolerances", || {
            let made = Made::new(place, "ten", TEN)?;
            Ok(made.timed(&["--method", "tolerance"], RUNS)?.figures(0.3, None))
        }),
        Limit::new("compare, 10 builds × 20,000 checks, statistics of 2 × 10 samples", || {
            let made = Made::new(place, "sampled", Synthetic { samples: 10, ..TEN })?;
            Ok(made.timed(&["--method", "statistical"], RUNS)?.figures(3.0, None))
        }),
        Limit::new("compare, page of 10 builds × 8,000 checks", || page(place)),
        Limit::new("compare, 2 builds × 1,000,000 checks", || {
            let made = Made::new(place, "large", LARGE)?;
            Ok(made.timed(&[], FEW)?.figures(10.0, Some(2000.0)))
        }),
        Limit::new("compare, growth from 20,000 to 200,000 checks", || growth(place)),
    ]
}

/// The time that a page takes, and its size.
fn page(place: &Place) -> Result<Vec<Figure>, String> {
    let made = Made::new(place, "page", PAGE)?;
    let page = place.folder().join("page.html");
    let mut figures = made.timed(&["--html", &page.display().to_string()], RUNS)?.figures(1.0, None);
    let size = fs::metadata(&page).map_err(|error| format!("{}: {error}", page.display()))?.len();
    figures.push(Figure::new("size of the page", size as f64 / 1e6, "MB", Some(Bound::Below(3.0))));
    Ok(figures)
}

/// How much longer a check takes among ten times as many.
fn growth(place: &Place) -> Result<Vec<Figure>, String> {
    let each = |name, synthetic: Synthetic| {
        let timed = Made::new(place, name, synthetic)?.timed(&[], RUNS)?;
        Ok::<f64, String>(timed.seconds.median() / synthetic.checks() as f64 * 1e6)
    };
    let (few, many) = (each("small", SMALL)?, each("medium", MEDIUM)?);
    Ok(vec![
        Figure::new("each of 20,000", few, "µs", None),
        Figure::new("each of 200,000", many, "µs", None),
        Figure::new("the one over the other", many / few, "×", Some(Bound::Below(GROWTH))),
    ])
}

/// Builds that were written; gone with this.
struct Made {
    program: PathBuf,
    folder: PathBuf,
    builds: Vec<PathBuf>,
}

/// What comparing took, some times over.
struct Timed {
    seconds: Samples,
    /// The most memory of any, in bytes.
    memory: u64,
}

impl Made {
    fn new(place: &Place, name: &str, synthetic: Synthetic) -> Result<Self, String> {
        let (program, folder) = (place.weighbridge()?, place.folder().join(name));
        let builds = synthetic.write(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { program, folder, builds })
    }

    fn timed(&self, flags: &[&str], runs: usize) -> Result<Timed, String> {
        let taken = (0..runs).map(|_| self.once(flags)).collect::<Result<Vec<_>, String>>()?;
        let seconds: Vec<f64> = taken.iter().map(|(seconds, _)| *seconds).collect();
        let seconds = Samples::new(&seconds).map_err(|error| error.to_string())?;
        Ok(Timed { seconds, memory: taken.iter().map(|(_, memory)| *memory).max().unwrap_or(0) })
    }

    /// Compares once; seconds, and bytes of memory at most.
    fn once(&self, flags: &[&str]) -> Result<(f64, u64), String> {
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
            Status::Exited(0 | 2 | 3) => Ok((seconds, ended.usage.max_rss)),
            status => Err(format!("{program} compare ended with {status:?}")),
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // What stays goes with the folder of the bench.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Timed {
    /// The time against so many seconds, and the memory against so many MB.
    fn figures(&self, seconds: f64, memory: Option<f64>) -> Vec<Figure> {
        let time = format!(
            "median time of {} (from {:.2} to {:.2} s)",
            self.seconds.count(),
            self.seconds.min(),
            self.seconds.max()
        );
        vec![
            Figure::new(time, self.seconds.median(), "s", Some(Bound::Below(seconds))),
            Figure::new("memory at most", self.memory as f64 / 1e6, "MB", memory.map(Bound::Below)),
        ]
    }
}

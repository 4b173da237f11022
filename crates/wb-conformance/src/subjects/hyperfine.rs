//! hyperfine: its JSON is imported, and its CSV, of the same run, is the other side.

use rand::Rng;

use super::{Subject, one_of, version_of};
use crate::case::{CaseError, Runner};
use crate::printed::Printed;

pub(super) struct Hyperfine;

impl Subject for Hyperfine {
    fn name(&self) -> &'static str {
        "hyperfine"
    }

    fn version(&self) -> Option<String> {
        version_of("hyperfine", &["--version"])
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let random = &mut runner.random;
        let mut options = vec![
            format!("--runs={}", random.random_range(2..12)),
            format!("--warmup={}", random.random_range(0..3)),
            "--export-json=runs.json".to_owned(),
            "--export-csv=runs.csv".to_owned(),
        ];
        let has_shell = random.random_bool(0.6);
        if !has_shell {
            options.push("-N".to_owned());
        }
        // Longer than the start of a shell, which hyperfine subtracts.
        let sleep = format!("{} 0.0{}", one_of(random, &["sleep", "/bin/sleep"]), random.random_range(1..9));
        let fails = has_shell && random.random_bool(0.3);
        options.extend(fails.then(|| "--ignore-failure".to_owned()));
        options.push(if fails { format!("{sleep}; exit 3") } else { sleep });
        runner.options = options.join(" ");
        runner.run("hyperfine", &options)?;
        let ours = runner.import(&["runs.json"])?;
        let csv = std::fs::read_to_string(runner.path("runs.csv"))?;
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let (Some(heads), Some(values)) = (lines.next(), lines.next()) else {
            return Err(CaseError::NotReported("row".to_owned()));
        };
        // The CPU times of the export are means over all runs, and no samples have them.
        let mean = heads.iter().position(|head| *head == "mean").and_then(|index| Printed::parse(values.get(index)?));
        runner.compare(&ours, "latency/time", mean.ok_or_else(|| CaseError::NotReported("mean".to_owned()))?);
        Ok(())
    }
}

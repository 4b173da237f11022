//! run-perf's compare-perf: random builds in its layout, and runs that weighbridge writes in it, compared by both with
//! the same random options. Status and score of each check agree in every build, but for the differences that
//! docs/compare.md ("Differences from run-perf") and docs/run-perf.md list.

mod builds;
mod report;

use std::fs;
use std::path::Path;

use rand::Rng;
use serde_json::{Map, Value};

use super::{Subject, one_of};
use crate::case::{CaseError, Runner};
use builds::{random_builds, written_builds};
use report::{OurReport, Reference, expected_exit, test_cases};

const PROGRAM: &str = "compare-perf";
const ANALYZE: &str = "analyze-perf";

pub(super) struct ComparePerf;

/// Options of a comparison, which both programs have.
#[derive(Debug, Default)]
struct Options {
    tolerance: Option<f64>,
    stddev_tolerance: Option<f64>,
    builds_average: Option<f64>,
    n_out_of_results: Option<f64>,
    n: Option<u32>,
    models: Vec<String>,
}

impl Options {
    fn random(random: &mut impl Rng) -> Self {
        let weight = |random: &mut dyn rand::RngCore| random.random_bool(0.3).then(|| one_of(random, &[0.5, 1.0, 2.5]));
        Self {
            tolerance: random.random_bool(0.5).then(|| one_of(random, &[0.5, 1.0, 3.0, 5.0, 7.5, 20.0])),
            stddev_tolerance: random.random_bool(0.5).then(|| one_of(random, &[0.0, 1.0, 5.0, 12.5])),
            builds_average: weight(random),
            n_out_of_results: weight(random),
            n: random.random_bool(0.5).then(|| random.random_range(0..4)),
            models: Vec::new(),
        }
    }

    fn words(&self, names: &OptionNames) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        add(names.tolerance, self.tolerance.map(|value| value.to_string()));
        add(names.stddev_tolerance, self.stddev_tolerance.map(|value| value.to_string()));
        add("--model-builds-average", self.builds_average.map(|value| value.to_string()));
        add("--n-out-of-results", self.n_out_of_results.map(|value| value.to_string()));
        add("--n-out-of-results-n", self.n.map(|value| value.to_string()));
        if names.repeats_models {
            self.models.iter().for_each(|model| add(names.model, Some(model.clone())));
        } else if !self.models.is_empty() {
            words.push(names.model.to_owned());
            words.extend(self.models.iter().cloned());
        }
        words
    }
}

struct OptionNames {
    tolerance: &'static str,
    stddev_tolerance: &'static str,
    model: &'static str,
    /// Whether each model has the option of its own.
    repeats_models: bool,
}

const RUN_PERF: OptionNames =
    OptionNames { tolerance: "-t", stddev_tolerance: "-s", model: "-l", repeats_models: false };
const WEIGHBRIDGE: OptionNames = OptionNames {
    tolerance: "--tolerance",
    stddev_tolerance: "--stddev-tolerance",
    model: "--model",
    repeats_models: true,
};

impl Subject for ComparePerf {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn version(&self) -> Option<String> {
        // It prints no version, but its options.
        super::version_of(PROGRAM, &["--help"]).map(|_| "of run-perf".to_owned())
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let is_written = runner.random.random_bool(0.3);
        let builds = if is_written { written_builds(runner)? } else { random_builds(runner)? };
        let mut options = Options::random(&mut runner.random);
        add_models(runner, &mut options, &builds)?;
        let words = |names| [options.words(names), vec!["--".to_owned()], builds.clone()].concat();
        let kind = if is_written { "written by weighbridge" } else { "random" };
        runner.options = format!("{} ({kind})", words(&RUN_PERF).join(" "));

        let flags = |xunit: &str| ["-vvv".to_owned(), "--xunit".to_owned(), xunit.to_owned()];
        let run_perf = runner.output_of(PROGRAM, &[&flags("run-perf.xml")[..], &words(&RUN_PERF)].concat())?;
        let printed = String::from_utf8_lossy(&run_perf.stderr).into_owned();
        if !matches!(run_perf.status.code(), Some(0 | 2 | 3)) || printed.contains("Traceback") {
            return Err(CaseError::Refused(printed));
        }
        let reference = Reference::parse(&printed, builds.len() - 1).ok_or_else(|| unexpected("row", &printed))?;
        let head = ["compare", "--method", "tolerance", "--json"].map(str::to_owned);
        let json = runner.weighbridge_output(&[&head[..], &words(&WEIGHBRIDGE)].concat())?;
        let ours: OurReport = match json.status.code() {
            Some(0 | 2 | 3 | 4) if !json.stdout.is_empty() => OurReport::new(&serde_json::from_slice(&json.stdout)?),
            // Nothing can be compared.
            Some(4) => OurReport::default(),
            _ => return Err(CaseError::Failed(String::from_utf8_lossy(&json.stderr).trim().to_owned())),
        };
        ours.compare(&reference, runner);

        let own = ["compare-perf".to_owned()];
        let output = runner.weighbridge_output(&[&own[..], &flags("ours.xml"), &words(&RUN_PERF)].concat())?;
        let read = |runner: &Runner, name: &str| fs::read_to_string(runner.path(name)).map(|text| test_cases(&text));
        let their_cases = read(runner, "run-perf.xml")?;
        let expected = expected_exit(&their_cases, &reference);
        runner.require(output.status.code() == Some(expected), || {
            let (ours, run_perf) = (output.status, run_perf.status);
            let printed = String::from_utf8_lossy(&output.stdout);
            let first = printed.lines().next().unwrap_or_default();
            format!("ended with {ours}, expected {expected} ({first}); run-perf's with {run_perf}")
        });
        if expected != 4 {
            let our_cases = read(runner, "ours.xml")?;
            runner.require(our_cases.keys().eq(their_cases.keys()), || {
                let missing: Vec<_> = their_cases.keys().filter(|name| !our_cases.contains_key(*name)).collect();
                let further: Vec<_> = our_cases.keys().filter(|name| !their_cases.contains_key(*name)).collect();
                format!("test cases that are missing: {missing:?}, and that run-perf does not have: {further:?}")
            });
        }
        Ok(())
    }
}

fn unexpected(what: &str, text: &str) -> CaseError {
    CaseError::NotReported(format!("{what} in `{}`", text.chars().take(300).collect::<String>()))
}

/// Fits up to two models to some of the builds, with run-perf's program; one may have the form of its older versions.
fn add_models(runner: &mut Runner, options: &mut Options, builds: &[String]) -> Result<(), CaseError> {
    for number in 0..one_of(&mut runner.random, &[0, 0, 1, 2]) {
        let name = format!("model{number}.json");
        let kind = one_of(&mut runner.random, &["-l", "-s"]);
        let tolerance = one_of(&mut runner.random, &["1.5", "4", "10"]);
        let first = runner.random.random_range(0..builds.len());
        let head = [kind, &name, "-t", tolerance, "--"].map(str::to_owned);
        runner.output_of(ANALYZE, &[&head[..], &builds[first..]].concat())?;
        let path = runner.path(&name);
        // What it cannot fit, such as builds with errors alone, has no model.
        if path.metadata().is_ok_and(|file| file.len() > 0) {
            if runner.random.random_bool(0.2) {
                write_old_form(&path)?;
            }
            options.models.push(name);
        }
    }
    Ok(())
}

/// Replaces a model by its equations alone.
fn write_old_form(path: &Path) -> Result<(), CaseError> {
    let model: Map<String, Value> = serde_json::from_slice(&fs::read(path)?)?;
    let equations = model.into_iter().filter(|(id, _)| id != "__metadata__");
    let old: Map<String, Value> = equations.map(|(id, mut entry)| (id, entry["equation"].take())).collect();
    Ok(fs::write(path, Value::Object(old).to_string())?)
}

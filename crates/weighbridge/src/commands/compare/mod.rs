//! `weighbridge compare`: compares builds and writes tables, pages and plots.

mod analysis;
mod builds;
mod isa;
mod model;
mod nothing_comparable;
mod primary_metrics;
mod render;
mod thresholds;
mod within_run;

use wb_compare::build::EMULATED;
use wb_compare::comparison::{
    BuildHistory, CheckResult, ComparisonMethod, ComparisonResult, FailOn, FinalVerdict, StatisticalSummary, Strictness,
};
use wb_compare::run_perf::tolerance::{self, Status, average::Average, averages::TABLES, score::Weights};
use wb_compare::statistical::{self, Threshold};
use wb_compare::unknown_name::check_directions;
use wb_compare::{Builds, LoadedBuilds, SampleCounts};
use wb_report::compare::{AveragesTable, ComparisonCsv, Verbosity, csv, junit, markdown, text};
use wb_stats::RunPrior;

use crate::cli::OutputPath;
use crate::cli::compare::{CompareArgs, FailOnArg, MethodArg};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{self, print_json, print_text, write_file};

pub(crate) use analysis::{analyze, nearest, strip};
pub(crate) use model::model;

/// What the tables of averages are grouped by, in order.
const AVERAGES: [&str; 3] = ["case", "metric", "profile"];

/// The tolerance verdicts whose scores are summarised, in run-perf's order.
const SCORES: [(&str, &[Status]); 6] = [
    (
        "total",
        &[
            Status::Improved,
            Status::MinorGain,
            Status::Regressed,
            Status::MinorLoss,
            Status::Equivalent,
            Status::Differs,
        ],
    ),
    ("improved", &[Status::Improved]),
    ("minor-gain", &[Status::MinorGain]),
    ("equivalent", &[Status::Equivalent]),
    ("minor-loss", &[Status::MinorLoss]),
    ("regressed", &[Status::Regressed]),
];

/// Compares builds.
pub(crate) fn compare(args: &CompareArgs, console: &Console) -> Result<Exit, Error> {
    let LoadedBuilds { builds: mut read, warnings } = match args.by {
        None => builds::read_with_warnings(require_two(&args.builds)?, &args.read, &args.allow_different, console)?,
        Some(_) => within_run::read(args, console)?,
    };
    builds::require_same_layout(&read)?;
    let common_runs = builds::check_common_runs(&read, &args.read)?;
    let (models, noise) = builds::read_models(&args.model, &read, console)?;
    let threshold = args.threshold.unwrap_or_default();
    if threshold == Threshold::FromNoise && noise.is_empty() {
        let what = "--threshold model requires a noise model".to_owned();
        let help = "fit one with `weighbridge model fit --noise -o noise.json RUNS…` and pass it with `-m noise.json`"
            .to_owned();
        return Err(Error::Usage { what, help });
    }
    read.decide_by(&args.metric)?;
    if let Some(by) = &args.by {
        read = within_run::split(read, by, args, console)?;
    }
    check_directions(&read, &args.direction)?;
    read.set_directions(&args.direction);
    let directions = read.directions().clone();
    let tolerances = tolerance::Options {
        tolerance: tolerance(args),
        stddev_tolerance: args.stddev_tolerance,
        weights: Weights {
            builds_average: args.model_builds_average,
            n_out_of_results: args.n_out_of_results,
            n: args.n_out_of_results_n,
        },
        directions: directions.clone(),
        average: args.method.map(|method| match method {
            MethodArg::Tolerance => Average::Arithmetic,
            MethodArg::Statistical => Average::Geometric,
        }),
    };
    let statistics = statistical::Options {
        threshold,
        run_noise: match args.by {
            Some(_) => RunPrior::NONE,
            None => RunPrior::new(args.run_noise / 100.0).unwrap_or(RunPrior::NONE),
        },
        directions,
        ..statistical::Options::default()
    };
    let by_tolerance = tolerance::compare(&read, &models, &tolerances);
    // Builds between the first and the last are shown only on the page.
    let last = read.list().len() - 1;
    let shown = if args.html.is_some() { 1 } else { last };
    let against = |build| (build >= shown).then(|| statistical::against(&read, build, &noise, &statistics)).flatten();
    let by_statistics: Vec<_> = (1..=last).map(against).collect();
    let of_last = by_statistics.last().and_then(Option::as_ref);
    let method = args.method.map(|method| match method {
        MethodArg::Tolerance => ComparisonMethod::Tolerance,
        MethodArg::Statistical => ComparisonMethod::Statistical,
    });
    let outcome = ComparisonResult::new(&read, &by_tolerance, of_last, method, fail_on(args));
    let disturbed = disturbed_single_run_warning(args, &outcome);
    if let Some(warning) = &disturbed {
        crate::console::message!("warning: {warning}");
    }
    let thresholds = thresholds::differences(threshold, &read);
    let primary_metrics = primary_metrics::differences(&read);
    for note in common_runs.iter().chain(&thresholds).chain(&primary_metrics) {
        crate::console::message!("note: {note}");
    }
    let by_tolerances = outcome.checks.iter().any(|check| check.decided_by == ComparisonMethod::Tolerance);
    if args.tolerance.is_some() && !by_tolerances {
        crate::console::message!("note: --tolerance has no effect: statistics decide, by --threshold");
    }
    write_files(args, &outcome, &read)?;
    if let Some(path) = &args.html {
        let notes = warnings
            .iter()
            .map(ToString::to_string)
            .chain(disturbed)
            .chain(common_runs)
            .chain(thresholds)
            .chain(primary_metrics)
            .collect();
        render::write_page(
            args,
            path,
            &outcome,
            &BuildHistory::new(&read, &by_tolerance, &by_statistics, method),
            notes,
        )?;
    }
    render::write_plots(args, &read)?;
    if args.json {
        print_json(&outcome)?;
    } else {
        let last = by_tolerance.last().unwrap_or_default();
        let shown = if args.verbose { Verbosity::All } else { Verbosity::Changes };
        let averages: Vec<AveragesTable<'_>> =
            AVERAGES.into_iter().zip(TABLES.map(|wildcards| by_tolerance.averages(last, wildcards))).collect();
        let is_scored = |check: &CheckResult| check.primary && check.decided_by == ComparisonMethod::Tolerance;
        let decides = outcome.checks.iter().any(is_scored);
        let scores = SCORES.map(|(name, statuses)| (name, by_tolerance.score_distribution(last, statuses)));
        let scores = if decides { &scores[..] } else { &[] };
        print_text(&text(&outcome, &describe_options(args, &read), &averages, scores, shown, console.stdout_style))?;
    }
    if is_refused_for_emulation(&outcome) {
        crate::console::message!("note: emulated machines are not compared with hardware");
        crate::console::message!("help: --allow-emulated compares them all the same");
    }
    if let Some(isa::CommonIsa { isa, measured_isas: measured, command }) = isa::find_common_isa(&outcome) {
        let measured: Vec<&str> = measured.into_iter().map(|isa| isa.name()).collect();
        crate::console::message!(
            "note: figures with different instruction sets ({}) are not compared",
            measured.join(", ")
        );
        crate::console::message!("help: all machines support {isa}: measure with `{command}`");
    }
    if outcome.exit_code == Exit::NothingToDo.code() {
        return Err(nothing_comparable::error(&outcome, args.by.is_some()));
    }
    Ok(match outcome.exit_code {
        0 => Exit::Success,
        2 => Exit::Regression,
        _ => Exit::Incomplete,
    })
}

/// Requires a reference and a build to judge.
fn require_two(builds: &[String]) -> Result<&[String], Error> {
    match builds {
        [] | [_] => Err(Error::Usage {
            what: "too few builds: expected two or more".to_owned(),
            help: "the first build is the reference, the last one is judged; --by compares parts of one run".to_owned(),
        }),
        builds => Ok(builds),
    }
}

/// The tolerated difference of a mean, in percent.
fn tolerance(args: &CompareArgs) -> f64 {
    args.tolerance.unwrap_or(tolerance::Options::default().tolerance)
}

/// The verdicts that fail the comparison in addition to regressions.
pub(super) fn fail_on(args: &CompareArgs) -> FailOn {
    let has = |verdict| args.fail_on.contains(&verdict);
    let strictness = match (has(FailOnArg::Inconclusive), has(FailOnArg::Unconfirmed)) {
        (true, _) => Strictness::Inconclusive,
        (false, true) => Strictness::Unconfirmed,
        (false, false) => Strictness::Regressions,
    };
    FailOn { gain: args.fail_on_gain, missing: has(FailOnArg::Missing), strictness }
}

/// A warning if single runs with disturbed samples are compared as if runs did not differ.
fn disturbed_single_run_warning(args: &CompareArgs, outcome: &ComparisonResult) -> Option<String> {
    let rests_on_samples = |check: &CheckResult| {
        let single_runs = |statistics: &StatisticalSummary| !statistics.counts.has_several_runs();
        check.decided_by == ComparisonMethod::Statistical
            && check.reason.is_none()
            && check.statistics.as_ref().is_some_and(single_runs)
    };
    let [reference, .., judged] = &outcome.builds[..] else { return None };
    let counts = [reference, judged].into_iter().filter_map(|build| Some((&build.name, build.samples?)));
    let disturbed = counts.filter(|(_, samples)| samples.disturbed > 0);
    let disturbed: Vec<String> = disturbed
        .map(|(name, SampleCounts { counted, disturbed })| format!("{disturbed} of {counted} in `{name}`"))
        .collect();
    let applies = args.run_noise == 0.0 && outcome.checks.iter().any(rests_on_samples);
    (applies && !disturbed.is_empty())
        .then(|| format!("--run-noise 0 lets disturbed samples decide: {}", disturbed.join(", ")))
}

/// Whether a comparison was refused because one side was measured on an emulated machine.
fn is_refused_for_emulation(outcome: &ComparisonResult) -> bool {
    let refused = outcome.checks.iter().filter(|check| check.final_verdict == FinalVerdict::Incomparable);
    refused.flat_map(|check| &check.differences).any(|difference| difference.name == EMULATED)
}

/// Describes the thresholds, tolerances and models of the comparison.
fn describe_options(args: &CompareArgs, builds: &Builds) -> Vec<String> {
    let threshold = thresholds::describe(args.threshold.unwrap_or_default(), builds);
    // A noise model replaces the assumption where it knows a check, which is said beside the check.
    let runs = match args.by {
        Some(_) => Some("no noise between runs, as both sides are of one run".to_owned()),
        None => {
            args.model.is_empty().then(|| format!("runs of one build are assumed to differ by {} %", args.run_noise))
        }
    };
    let confidence = Some(format!("intervals hold with {} % confidence or more", wb_stats::CONFIDENCE * 100.0));
    let tolerance = format!("tolerances of {} % and {} points", tolerance(args), args.stddev_tolerance);
    let models = args.model.iter().map(|file| format!("by the model {}", file.display()));
    [Some(threshold), runs, confidence, Some(tolerance)].into_iter().flatten().chain(models).collect()
}

fn write_files(args: &CompareArgs, outcome: &ComparisonResult, builds: &Builds) -> Result<(), Error> {
    let report = |what: &str, path: &OutputPath| crate::console::message!("{what}: {path}");
    if let Some(prefix) = &args.csv {
        let ComparisonCsv { checks, aspects, samples, groups } = csv(outcome, builds);
        let files = output::write_files(prefix, [checks, aspects, samples, groups])?;
        crate::console::message!("figures: {files}");
    }
    if let Some(path) = &args.junit {
        let text = junit(outcome, fail_on(args));
        let text = text.map_err(Error::output(path))?;
        write_file(path, &text)?;
        report("JUnit", path);
    }
    if let Some(path) = &args.markdown {
        write_file(path, &markdown(outcome))?;
        report("comment", path);
    }
    Ok(())
}

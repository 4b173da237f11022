//! `weighbridge compare`: compares builds and writes tables, pages and plots.

mod analysis;
mod builds;
mod criteria;
mod isa;
mod model;
mod render;
mod within_run;

use wb_compare::comparison::{FailOn, Strictness};
use wb_compare::run_perf::tolerance::{self, average::Average, score::Weights};
use wb_compare::sides::require_two;
use wb_compare::statistical::{self, Threshold};
use wb_compare::unknown_name::check_directions;
use wb_compare::{Builds, Judgement, JudgementOptions, LoadedBuilds, Models, NothingComparable};
use wb_report::compare::{ComparisonCsv, csv, junit, markdown};
use wb_results::comparison::{ComparisonMethod, ComparisonResult};
use wb_stats::RunPrior;

use crate::cli::OutputPath;
use crate::cli::compare::{CompareArgs, FailOnArg, MethodArg};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{self, print_json, write_file};

pub(crate) use analysis::{analyze, nearest, strip};
pub(crate) use model::model;

pub(crate) fn compare(args: &CompareArgs, console: &Console) -> Result<Exit, Error> {
    let LoadedBuilds { builds: mut read, warnings } = match args.by {
        None => builds::read_with_warnings(require_two(&args.builds)?, &args.read, &args.allow_different, console)?,
        Some(_) => within_run::read(args, console)?,
    };
    read.require_same_layout()?;
    let common_run = common_run(args, &read)?;
    let models = Models::read(&args.model, &read)?;
    if !console.quiet {
        models.unseen_provenance.iter().for_each(|note| crate::console::message!("note: {note}"));
    }
    if args.threshold == Some(Threshold::FromNoise) && models.noise.is_empty() {
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
    let options = options(args, &read);
    let judgement = Judgement::new(&read, &models, &options);
    let result = &judgement.result;
    let disturbed = judgement.disturbed_single_run_warning();
    if let Some(warning) = &disturbed {
        crate::console::message!("warning: {warning}");
    }
    let notes: Vec<String> = common_run.into_iter().chain(judgement.differences_of_plans()).collect();
    notes.iter().for_each(|note| crate::console::message!("note: {note}"));
    if args.tolerance.is_some() && !judgement.is_any_decided_by_tolerance() {
        crate::console::message!("note: --tolerance has no effect: statistics decide, by --threshold");
    }
    write_files(args, result, &read)?;
    if let Some(path) = &args.html {
        let notes = warnings.iter().map(ToString::to_string).chain(disturbed).chain(notes).collect();
        render::write_page(args, path, result, &judgement.history(), notes)?;
    }
    render::write_plots(args, &read)?;
    if args.json {
        print_json(result)?;
    } else {
        render::print(args, &judgement, &read, console)?;
    }
    if judgement.is_refused_for_emulation() {
        crate::console::message!("note: emulated machines are not compared with hardware");
        crate::console::message!("help: --allow-emulated compares them all the same");
    }
    if let Some(isa::CommonIsa { isa, measured_isas: measured, command }) = isa::find_common_isa(result) {
        let measured: Vec<&str> = measured.into_iter().map(|isa| isa.name()).collect();
        crate::console::message!(
            "note: figures with different instruction sets ({}) are not compared",
            measured.join(", ")
        );
        crate::console::message!("help: all machines support {isa}: measure with `{command}`");
    }
    match result.exit_code {
        0 => Ok(Exit::Success),
        2 => Ok(Exit::Regression),
        4 => Err(NothingComparable::new(result).into()),
        _ => Ok(Exit::Incomplete),
    }
}

/// A note if a run is compared with itself. Other profiles or cells of one run are sides of their own.
fn common_run(args: &CompareArgs, builds: &Builds) -> Result<Option<String>, Error> {
    if !args.read.map.is_empty() || !args.read.map_value.is_empty() {
        return Ok(None);
    }
    let common = builds.common_run()?;
    Ok(common.map(|common| format!("{common}: a run that is compared with itself shows no difference")))
}

fn options(args: &CompareArgs, builds: &Builds) -> JudgementOptions {
    let directions = builds.directions();
    let tolerance = tolerance::Options {
        tolerance: criteria::tolerance(args),
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
        threshold: args.threshold.unwrap_or_default(),
        run_noise: match args.by {
            Some(_) => RunPrior::NONE,
            None => RunPrior::new(args.run_noise / 100.0).unwrap_or(RunPrior::NONE),
        },
        directions: directions.clone(),
        ..statistical::Options::default()
    };
    let method = args.method.map(|method| match method {
        MethodArg::Tolerance => ComparisonMethod::Tolerance,
        MethodArg::Statistical => ComparisonMethod::Statistical,
    });
    JudgementOptions {
        tolerance,
        statistics,
        method,
        fail_on: fail_on(args),
        // Builds between the first and the last are shown only on the page.
        has_history: args.html.is_some(),
    }
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

//! Prints a comparison, and writes its HTML page and plots.

use rayon::prelude::*;
use wb_compare::comparison::BuildHistory;
use wb_compare::run_perf::tolerance::averages::TABLES;
use wb_compare::{Builds, Judgement};
use wb_model::pluralize;
use wb_report::compare::{AveragesTable, PageOptions, Plot, Verbosity, html, plots as collect_plots, text};
use wb_results::comparison::{CheckResult, ComparisonMethod, ComparisonResult, Statistic, Status};

use crate::cli::compare::CompareArgs;
use crate::cli::{OutputFolder, OutputPath};
use crate::console::Console;
use crate::error::Error;
use crate::output::{print_text, write_file};

use super::criteria;

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

pub(super) fn print(
    args: &CompareArgs,
    judgement: &Judgement<'_>,
    builds: &Builds,
    console: &Console,
) -> Result<(), Error> {
    let Judgement { result, by_tolerance, .. } = judgement;
    let last = by_tolerance.last().unwrap_or_default();
    let shown = if args.verbose { Verbosity::All } else { Verbosity::Changes };
    let averages: Vec<AveragesTable<'_>> =
        AVERAGES.into_iter().zip(TABLES.map(|wildcards| by_tolerance.averages(last, wildcards))).collect();
    let is_scored = |check: &CheckResult| check.primary && check.decided_by == ComparisonMethod::Tolerance;
    let decides = result.checks.iter().any(is_scored);
    let scores = SCORES.map(|(name, statuses)| (name, by_tolerance.score_distribution(last, statuses)));
    let scores = if decides { &scores[..] } else { &[] };
    print_text(&text(result, &criteria::describe(args, builds), &averages, scores, shown, console.stdout_style))
}

pub(super) fn write_page(
    args: &CompareArgs,
    path: &OutputPath,
    outcome: &ComparisonResult,
    history: &BuildHistory<'_>,
    notes: Vec<String>,
) -> Result<(), Error> {
    let (charts, environments) = (!args.no_charts, !args.no_environments);
    let criteria = criteria::describe(args, history.builds);
    let options =
        PageOptions { charts, environments, notes: &notes, criteria: &criteria, fail_on: super::fail_on(args) };
    let text = html(outcome, history, &options).map_err(|error| Error::Internal(error.to_string()))?;
    write_file(path, &text)?;
    crate::console::message!("page: {path}");
    Ok(())
}

pub(super) fn write_plots(args: &CompareArgs, builds: &Builds) -> Result<(), Error> {
    if args.svg.is_none() && args.png.is_none() {
        return Ok(());
    }
    let ids = || builds.rows().map(|row| builds.id(row, Statistic::Mean).to_string());
    if let Some(glob) = args.baseline.iter().find(|glob| !ids().any(|id| glob.is_match(&id))) {
        return Err(Error::Usage {
            what: format!("no check matches the baseline `{}`", glob.glob()),
            help: "`weighbridge analyze` lists all checks; a glob matches the whole identifier: `*/iperf3/*`"
                .to_owned(),
        });
    }
    let plots = collect_plots(builds, |id| args.baseline.iter().any(|glob| glob.is_match(id)));
    if let Some(folder) = &args.svg {
        write_plot_files(folder, "svg", &plots, |plot| Ok(plot.svg().into_bytes()))?;
    }
    if let Some(folder) = &args.png {
        let png = |plot: &Plot| plot.png().map_err(|error| Error::Internal(format!("{}: {error}", plot.name)));
        write_plot_files(folder, "png", &plots, png)?;
    }
    Ok(())
}

fn write_plot_files(
    folder: &OutputFolder,
    extension: &str,
    plots: &[Plot],
    draw: impl Fn(&Plot) -> Result<Vec<u8>, Error> + Sync,
) -> Result<(), Error> {
    std::fs::create_dir_all(folder.as_path()).map_err(Error::file("create", folder.as_path()))?;
    plots
        .par_iter()
        .try_for_each(|plot| write_file(&folder.join(format!("{}.{extension}", plot.name)), &draw(plot)?))?;
    crate::console::message!("{}: {}", pluralize(plots.len(), "plot"), folder.as_path().display());
    Ok(())
}

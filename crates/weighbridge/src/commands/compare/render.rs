//! Writes the HTML page and the plots of a comparison.

use rayon::prelude::*;
use wb_compare::comparison::{BuildHistory, ComparisonResult};
use wb_compare::{Builds, Statistic};
use wb_model::pluralize;
use wb_report::compare::{PageOptions, Plot, html, plots as collect_plots};

use crate::cli::compare::CompareArgs;
use crate::cli::{OutputFolder, OutputPath};
use crate::error::Error;
use crate::output::write_file;

/// Writes the HTML page.
pub(super) fn write_page(
    args: &CompareArgs,
    path: &OutputPath,
    outcome: &ComparisonResult,
    history: &BuildHistory<'_>,
    notes: Vec<String>,
) -> Result<(), Error> {
    let (charts, environments) = (!args.no_charts, !args.no_environments);
    let criteria = super::describe_options(args, history.builds);
    let options =
        PageOptions { charts, environments, notes: &notes, criteria: &criteria, fail_on: super::fail_on(args) };
    let text = html(outcome, history, &options).map_err(|error| Error::Internal(error.to_string()))?;
    write_file(path, &text)?;
    crate::console::message!("page: {path}");
    Ok(())
}

/// Writes the requested box plots.
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

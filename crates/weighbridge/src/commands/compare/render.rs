//! What a comparison is drawn as: its page and its plots.

use std::path::Path;

use rayon::prelude::*;
use wb_compare::comparison::{BuildHistory, ComparisonResult};
use wb_compare::{Builds, Statistic};
use wb_model::pluralize;
use wb_report::compare::{PageOptions, Plot, html, plots as drawn};

use crate::cli::compare::CompareArgs;
use crate::commands::write_file;
use crate::error::Error;

/// Writes the page.
pub(super) fn write_page(
    args: &CompareArgs,
    path: &Path,
    outcome: &ComparisonResult,
    history: &BuildHistory<'_>,
    notes: Vec<String>,
) -> Result<(), Error> {
    let (charts, environments) = (!args.no_charts, !args.no_environments);
    let options = PageOptions { charts, environments, notes: &notes, fail_on_gain: args.fail_on_gain };
    let text = html(outcome, history, &options).map_err(|error| Error::Internal(error.to_string()))?;
    write_file(path, &text)?;
    crate::console::tell!("page: {}", path.display());
    Ok(())
}

/// Writes the box plots that were asked for.
pub(super) fn write_plots(args: &CompareArgs, builds: &Builds) -> Result<(), Error> {
    if args.svg.is_none() && args.png.is_none() {
        return Ok(());
    }
    let known = || builds.rows().map(|row| builds.id(row, Statistic::Mean).to_string());
    if let Some(glob) = args.baseline.iter().find(|glob| !known().any(|id| glob.is_match(&id))) {
        return Err(Error::Usage {
            what: format!("no check matches the baseline `{}`", glob.glob()),
            help: "`weighbridge analyze` lists all; a glob matches the whole identifier: `*/iperf3/*`".to_owned(),
        });
    }
    let plots = drawn(builds, |id| args.baseline.iter().any(|glob| glob.is_match(id)));
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
    folder: &Path,
    ending: &str,
    plots: &[Plot],
    draw: impl Fn(&Plot) -> Result<Vec<u8>, Error> + Sync,
) -> Result<(), Error> {
    let unmade = |source| Error::File { path: folder.display().to_string(), source };
    std::fs::create_dir_all(folder).map_err(unmade)?;
    plots.par_iter().try_for_each(|plot| {
        let path = folder.join(format!("{}.{ending}", plot.name));
        Ok::<_, Error>(wb_record::files::write_atomic(&path, &draw(plot)?)?)
    })?;
    crate::console::tell!("{}: {}", pluralize(plots.len(), "plot"), folder.display());
    Ok(())
}

//! Reads builds for the commands that compare.

use std::collections::BTreeMap;

use wb_compare::build::DEFINING_PARAMS;
use wb_compare::sides::make_names_distinct;
use wb_compare::{BuildSource, Builds, LoadedBuilds, ReadOptions, ValueMap};
use wb_model::Case;
use wb_plan::{Catalog, SelectableCell, Selection};
use wb_record::RunFolder;
use wb_results::comparison::Statistic;
use wb_session::definitions::{registry, study_in_memory};

use crate::cli::compare::BuildFlags;
use crate::commands::latest_run::resolve_build;
use crate::commands::read;
use crate::console::Console;
use crate::error::Error;

/// Reads builds from arguments and fails on damaged ones; other problems are printed as notes.
pub(super) fn read_strictly(typed: &[String], flags: &BuildFlags, console: &Console) -> Result<Builds, Error> {
    let LoadedBuilds { builds, warnings } = read_with_warnings(typed, flags, &[], console)?;
    builds.require_same_layout()?;
    match warnings.iter().find(|warning| warning.is_damage()) {
        None => Ok(builds),
        Some(damage) => Err(Error::Incomplete {
            what: damage.message(),
            help: "exclude this run, or repeat the command that measured it: it retakes damaged samples".to_owned(),
        }),
    }
}

/// Reads the selected cells of builds, with warnings; cells may differ in the parameters of `allow_different`.
pub(super) fn read_with_warnings(
    typed: &[String],
    flags: &BuildFlags,
    allow_different: &[String],
    console: &Console,
) -> Result<LoadedBuilds, Error> {
    let allow_different = allow_different.iter().cloned().collect();
    read_with_options(typed, flags, ReadOptions { allow_different, ..ReadOptions::default() }, console)
}

/// Reads builds, with warnings; the flags complete `options`.
pub(super) fn read_with_options(
    typed: &[String],
    flags: &BuildFlags,
    options: ReadOptions,
    console: &Console,
) -> Result<LoadedBuilds, Error> {
    let selection = Selection::new(&flags.selection.select, &flags.selection.ignore)?;
    let resolved = typed.iter().map(|text| resolve_build(text, console)).collect::<Result<Vec<_>, _>>()?;
    let typed = &resolved[..];
    let mut sources = typed.iter().map(|text| BuildSource::parse(text)).collect::<Result<Vec<_>, _>>()?;
    make_names_distinct(&mut sources, typed)?;
    if let Some(first) = sources.first_mut() {
        first.profiles.extend(flags.map.iter().cloned());
    }
    let BuildFlags { include_incorrect, strict, allow_emulated, .. } = *flags;
    let values = ValueMap::new(&flags.map_value);
    let options = ReadOptions { include_incorrect, strict, allow_emulated, values, ..options };
    let events = console.events();
    let mut read = wb_compare::read(&sources, &options, &|run: &RunFolder| study_in_memory(run, &events))?;
    if !console.quiet {
        read.warnings.iter().for_each(|warning| crate::console::message!("note: {warning}"));
    }
    select(&mut read.builds, &selection, console)?;
    Ok(read)
}

fn select(builds: &mut Builds, selection: &Selection, console: &Console) -> Result<(), Error> {
    if selection.is_unrestricted() || builds.rows().len() == 0 {
        return Ok(());
    }
    // Aliases are those of tests that come with the program or that the user defined.
    let registry = registry(&[], None, &console.events())?;
    let mut numbers = BTreeMap::new();
    let mut cells = Vec::new();
    for row in builds.rows() {
        let id = builds.id(row, Statistic::Mean);
        let name = format!("{}/{}/{}:{}", id.profile, id.test, id.serial, id.case);
        if numbers.contains_key(&name) {
            continue;
        }
        let params = builds.list().iter().flat_map(|build| build.readings(row)).next();
        let params = params.into_iter().flat_map(|reading| builds.params(reading.params));
        // What defines a cell beside its parameters has no name that a user could know.
        let params = params.filter(|(name, _)| !DEFINING_PARAMS.contains(name));
        let axes = id.case.parse::<Case>().unwrap_or_default();
        let values = params.chain(axes.axes()).map(|(name, value)| (name.to_owned(), value.to_owned()));
        cells.push(SelectableCell::from_texts(name.clone(), values, registry.declaration(id.test)));
        numbers.insert(name, cells.len() - 1);
    }
    let all = cells.len();
    let help =
        || format!("without --select and --ignore the builds have {all} cells; `weighbridge analyze` lists them");
    let selected = read::select(selection, &cells, help)?;
    builds.retain_cells(|name| match numbers.get(name) {
        Some(number) => selected[*number],
        // Errors of cells without values.
        None => selection.skip_reason(&SelectableCell::from_texts(name.to_owned(), [], None)).is_none(),
    });
    Ok(())
}

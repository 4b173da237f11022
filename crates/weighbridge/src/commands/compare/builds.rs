//! Reads builds and models for the commands that compare.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wb_compare::build::DEFINING_PARAMS;
use wb_compare::{
    AnyModel, Build, BuildSource, Builds, LoadedBuilds, NoiseModel, ReadOptions, Statistic, ToleranceModel, ValueMap,
};
use wb_model::Case;
use wb_plan::{Catalog, SelectableCell, Selection};
use wb_record::RunFolder;
use wb_session::definitions::{registry, study_in_memory};

use crate::cli::compare::BuildFlags;
use crate::commands::latest_run::resolve_build;
use crate::commands::read;
use crate::console::Console;
use crate::error::Error;

/// Reads a model, which must have an entry for at least one check of the builds.
pub(super) fn read_model(file: &Path, builds: &Builds) -> Result<AnyModel, Error> {
    let model = AnyModel::read(file)?;
    let (has_match, first) = match &model {
        AnyModel::Tolerance(model) => (model.covers_any(builds), model.entries.keys().next()),
        AnyModel::Noise(model) => (model.covers_any(builds), model.checks.keys().next()),
    };
    if has_match {
        return Ok(model);
    }
    let in_model = first.map_or("", String::as_str);
    let in_builds = builds.rows().next().map(|row| builds.id(row, Statistic::Mean).to_string()).unwrap_or_default();
    Err(Error::Usage {
        what: format!("model {} does not match any check of these builds", file.display()),
        help: format!("the model has `{in_model}`, the builds have `{in_builds}`"),
    })
}

/// Reads the models of a comparison: score models and noise models. Notes where a noise model was fitted on a different
/// system.
pub(super) fn read_models(
    files: &[PathBuf],
    builds: &Builds,
    console: &Console,
) -> Result<(Vec<ToleranceModel>, Vec<NoiseModel>), Error> {
    let (mut scores, mut noise) = (Vec::new(), Vec::new());
    for file in files {
        match read_model(file, builds)? {
            AnyModel::Tolerance(model) => scores.push(model),
            AnyModel::Noise(model) => {
                let differences = if console.quiet { Vec::new() } else { model.unseen_provenance(builds.list()) };
                for (what, build, value) in differences {
                    crate::console::message!(
                        "note: {}: fitted on another {what} than {value} of build `{build}`",
                        file.display()
                    );
                }
                noise.push(model);
            }
        }
    }
    Ok((scores, noise))
}

/// Refuses a first and a last build with a run in common, as those are no independent sides. A run is compared with itself
/// alone, with a note.
pub(super) fn check_common_runs(builds: &Builds, flags: &BuildFlags) -> Result<Option<String>, Error> {
    let [reference, .., judged] = builds.list() else { return Ok(None) };
    // Other profiles or cells of one run are sides of their own.
    let is_mapped = !flags.map.is_empty() || !flags.map_value.is_empty();
    let Some([one, other]) = reference.common_runs(judged).next().filter(|_| !is_mapped) else { return Ok(None) };
    let what = if one == other {
        format!("{} is on both sides", one.display())
    } else {
        format!("{} and {} are one run, or imports of one file", one.display(), other.display())
    };
    if (reference.runs.len(), judged.runs.len()) == (1, 1) {
        return Ok(Some(format!("{what}: a run that is compared with itself shows no difference")));
    }
    let help = "give each run to one build alone".to_owned();
    Err(Error::Usage { what, help })
}

/// Names builds by their full paths if their folders have the same name.
fn make_names_distinct(sources: &mut [BuildSource], typed: &[String]) -> Result<(), Error> {
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    for (source, text) in sources.iter_mut().zip(typed) {
        let is_duplicate = names.iter().filter(|name| **name == source.name).count() > 1;
        if is_duplicate && text.starts_with(&format!("{}=", source.name)) {
            let what = format!("duplicate build name `{}`", source.name);
            return Err(Error::Usage { what, help: "give each build a unique name: NAME=RUN".to_owned() });
        }
        if is_duplicate {
            source.name.clone_from(text);
        }
    }
    Ok(())
}

/// Refuses to mix runs of this program with results of run-perf if they have no check in common.
pub(super) fn require_same_layout(builds: &Builds) -> Result<(), Error> {
    let has = |build: &Build, row| build.readings(row).next().is_some();
    let layout = |build: &Build| build.runs.first().map(|run| run.layout);
    let [first, others @ ..] = builds.list() else { return Ok(()) };
    let is_disjoint =
        |other: &&Build| layout(first) != layout(other) && !builds.rows().any(|row| has(first, row) && has(other, row));
    let Some(other) = others.iter().find(is_disjoint) else { return Ok(()) };
    let (Some(one), Some(another)) = (layout(first), layout(other)) else { return Ok(()) };
    Err(Error::NothingToDo {
        what: format!(
            "`{}` is {one} and `{}` is {another}: they name their checks differently and have none in common",
            first.name, other.name
        ),
        help: "measure all builds with `weighbridge run`, or all with run-perf".to_owned(),
    })
}

/// Reads builds from arguments and fails on damaged ones; other problems are printed as notes.
pub(super) fn read_strictly(typed: &[String], flags: &BuildFlags, console: &Console) -> Result<Builds, Error> {
    let LoadedBuilds { builds, warnings } = read_with_warnings(typed, flags, &[], console)?;
    require_same_layout(&builds)?;
    match warnings.iter().find(|warning| warning.is_damage()) {
        None => Ok(builds),
        Some(damage) => Err(Error::Incomplete {
            what: damage.message(),
            help: "exclude this run, or repeat the command that measured it: it retakes damaged samples".to_owned(),
        }),
    }
}

/// Reads the selected cells of builds and returns them with warnings; cells may differ in the parameters of
/// `allow_different`.
pub(super) fn read_with_warnings(
    typed: &[String],
    flags: &BuildFlags,
    allow_different: &[String],
    console: &Console,
) -> Result<LoadedBuilds, Error> {
    let allow_different = allow_different.iter().cloned().collect();
    read_with_options(typed, flags, ReadOptions { allow_different, ..ReadOptions::default() }, console)
}

/// Reads builds and returns them with warnings; `options` are completed by the flags.
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

/// Keeps the selected cells of builds.
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

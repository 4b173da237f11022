//! Reading builds, for every command that has some.

use std::path::{Path, PathBuf};

use wb_compare::{
    AnyModel, Build, BuildSource, Builds, LoadedBuilds, NoiseModel, ReadOptions, Statistic, ToleranceModel,
};
use wb_record::RunFolder;

use crate::cli::compare::BuildFlags;
use crate::commands::definitions::registry;
use crate::console::Console;
use crate::error::Error;

/// Reads a model that knows something of the builds.
pub(super) fn read_model(file: &Path, builds: &Builds) -> Result<AnyModel, Error> {
    let model = AnyModel::read(file)?;
    let (knows_any, first) = match &model {
        AnyModel::Tolerance(model) => (model.covers_any(builds), model.entries.keys().next()),
        AnyModel::Noise(model) => (model.covers_any(builds), model.checks.keys().next()),
    };
    if knows_any {
        return Ok(model);
    }
    let its = first.map_or("", String::as_str);
    let theirs = builds.rows().next().map(|row| builds.id(row, Statistic::Mean).to_string()).unwrap_or_default();
    Err(Error::Usage {
        what: format!("{} knows no check of the builds", file.display()),
        help: format!("it knows `{its}`, they have `{theirs}`"),
    })
}

/// Reads the models of a comparison, those of scores apart from those of noise; tells where the latter were learnt on
/// something else.
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
                let strange = if console.quiet { Vec::new() } else { model.unseen_provenance(builds.list()) };
                for (what, build, value) in strange {
                    crate::console::tell!(
                        "note: {}: it was learnt on another {what} than {value}, of `{build}`",
                        file.display()
                    );
                }
                noise.push(model);
            }
        }
    }
    Ok((scores, noise))
}

/// Gives builds whose folders have the same name their whole paths as names.
fn make_names_distinct(sources: &mut [BuildSource], typed: &[String]) -> Result<(), Error> {
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    for (source, text) in sources.iter_mut().zip(typed) {
        let is_twice = names.iter().filter(|name| **name == source.name).count() > 1;
        if is_twice && text.starts_with(&format!("{}=", source.name)) {
            let what = format!("two builds are called `{}`", source.name);
            return Err(Error::Usage { what, help: "give each a name of its own: NAME=RUN".to_owned() });
        }
        if is_twice {
            source.name.clone_from(text);
        }
    }
    Ok(())
}

/// Refuses runs of this program beside results of run-perf that have no check in common with them: each would be missing.
pub(super) fn require_same_layout(builds: &Builds) -> Result<(), Error> {
    let has = |build: &Build, row| build.readings(row).next().is_some();
    let layout = |build: &Build| build.runs.first().map(|run| run.layout);
    let [first, others @ ..] = builds.list() else { return Ok(()) };
    let is_strange =
        |other: &&Build| layout(first) != layout(other) && !builds.rows().any(|row| has(first, row) && has(other, row));
    let Some(other) = others.iter().find(is_strange) else { return Ok(()) };
    let (Some(one), Some(another)) = (layout(first), layout(other)) else { return Ok(()) };
    Err(Error::NothingToDo {
        what: format!(
            "`{}` is {one} and `{}` is {another}: they name their checks differently and have none in common",
            first.name, other.name
        ),
        help: "name builds of one kind: measure all with `weighbridge run`, or all with run-perf".to_owned(),
    })
}

/// Reads builds as they were typed, for what has no place for an error; tells what was odd.
pub(super) fn read_strictly(typed: &[String], flags: &BuildFlags, console: &Console) -> Result<Builds, Error> {
    let LoadedBuilds { builds, warnings } = read_with_warnings(typed, flags, &[], console)?;
    require_same_layout(&builds)?;
    match warnings.iter().find(|warning| warning.is_damage()) {
        None => Ok(builds),
        Some(damage) => Err(Error::Incomplete {
            what: damage.message(),
            help: "leave this run out, or repeat the command that measured it: it takes damaged samples again"
                .to_owned(),
        }),
    }
}

/// Studies a run as `weighbridge study` does, and writes nothing.
pub(in crate::commands) fn study_in_memory(run: &RunFolder) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let registry = registry(&[], Some(&run.tests_folder())).map_err(|error| error.to_string())?;
    wb_study::render_results(run, &registry).map_err(|error| error.to_string())
}

/// The same with what was odd; cells may differ in the parameters of `allow_different`.
pub(super) fn read_with_warnings(
    typed: &[String],
    flags: &BuildFlags,
    allow_different: &[String],
    console: &Console,
) -> Result<LoadedBuilds, Error> {
    let mut sources = typed.iter().map(|text| BuildSource::parse(text)).collect::<Result<Vec<_>, _>>()?;
    make_names_distinct(&mut sources, typed)?;
    if let Some(first) = sources.first_mut() {
        first.profiles.extend(flags.map.iter().cloned());
    }
    let BuildFlags { include_incorrect, strict, allow_emulated, .. } = *flags;
    let allow_different = allow_different.iter().cloned().collect();
    let options = ReadOptions { include_incorrect, strict, allow_emulated, allow_different };
    let read = wb_compare::read(&sources, &options, &study_in_memory)?;
    if !console.quiet {
        read.warnings.iter().for_each(|warning| crate::console::tell!("note: {warning}"));
    }
    Ok(read)
}

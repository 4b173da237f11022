//! `latest`: the newest run in the current folder.

use std::path::{Path, PathBuf};

use wb_record::RunFolder;

use crate::console::Console;
use crate::error::Error;

/// Stands for the newest run, unless a folder has this name.
pub(crate) const LATEST: &str = "latest";

/// The run that an argument names. Without one or with [`LATEST`], it is the newest run, and a message names it.
pub(crate) fn resolve_run(argument: Option<&Path>, console: &Console) -> Result<PathBuf, Error> {
    match argument {
        Some(path) if path != Path::new(LATEST) => Ok(path.to_owned()),
        _ if Path::new(LATEST).exists() => Ok(PathBuf::from(LATEST)),
        _ => latest(console).map(PathBuf::from),
    }
}

/// The argument for a build, in which each [`LATEST`] is replaced by the newest run.
pub(crate) fn resolve_build(argument: &str, console: &Console) -> Result<String, Error> {
    let (name, runs) = match argument.split_once('=') {
        Some((name, runs)) if !name.contains('/') => (format!("{name}="), runs),
        _ => (String::new(), argument),
    };
    let resolve = |run: &str| match run {
        LATEST if !Path::new(LATEST).exists() => latest(console),
        run => Ok(run.to_owned()),
    };
    Ok(name + &runs.split(',').map(resolve).collect::<Result<Vec<_>, _>>()?.join(","))
}

/// The name of the newest run in the current folder, which a message states.
fn latest(console: &Console) -> Result<String, Error> {
    let folder = std::env::current_dir().map_err(Error::file("read", Path::new(".")))?;
    let entries = std::fs::read_dir(&folder).map_err(Error::file("read", &folder))?;
    let started = |name: String| Some((started(Path::new(&name))?, name));
    let runs = entries.flatten().filter_map(|entry| started(entry.file_name().into_string().ok()?));
    let Some((_, run)) = runs.max() else {
        return Err(Error::Usage {
            what: format!("no run in {}", folder.display()),
            help: "name a run folder, or change to the folder that contains runs".to_owned(),
        });
    };
    if !console.quiet {
        crate::console::message!("note: latest run: {run}");
    }
    Ok(run)
}

/// When the run in a folder started, as recorded, so that copying or studying it does not make it newer; `None` if it is
/// no readable run.
fn started(folder: &Path) -> Option<String> {
    let run = folder.join("run.json").is_file().then(|| RunFolder::open(folder).ok()?.run_file().ok())??;
    run.invocations.into_iter().next().map(|first| first.started).or(run.preparation.map(|it| it.started))
}

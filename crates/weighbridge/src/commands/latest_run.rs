//! Run folders as arguments: `latest` is the newest run in the current folder, and a misspelt name gets a suggestion.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use wb_diagnostics::{Suggestion, suggest};
use wb_record::RunFolder;

use crate::console::Console;
use crate::error::Error;

/// Stands for the newest run, unless a folder has this name. The recorded start decides, since copies and studies do
/// not make a run newer.
pub(crate) const LATEST: &str = "latest";

/// The run that an argument names. Without one or with [`LATEST`], it is the newest run, and a message names it.
pub(crate) fn resolve_run(argument: Option<&Path>, console: &Console) -> Result<PathBuf, Error> {
    match argument {
        Some(path) if path != Path::new(LATEST) => suggest_folder(path).map(|()| path.to_owned()),
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
        run => suggest_folder(Path::new(run)).map(|()| run.to_owned()),
    };
    Ok(name + &runs.split(',').map(resolve).collect::<Result<Vec<_>, _>>()?.join(","))
}

/// Refuses a missing folder if one beside it, or [`LATEST`], has a similar name. Whoever reads the folder reports any
/// other that is missing.
fn suggest_folder(path: &Path) -> Result<(), Error> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    // A name separated by a colon has an explanation of its own.
    let is_named = name.split_once(':').is_some_and(|(_, run)| path.with_file_name(run).exists());
    if path.exists() || is_named {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    // A parent that cannot be read has nothing to suggest.
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let similar = |entry: &DirEntry| {
        let other = entry.file_name();
        other.to_str().is_some_and(|other| suggest(name, [other]).is_some()) && is_build(&entry.path())
    };
    let folders = entries.filter(similar).filter_map(|entry| entry.file_name().into_string().ok());
    let known: Vec<String> = folders.chain(parent.is_none().then(|| LATEST.to_owned())).collect();
    let Some(suggestion) = suggest(name, &known) else { return Ok(()) };
    let near = match (suggestion.name(), parent) {
        (near, Some(parent)) => Suggestion::new(parent.join(near).display().to_string()),
        (_, None) => suggestion,
    };
    Err(Error::Usage { what: format!("no such run folder: `{}`", path.display()), help: near.to_string() })
}

/// Whether a folder has results of this program or of run-perf.
fn is_build(folder: &Path) -> bool {
    // What cannot be listed has no results.
    let list = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let has = |name: &str| folder.join(name).exists();
    let serials = || list(folder.to_owned()).flat_map(list).flat_map(list);
    has("run.json") || has("RUNPERF_METADATA") || serials().any(|serial| serial.join("result.json").exists())
}

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

/// When the run in a folder started, as recorded; `None` if it is no readable run.
fn started(folder: &Path) -> Option<String> {
    let run = folder.join("run.json").is_file().then(|| RunFolder::open(folder).ok()?.run_file().ok())??;
    run.invocations.into_iter().next().map(|first| first.started).or(run.preparation.map(|it| it.started))
}

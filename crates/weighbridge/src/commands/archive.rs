//! `weighbridge pack`, `unpack` and `snapshot`: archives of runs.

use std::fs::File;
use std::path::{Path, PathBuf};

use wb_archive::{ArchiveSummary, SnapshotRequest, UnpackError};
use wb_model::{Unit, pluralize};
use wb_record::{RunFolder, RunInputs};
use wb_session::declare_secrets;
use wb_session::program::{current_program, current_program_hash};
use wb_session::worker_program::{worker_program, worker_program_hash};
use wb_sys::FileLock;

use super::contention::{ReadTarget, unselected_folders};
use super::latest_run::resolve_run;
use super::replay::{Replay, secret_sources};
use super::schema::all_schemas;
use crate::cli::OutputPath;
use crate::cli::archive::{ArchiveSecrets, PackArgs, SnapshotArgs, UnpackArgs};
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;
use crate::signals::listen_for_signals;

const EXTENSION: &str = ".tar.gz";

pub(crate) fn pack(args: &PackArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let target = ReadTarget::new(&args.words, folder, console)?;
    let LockedRun { run, notes, .. } = LockedRun::open(&target.run, &args.secrets)?;
    let output = args.output.clone().unwrap_or_else(|| default_output(&run, ""));
    let skipped = unselected_folders(&target)?;
    let skipped: Vec<&str> = skipped.iter().map(String::as_str).collect();
    let summary = wb_archive::pack_run(&run, env!("CARGO_PKG_VERSION"), output.as_path(), &skipped)?;
    report(&output, summary, notes, console)
}

/// Writes an archive of a run with everything that measuring it again needs.
pub(crate) fn snapshot(args: &SnapshotArgs, console: &Console) -> Result<Exit, Error> {
    let LockedRun { run, notes: secret_notes, .. } =
        LockedRun::open(&resolve_run(args.run.as_deref(), console)?, &args.secrets)?;
    let run_inputs = RunInputs::read(&run)?.unwrap_or_default();
    let Replay { commands, recorded_commands, plans, inputs, notes } = Replay::new(&run, &run_inputs)?;
    let output = args.output.clone().unwrap_or_else(|| default_output(&run, "-snapshot"));
    let request = SnapshotRequest {
        run: &run,
        run_inputs: &run_inputs,
        version: env!("CARGO_PKG_VERSION"),
        program: &current_program()?,
        worker_program: &worker_program()?,
        schemas: all_schemas()?.into_iter().collect(),
        commands,
        recorded_commands,
        plans,
        environment: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        inputs,
    };
    let summary = wb_archive::snapshot(request, output.as_path())?;
    let notes = program_note(&run)?.into_iter().chain(notes).chain(secret_notes).collect();
    report(&output, summary, notes, console)
}

fn default_output(run: &RunFolder, end: &str) -> OutputPath {
    PathBuf::from(format!("{}{end}{EXTENSION}", run.name())).into()
}

fn report(output: &OutputPath, summary: ArchiveSummary, notes: Vec<String>, console: &Console) -> Result<Exit, Error> {
    print_text(&format!("{output}: {}\n", describe(summary)))?;
    if !console.quiet {
        notes.into_iter().for_each(|note| message!("note: {note}"));
    }
    Ok(Exit::Success)
}

pub(crate) fn unpack(args: &UnpackArgs, _: &Console) -> Result<Exit, Error> {
    // Opening a FIFO waits for its writer, which a signal can end until something has to be removed after it.
    let file = File::open(&args.file).map_err(Error::file("read", &args.file))?;
    let target = match &args.directory {
        Some(directory) => directory.clone(),
        None => default_target(&args.file)?,
    };
    let is_cancelled = listen_for_signals(|| ());
    let manifest = match wb_archive::unpack(&args.file, file, &target, &is_cancelled) {
        Err(UnpackError::Cancelled) => return Ok(Exit::Interrupted),
        unpacked => unpacked.map_err(|source| invalid_archive(&args.file, source))?,
    };
    print_text(&format!("{}: {}\n", target.display(), describe(manifest.summary())))?;
    Ok(Exit::Success)
}

/// The error of an archive, which names it unless the error names a file already.
fn invalid_archive(file: &Path, source: UnpackError) -> Error {
    let names_file = matches!(
        source,
        UnpackError::Io(_) | UnpackError::TargetNotEmpty { .. } | UnpackError::TargetNotAFolder { .. }
    );
    let subject = if names_file { String::new() } else { format!("{}: ", file.display()) };
    Error::Unpack { subject, source }
}

/// A run that no controller changes, whose secrets are declared as far as they can be read here.
struct LockedRun {
    run: RunFolder,
    /// On secrets that cannot be read.
    notes: Vec<String>,
    /// `None` if nothing has been measured in it.
    _lock: Option<FileLock>,
}

impl LockedRun {
    /// Locks a run before anything of it is read.
    fn open(path: &Path, secrets: &ArchiveSecrets) -> Result<Self, Error> {
        let run = RunFolder::open(path)?;
        let lock = run.lock_shared()?;
        declare_secrets(&secrets.secret_from).map_err(wb_session::SessionError::from)?;
        let unreadable = |source: String| declare_secrets(&[source]).err();
        let errors = secret_sources(&run.run_file()?).into_iter().filter_map(unreadable);
        let notes = errors.map(|error| format!("the archive may contain a secret of the run: {error}")).collect();
        Ok(Self { run, notes, _lock: lock })
    }
}

/// A note if this program is not the one that measured.
fn program_note(run: &RunFolder) -> Result<Option<String>, Error> {
    let Some(invocation) = run.run_file()?.invocations.pop() else { return Ok(None) };
    let is_same_agent = match invocation.agent_sha256 {
        Some(agent) => agent == worker_program_hash()?,
        None => true,
    };
    let is_same = is_same_agent && invocation.program_sha256 == current_program_hash()?;
    Ok((!is_same).then(|| {
        format!(
            "the run was measured by another build of weighbridge ({}); the snapshot has this one",
            invocation.version
        )
    }))
}

fn describe(ArchiveSummary { files, bytes }: ArchiveSummary) -> String {
    format!("{}, {}", pluralize(files, "file"), Unit::new("B").quantity(bytes as f64))
}

/// The name of an archive without its extension, in the working folder.
fn default_target(file: &Path) -> Result<PathBuf, Error> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.strip_suffix(EXTENSION).or_else(|| name.strip_suffix(".tgz")).filter(|name| !name.is_empty()) {
        Some(name) => Ok(PathBuf::from(name)),
        None => Err(Error::Usage {
            what: format!("cannot derive a folder name from `{}`", file.display()),
            help: "name a new or empty folder with -C".to_owned(),
        }),
    }
}

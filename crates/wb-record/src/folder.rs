//! The run folder: its layout and its lock.
//!
//! | file | content |
//! |---|---|
//! | `run.json` | the run file: the invocations of the program that worked on the run |
//! | `journal.jsonl` | everything that happened in the run, a line for each event |
//! | `.lock` | locked by the controller that writes to the run; only those who may write to the folder can open it |
//! | `PROFILE/TEST/SERIAL/definition.json` | the definitions of the cells of a serial, one test of a plan |
//! | `PROFILE/TEST/SERIAL/CASE/SAMPLE.ATTEMPT/` | the artefacts of an attempt |
//! | `environment/world-INVOCATION-PHASE.json` | the environment of a worker `before` or `after` an invocation |
//! | `environment/world-INVOCATION-PHASE@WORKER.json` | the same of each further worker |
//! | `tests.d/NAME.toml` | the definition of a test that is not built in |
//! | `inputs.json` | the files outside of the folder that it was measured with, for `weighbridge snapshot` |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wb_model::{AttemptPurpose, Case, CellId, Sha256, TestName};
use wb_sys::file_lock::open_private;
use wb_sys::{FileLock, LockError, contained_file};

use crate::run_file::SCHEMA;
use crate::{
    Definitions, Invocation, Journal, JournalLine, Preparation, RecordError, RunFile, RunRecords, files, journal,
};

/// Maximum length of a case's folder name; the end of a longer name is replaced by a hash. Filesystems allow 255 bytes.
const MAX_CASE_NAME: usize = 180;

/// A run folder, open for reading or for writing.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    lock: Option<WriterLock>,
}

/// The lock of the controller that writes to a run.
#[derive(Debug)]
struct WriterLock {
    _private: FileLock,
    /// A lock on the journal, which shows the controller to readers who cannot open the private one. Whoever may read the
    /// journal can lock it, so that nothing else depends on it; none if a reader holds it.
    _shown: Option<FileLock>,
}

/// The file of a run folder that is locked.
pub const LOCK: &str = ".lock";

impl RunFolder {
    /// Opens a run folder for writing, and locks it against other writers. A missing folder is created; its run file is
    /// only written with the first invocation.
    ///
    /// # Errors
    /// Also if the folder contains something else than a run, or another process is writing to it.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let not_a_run =
            |reason| RecordError::NotARun { path: path.to_owned(), reason, help: "choose a new or empty folder" };
        if path.exists() && !path.is_dir() {
            return Err(not_a_run("it is not a folder"));
        }
        fs::create_dir_all(path).map_err(RecordError::io("create", path))?;
        if !path.join("run.json").exists() {
            let mut files = fs::read_dir(path).map_err(RecordError::io("read", path))?;
            // A controller may have been killed after it created the folder and before it added an invocation.
            let is_foreign =
                |name: &str| !matches!(name, "journal.jsonl" | "environment" | LOCK) && !name.ends_with(".new");
            if files.any(|file| file.is_ok_and(|file| is_foreign(&file.file_name().to_string_lossy()))) {
                return Err(not_a_run("it has files but no run.json"));
            }
            // Before anything is added to a folder of somebody else.
            if let Some(text) = files::read(path, &path.join("journal.jsonl"))? {
                journal::parse(&path.join("journal.jsonl"), &text)?;
            }
        }
        let (file, journal) = (path.join(LOCK), path.join("journal.jsonl"));
        let private =
            FileLock::try_acquire(&file, || open_private(&file)).map_err(|error| lock_error(path, &file, error))?;
        let open = || File::options().append(true).create(true).open(&journal);
        let shown = match FileLock::try_acquire(&journal, open) {
            Ok(lock) => Some(lock),
            Err(LockError::Open(error)) => return Err(RecordError::io("open", &journal)(error)),
            Err(LockError::Held(_) | LockError::Lock(_)) => None,
        };
        Ok(Self { path: path.to_owned(), lock: Some(WriterLock { _private: private, _shown: shown }) })
    }

    /// Unlocks the folder, and removes it if it records nothing that happened to a machine and is otherwise empty.
    pub fn abandon(self) {
        let has_events = match self.journal_lines() {
            Ok(lines) => lines.iter().any(|line| !line.event.is_without_effect()),
            Err(_) => true,
        };
        if has_events || self.run_file().is_ok_and(|run_file| !run_file.invocations.is_empty()) {
            return;
        }
        // Only an empty folder can be removed, and only these are created before the first invocation. What cannot be
        // removed stays, and is continued by the next command.
        let _ = fs::remove_file(self.path.join("run.json"));
        let _ = fs::remove_file(self.journal_path());
        let _ = fs::remove_file(self.path.join(LOCK));
        let _ = fs::remove_dir(&self.path);
    }

    /// Opens a run folder for reading, which needs no lock.
    ///
    /// # Errors
    /// If it does not exist, has no run file, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        match fs::metadata(path.join("run.json")) {
            Ok(_) => return Ok(Self { path: path.to_owned(), lock: None }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(RecordError::io("read", path)(error));
            }
            Err(_) => {}
        }
        let not_a_run = |reason| {
            let help = if path.join(".weighbridge/run.json").exists() {
                "its run is in the folder `.weighbridge` in it: `run-perf` writes results in run-perf's layout"
            } else {
                "name the folder of `weighbridge run --into`"
            };
            RecordError::NotARun { path: path.to_owned(), reason, help }
        };
        if path.exists() && !path.is_dir() {
            return Err(not_a_run("it is not a folder"));
        }
        Err(if path.exists() { not_a_run("it has no run.json") } else { RecordError::NoRun { path: path.to_owned() } })
    }

    /// Keeps controllers from writing to the folder until the returned lock is dropped; other readers are not affected.
    /// Readers who may not write to the folder cannot keep a controller from it, but are refused while one is at work.
    /// `None` if it has no journal: nothing has been measured in it.
    ///
    /// # Errors
    /// [`RecordError::Busy`] if a controller is writing to it.
    pub fn lock_shared(&self) -> Result<Option<FileLock>, RecordError> {
        let (path, journal) = (self.path.join(LOCK), self.journal_path());
        let shown = match contained_file::open(&self.path, Path::new("journal.jsonl")) {
            Ok(shown) => shown,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RecordError::io("read", &journal)(error)),
        };
        // Whoever may open a file may lock it, and another user must not stop a measurement: `.lock` can be opened only
        // by those who may write to the run. For the others the controller locks the journal, too, if it can.
        let (path, file) = match open_private(&path) {
            Ok(private) => (path, private),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) =>
            {
                (journal, shown)
            }
            Err(error) => return Err(RecordError::io("open", &path)(error)),
        };
        FileLock::try_share(file).map(Some).map_err(|error| lock_error(&self.path, &path, error))
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is open for writing.
    pub fn is_writable(&self) -> bool {
        self.lock.is_some()
    }

    /// The name of the run, for people: that of the folder.
    pub fn name(&self) -> String {
        let absolute = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        absolute.file_name().map_or_else(|| absolute.display().to_string(), |name| name.to_string_lossy().into_owned())
    }

    /// Reads one of its files; `None` if it does not exist. Only regular files in the folder are read: it may come from
    /// somebody else.
    ///
    /// # Errors
    /// As for [`files::read`].
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
        files::read(&self.path, path)
    }

    /// Reads a value from one of its JSON files, as [`Self::read`] does; `None` if it does not exist.
    ///
    /// # Errors
    /// As for [`files::read_json`].
    pub fn read_json<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, RecordError> {
        files::read_json(&self.path, path)
    }

    /// Reads its run file; without one, returns a run file without invocations.
    pub fn run_file(&self) -> Result<RunFile, RecordError> {
        let path = self.path.join("run.json");
        let run_file: RunFile =
            self.read_json(&path)?.unwrap_or(RunFile { schema: SCHEMA, invocations: Vec::new(), preparation: None });
        if run_file.schema > SCHEMA {
            return Err(RecordError::UnsupportedSchema { path, version: run_file.schema, supported: SCHEMA });
        }
        Ok(run_file)
    }

    /// Begins a run: from now on it has a run file. A run with invocations has begun already.
    pub fn begin(&self, preparation: Preparation) -> Result<(), RecordError> {
        let mut run_file = self.run_file()?;
        if !run_file.invocations.is_empty() {
            return Ok(());
        }
        // Guests and setup scripts decide what the plan is resolved from, so a run begins before its plan is known.
        run_file.preparation = Some(preparation);
        files::write_json(&self.path.join("run.json"), &run_file)
    }

    /// Adds an invocation to its run file and returns the invocation's number, from 0. A cell that could not be read
    /// again is refused: it would make the whole run unreadable.
    pub fn add_invocation(&self, invocation: Invocation) -> Result<u32, RecordError> {
        invocation.cells.iter().try_for_each(CellId::require_readable).map_err(|error| {
            RecordError::io("write", &self.path.join("run.json"))(io::Error::new(io::ErrorKind::InvalidInput, error))
        })?;
        let mut run_file = self.run_file()?;
        run_file.invocations.push(invocation);
        run_file.preparation = None;
        files::write_json(&self.path.join("run.json"), &run_file)?;
        Ok(run_file.invocations.len() as u32 - 1)
    }

    /// The path of its journal.
    pub fn journal_path(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Requires that the folder is still there. What is written into one that was moved or removed would make a new one.
    ///
    /// # Errors
    /// If it has no journal.
    pub fn require_in_place(&self) -> Result<(), RecordError> {
        if self.journal_path().is_file() { Ok(()) } else { Err(RecordError::Moved(self.path.clone())) }
    }

    /// Opens its journal for writing, and reads the existing lines.
    pub fn journal(&self) -> Result<(Journal, Vec<JournalLine>), RecordError> {
        let path = self.journal_path();
        let (journal, lines) = Journal::open(&self.path, &path)?;
        self.require_journal(&self.run_file()?, &lines)?;
        Ok((journal, lines))
    }

    /// Reads its journal; empty if there is none.
    pub fn journal_lines(&self) -> Result<Vec<JournalLine>, RecordError> {
        Ok(RunRecords::read(self)?.lines)
    }

    /// Returns an error if the journal is empty although there are attempts. (A controller that was killed before the
    /// first line has left no attempts.)
    pub(crate) fn require_journal(&self, run_file: &RunFile, lines: &[JournalLine]) -> Result<(), RecordError> {
        let has_attempts = |cell: &CellId| self.serial_folder(cell).join(case_folder(&cell.case)).is_dir();
        if lines.is_empty() && run_file.invocations.iter().flat_map(|invocation| &invocation.cells).any(has_attempts) {
            return Err(RecordError::EmptyJournal { path: self.journal_path() });
        }
        Ok(())
    }

    /// The folder of the definitions of the run's tests that are not built in.
    pub fn tests_folder(&self) -> PathBuf {
        self.path.join("tests.d")
    }

    /// Stores the definition of a test that is not built in, which is needed to read its samples elsewhere.
    pub fn store_test_definition(&self, test: &TestName, text: &str) -> Result<(), RecordError> {
        let folder = self.tests_folder();
        let path = folder.join(format!("{test}.toml"));
        if self.read(&path)?.is_some_and(|existing| existing == text.as_bytes()) {
            return Ok(());
        }
        fs::create_dir_all(&folder).map_err(RecordError::io("create", &folder))?;
        files::write_atomic(&path, text.as_bytes())
    }

    /// The folder of a cell's serial: `PROFILE/TEST/SERIAL`.
    pub fn serial_folder(&self, cell: &CellId) -> PathBuf {
        self.path.join(cell.profile.as_str()).join(cell.test.as_str()).join(cell.serial.to_string())
    }

    /// The folder of an attempt, relative to the run folder: `PROFILE/TEST/SERIAL/CASE/SAMPLE.ATTEMPT`.
    pub fn attempt_folder(cell: &CellId, purpose: AttemptPurpose, sample: u32, attempt: u32) -> PathBuf {
        let sample = match purpose {
            AttemptPurpose::WarmUp => format!("warm-up-{sample}.{attempt}"),
            AttemptPurpose::Sample => format!("{sample:04}.{attempt}"),
        };
        [cell.profile.as_str(), cell.test.as_str(), &cell.serial.to_string(), &case_folder(&cell.case), &sample]
            .iter()
            .collect()
    }

    /// Reads the definitions of a cell's serial; empty if there are none yet.
    pub fn definitions(&self, cell: &CellId) -> Result<Definitions, RecordError> {
        Ok(self.read_json(&self.serial_folder(cell).join("definition.json"))?.unwrap_or_default())
    }

    /// Writes the definitions of a cell's serial.
    pub fn write_definitions(&self, cell: &CellId, definitions: &Definitions) -> Result<(), RecordError> {
        let folder = self.serial_folder(cell);
        fs::create_dir_all(&folder).map_err(RecordError::io("create", &folder))?;
        files::write_json(&folder.join("definition.json"), definitions)
    }

    /// The path of an environment: `environment/NAME.json`.
    pub fn environment_path(&self, name: &str) -> PathBuf {
        self.path.join("environment").join(format!("{name}.json"))
    }

    /// Writes an environment: see [`Self::environment_path`].
    ///
    /// # Errors
    /// If the file cannot be written, or the value cannot be represented in JSON.
    pub fn write_environment<T: Serialize>(&self, name: &str, environment: &T) -> Result<(), RecordError> {
        let path = self.environment_path(name);
        let folder = self.path.join("environment");
        fs::create_dir_all(&folder).map_err(RecordError::io("create", &folder))?;
        files::write_json(&path, environment)
    }

    /// The environments that were recorded `before` or `after` an invocation: the worker and the name for
    /// [`Self::environment_path`] of each. The first worker's comes first and has no worker, the others follow by name.
    /// Empty if none was recorded.
    pub fn recorded_environments(&self, invocation: u32, phase: &str) -> Vec<(Option<String>, String)> {
        let first_name = format!("world-{invocation}-{phase}");
        // A folder that cannot be read counts as empty.
        let files = fs::read_dir(self.path.join("environment")).into_iter().flatten().flatten();
        let files = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let parse = |file: String| {
            let name = file.strip_suffix(".json")?;
            match name.strip_prefix(&first_name)? {
                "" => Some((None, name.to_owned())),
                rest => Some((Some(rest.strip_prefix('@')?.to_owned()), name.to_owned())),
            }
        };
        let mut environments: Vec<_> = files.filter_map(parse).collect();
        environments.sort();
        environments
    }
}

/// The folder name of a case.
fn case_folder(case: &Case) -> String {
    let name = case.to_string();
    if name.len() <= MAX_CASE_NAME {
        return name;
    }
    // Case names are ASCII: everything else in them is percent-escaped.
    format!("{}~{}", &name[..MAX_CASE_NAME - 20], &Sha256::digest(name.as_bytes()).as_str()[..16])
}

/// Why a file of a run folder could not be locked.
fn lock_error(folder: &Path, file: &Path, error: LockError) -> RecordError {
    match error {
        LockError::Held(_) => RecordError::Busy { path: folder.to_owned() },
        LockError::Open(error) => RecordError::io("open", file)(error),
        LockError::Lock(error) => RecordError::io("lock", file)(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_controller_writes_and_other_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("RUN");
        let first = RunFolder::create(&run).unwrap();
        assert!(matches!(RunFolder::create(&run), Err(RecordError::Busy { .. })));
        drop(first);
        assert!(RunFolder::create(&run).is_ok());
        fs::write(folder.path().join("letter.txt"), "mine").unwrap();
        assert!(matches!(RunFolder::create(folder.path()), Err(RecordError::NotARun { .. })));
        assert!(matches!(RunFolder::open(&folder.path().join("none")), Err(RecordError::NoRun { .. })));
        fs::create_dir(folder.path().join("empty")).unwrap();
        assert!(matches!(RunFolder::open(&folder.path().join("empty")), Err(RecordError::NotARun { .. })));
    }

    #[test]
    fn nothing_is_added_to_a_folder_with_another_journal() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("journal.jsonl"), "a diary\n").unwrap();
        let error = RunFolder::create(folder.path()).unwrap_err().to_string();
        assert!(error.contains("journal.jsonl:1"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_run_that_did_nothing_to_a_machine_can_be_abandoned() {
        use crate::JournalEvent;
        use crate::steps::{PreparationKind, PreparationStart};
        let preparation = || Preparation {
            started: String::new(),
            version: String::new(),
            command: Vec::new(),
            plan: String::new(),
            metadata: Default::default(),
        };
        for (step, stays) in [
            (None, false),
            (Some(PreparationKind::Connecting), false),
            (Some(PreparationKind::Provisioning), true),
            (Some(PreparationKind::Guests), true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("RUN");
            let run = RunFolder::create(&path).unwrap();
            run.begin(preparation()).unwrap();
            assert_eq!(RunFolder::open(&path).unwrap().run_file().unwrap().preparation, Some(preparation()));
            let (mut journal, _) = run.journal().unwrap();
            if let Some(step) = step {
                let start = PreparationStart { step, machines: Vec::new(), name: None };
                journal.write(JournalEvent::PreparationStarted(start)).unwrap();
            }
            run.abandon();
            assert_eq!(path.exists(), stays, "{step:?}");
        }
    }

    #[test]
    fn readers_and_a_controller_exclude_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("RUN");
        let controller = RunFolder::create(&run).unwrap();
        assert!(matches!(controller.lock_shared(), Err(RecordError::Busy { .. })));
        drop(controller);
        let reader = RunFolder { path: run.clone(), lock: None };
        let locks = [reader.lock_shared().unwrap(), reader.lock_shared().unwrap()];
        assert!(matches!(RunFolder::create(&run), Err(RecordError::Busy { .. })));
        drop(locks);
        assert!(RunFolder::create(&run).is_ok());
    }

    #[test]
    fn whoever_holds_a_lock_on_the_journal_keeps_nobody_from_writing() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("RUN");
        drop(RunFolder::create(&run).unwrap());
        let journal = File::open(run.join("journal.jsonl")).unwrap();
        for lock in [File::lock, File::lock_shared] {
            lock(&journal).unwrap();
            let controller = RunFolder::create(&run).unwrap();
            assert!(matches!(RunFolder::create(&run), Err(RecordError::Busy { .. })));
            drop(controller);
            RunFolder { path: run.clone(), lock: None }.lock_shared().unwrap().unwrap();
        }
    }

    #[test]
    fn an_unused_folder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("RUN");
        RunFolder::create(&run).unwrap().abandon();
        assert!(!run.exists());
        // Killed before its first invocation.
        drop(RunFolder::create(&run).unwrap());
        RunFolder::create(&run).unwrap().abandon();
        assert!(!run.exists());
    }

    #[test]
    fn long_cases_have_distinct_short_folder_names() {
        let case = |last: &str| format!("x={}{last}", "a".repeat(300)).parse::<Case>().unwrap();
        let (one, other) = (case_folder(&case("1")), case_folder(&case("2")));
        assert_ne!(one, other);
        assert!(one.len() <= MAX_CASE_NAME);
    }
}

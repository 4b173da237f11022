//! Prepares machines before anything is measured on them: provisioning, setup scripts, reboots.
//!
//! Every step is recorded in the journal, and its output in the run folder. Completed steps are not repeated when the
//! run is resumed: hosts are provisioned once per run, scripts run once per boot of their machine. A machine whose
//! preparation fails is left out, with the reason; the others continue.

mod hosts;
mod provisioning;
mod scripts;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wb_model::secrets::mask_url_credentials;
use wb_model::{WorkerName, with_worker};
use wb_record::journal::InvocationEnd;
use wb_record::steps::{PreparationEnd, PreparationKind, PreparationStart};
use wb_record::{Journal, JournalEvent, JournalLine, Preparation, RecordError, RunFolder, files};

use crate::WorkerPool;

pub use hosts::{ConnectContext, HostSetup, apply_kernel_arguments, set_up_hosts};
pub use provisioning::{ProvisionContext, provision};
pub use scripts::set_up_workers;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupEvent {
    Progress(String),
    /// A host or guest is left out of the session.
    MachineExcluded {
        /// Message with the machine and the reason.
        message: String,
        help: Option<String>,
    },
}

pub type SetupObserver<'a> = &'a mut dyn FnMut(SetupEvent);

/// Begins a run in a folder, new or to be resumed.
pub fn begin_run(folder: &Path, preparation: Preparation) -> Result<(), RecordError> {
    RunFolder::create(folder)?.begin(preparation)
}

/// Ends a run whose machines could not be prepared. `is_new` says that this command began it: it is removed again if an
/// error ended it before anything happened to a machine.
pub fn abort_run(folder: &Path, reason: Option<String>, is_new: bool) -> Result<(), RecordError> {
    let outcome = if reason.is_some() { InvocationEnd::Failed } else { InvocationEnd::Interrupted };
    let can_be_removed = is_new && reason.is_some();
    let reason = reason.map(|reason| mask_url_credentials(&reason));
    let mut steps = StepJournal::open(folder)?;
    // A command that prepared nothing in an existing run, such as a refused one, is no part of it.
    if !is_new && !steps.lines.last().is_some_and(|line| line.event.is_preparation()) {
        return Ok(());
    }
    steps.write(JournalEvent::PreparationAborted { outcome, reason })?;
    if can_be_removed {
        steps.run.abandon();
    }
    Ok(())
}

pub fn record_start(
    folder: &Path,
    step: PreparationKind,
    machines: Vec<WorkerName>,
    name: Option<String>,
) -> Result<(), RecordError> {
    StepJournal::open(folder)?.write(JournalEvent::PreparationStarted(PreparationStart { step, machines, name }))
}

pub fn record_ends(folder: &Path, ends: Vec<PreparationEnd>) -> Result<(), RecordError> {
    let mut steps = StepJournal::open(folder)?;
    ends.into_iter().try_for_each(|end| steps.write(JournalEvent::PreparationEnded(end)))
}

/// Reads and writes the recorded steps of a run folder.
struct StepJournal {
    run: RunFolder,
    journal: Journal,
    lines: Vec<JournalLine>,
}

impl StepJournal {
    fn open(folder: &Path) -> Result<Self, RecordError> {
        let run = RunFolder::create(folder)?;
        let (journal, lines) = run.journal()?;
        Ok(Self { run, journal, lines })
    }

    fn write(&mut self, event: JournalEvent) -> Result<(), RecordError> {
        self.lines.push(self.journal.write(event)?);
        Ok(())
    }

    fn events(&self) -> impl DoubleEndedIterator<Item = &JournalEvent> {
        self.lines.iter().map(|line| &line.event)
    }

    /// Returns the first unused number for files with this name.
    fn next_number(&self, name: &str) -> u32 {
        let folder = self.run.path().join("environment");
        let names: Vec<String> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        let is_taken = |number: u32| {
            let start = format!("{name}-{number}");
            let rest = |taken: &String| taken.strip_prefix(start.as_str()).map(|rest| rest.starts_with(['@', '.']));
            names.iter().any(|taken| rest(taken) == Some(true))
        };
        (0..).find(|number| !is_taken(*number)).unwrap_or_default()
    }

    /// Records the output of a step: `environment/NAME-NUMBER[@WORKER].log`.
    fn write_log(
        &self,
        name: &str,
        number: u32,
        worker: Option<&WorkerName>,
        log: &[u8],
    ) -> Result<String, RecordError> {
        keep(&self.run, &with_worker(&format!("{name}-{number}"), worker), log)
    }
}

/// Writes a log, whose first line is masked as a command already, to the folder `environment`; returns its path relative
/// to the run folder. In the output of programs, declared secrets and passwords in URLs are masked.
pub(crate) fn keep(run: &RunFolder, name: &str, log: &[u8]) -> Result<String, RecordError> {
    let path = format!("environment/{name}.log");
    let full = run.path().join(&path);
    let folder = run.path().join("environment");
    fs::create_dir_all(&folder).map_err(RecordError::io("create", &folder))?;
    files::write_atomic(&full, mask_url_credentials(&String::from_utf8_lossy(log)).as_bytes())?;
    Ok(path)
}

/// Removes a worker from the pool and reports it. Its agent stays connected, so that its machine can be reverted.
fn exclude_worker(
    pool: &mut WorkerPool,
    name: &WorkerName,
    reason: &str,
    help: Option<String>,
    report: SetupObserver<'_>,
) {
    let reason = mask_url_credentials(reason);
    report(SetupEvent::MachineExcluded { message: format!("`{name}` is left out: {reason}"), help });
    pool.remove(name, reason);
}

/// With the reasons.
pub type ExcludedHosts = BTreeMap<WorkerName, String>;

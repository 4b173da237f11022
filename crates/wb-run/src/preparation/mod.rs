//! Machines made ready before anything is measured on them: provisioned, set up by scripts, rebooted.
//!
//! Every step is in the journal, and what it said in the run folder. What was done is not done again when the run is gone
//! on with: hosts are provisioned once in a run, scripts run once in a boot of their machine. A machine that could not be
//! made ready is left out, with the reason; the others go on.

mod hosts;
mod provisioning;
mod scripts;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wb_model::WorkerName;
use wb_model::secrets::{mask_lines, mask_words};
use wb_record::{Journal, JournalEvent, JournalLine, RecordError, RunFolder, files};

use crate::WorkerPool;

pub use hosts::{ConnectContext, HostSetup, apply_kernel_arguments, set_up_hosts};
pub use provisioning::{ProvisionContext, provision};
pub use scripts::set_up_workers;

/// Something that is told while machines are made ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupEvent {
    /// What goes on.
    Note(String),
    /// A machine is left out.
    Excluded {
        /// Which, and why.
        what: String,
        /// The way out, where there is one.
        help: Option<String>,
    },
}

/// Where it is told.
pub type SetupObserver<'a> = &'a mut dyn FnMut(SetupEvent);

/// The steps that a run folder knows of, and more of them.
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

    /// The first number that no file of this name has.
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

    /// Keeps what a step said: `environment/NAME-NUMBER[@WORKER].log`.
    fn write_log(&self, name: &str, number: u32, of: Option<&WorkerName>, log: &[u8]) -> Result<String, RecordError> {
        keep(&self.run, &format!("{name}-{number}{}", of.map(|of| format!("@{of}")).unwrap_or_default()), log)
    }
}

/// Keeps what was said, without secrets, in a file of the folder `environment`; its path within the run's folder.
pub(crate) fn keep(run: &RunFolder, name: &str, log: &[u8]) -> Result<String, RecordError> {
    let path = format!("environment/{name}.log");
    let full = run.path().join(&path);
    let folder = run.path().join("environment");
    fs::create_dir_all(&folder).map_err(|source| RecordError::Io { operation: "create", path: folder, source })?;
    files::write_atomic(&full, mask_lines(&String::from_utf8_lossy(log)).as_bytes())?;
    Ok(path)
}

/// Goes on without a member, and tells it. Its agent stays for whoever has to bring its machine back.
fn exclude_worker(crew: &mut WorkerPool, name: &WorkerName, why: &str, help: Option<String>, tell: SetupObserver<'_>) {
    let why = mask_words(why);
    tell(SetupEvent::Excluded { what: format!("`{name}` is left out: {why}"), help });
    crew.remove(name, why);
}

/// Hosts that are left out, and why.
pub type ExcludedHosts = BTreeMap<WorkerName, String>;

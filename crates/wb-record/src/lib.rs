//! The run folder and the journal.
//!
//! What happened is written here once and never changed: the journal is the only truth about it, and
//! artefacts are what it says they are by their hashes. This crate knows no test and computes nothing.
//!
//! Start with [`RunFolder`], then [`journal`] (what an event is), [`history`] (what the journal adds up to) and [`records`]
//! (whether results are those of the journal).

pub mod artefact;
pub mod definition;
pub mod definition_files;
pub mod error;
pub mod files;
pub mod folder;
pub mod history;
pub mod journal;
pub mod records;
pub mod run_file;
pub mod steps;
pub mod systems;

pub use artefact::Artefact;
pub use definition::{CellDefinition, Definitions};
pub use error::RecordError;
pub use folder::RunFolder;
pub use history::{History, RecordedAttempt};
pub use journal::{Journal, JournalEvent, JournalLine};
pub use records::{DamagedSample, ResultState, RunRecords};
pub use run_file::{RunEntry, RunFile};
pub use systems::{host_title, systems};

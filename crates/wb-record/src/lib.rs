//! Run folders: layout, journal and records.
//!
//! Events are written once and never changed: the journal is the single source of truth, and it has the hashes of all
//! artefacts. This crate is independent of tests and evaluates nothing.
//!
//! Start with [`RunFolder`], then [`journal`] (the events), [`history`] (the attempts, aggregated from the journal) and
//! [`records`] (whether results are up to date with the journal).

#![forbid(unsafe_code)]

pub mod artefact;
mod checksum;
pub mod definition;
pub mod definition_files;
pub mod error;
pub mod files;
pub mod folder;
pub mod history;
pub mod inputs;
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
pub use inputs::RunInputs;
pub use journal::{Journal, JournalEvent, JournalLine};
pub use records::{DamagedSample, ResultState, RunRecords};
pub use run_file::{Invocation, Preparation, RunFile};
pub use systems::{host_title, systems};

//! Results of other programs, taken into run folders.
//!
//! What comes out is an ordinary run: a journal with an attempt for each sample, each with an artefact that says what
//! its figures are ([`wb_model::imported`]), and a copy of every file that was read. Whatever reads runs reads these,
//! and needs nothing of this crate. It runs no program, computes no statistics and draws nothing.
//!
//! Start with [`fn@import`]: it finds [`files`], reads each ([`mod@read`], with a module for every format) into
//! a [`Foreign`], puts that to what the run has already ([`stage`]), and records it ([`record`]).

mod archive;
pub mod error;
pub mod files;
pub mod foreign;
pub mod format;
mod formats;
pub mod import;
mod json;
mod naming;
pub mod read;
mod record;
mod runperf;
mod staging;

pub use error::{ImportError, ReadError};
pub use foreign::{ForeignCell, ForeignResults, ForeignSample};
pub use format::Format;
pub use import::{FileReport, ImportReport, ImportRequest, ImportedFile, NameOverrides, import};
pub use read::{ReadOptions, read};

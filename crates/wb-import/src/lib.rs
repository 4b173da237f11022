//! Import of results of other programs into run folders.
//!
//! The result is an ordinary run: a journal with an attempt for each sample, each with an artefact that describes its
//! figures ([`wb_model::imported`]), and a copy of each imported file. Readers of runs need nothing of this crate. It
//! runs no programs, computes no statistics, and draws nothing.
//!
//! Start with [`fn@import`]: it finds [`files`], parses each ([`mod@read`], with a module for each format) into
//! [`ForeignResults`], merges them with the existing run ([`staging`]), and records them ([`record`]).

#![forbid(unsafe_code)]

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
mod run_perf;
mod staging;
mod systems;
mod xml;

pub use error::{ImportError, ReadError};
pub use foreign::{ForeignCell, ForeignResults, ForeignSample};
pub use format::Format;
pub use import::{FileReport, ImportReport, ImportRequest, ImportedFile, NameOverrides, import};
pub use read::{ReadOptions, read};

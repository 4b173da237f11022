use std::io;
use std::path::PathBuf;

use wb_model::{CellId, MetricKey, ParseIdError, TestName};
use wb_record::RecordError;

use crate::Format;

/// Why a file was not imported. Messages follow the name of the file and a colon.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read the file: {0}")]
    Unreadable(#[from] io::Error),
    /// `limit` is in bytes.
    #[error("file too large: expected at most {} MiB", limit >> 20)]
    TooLarge { limit: u64 },
    #[error("unknown format: expected one of {}", Format::names())]
    Unknown,
    /// The program also writes a form that can be imported.
    #[error("not the form of this output that can be imported: expected that of `{option}`")]
    OtherForm { option: &'static str },
    /// The file is not valid JSON or XML, although its extension is `json` or `xml`.
    #[error("invalid document: {0}")]
    InvalidDocument(String),
    #[error("invalid {format} results: {reason}")]
    Malformed {
        format: Format,
        /// With the position.
        reason: String,
    },
    #[error("nothing to import: {0}")]
    Empty(String),
    /// The program that wrote the file failed before measuring.
    #[error("no result: {program} reports: {message}")]
    Failed { program: &'static str, message: String },
    /// The name of a cell could not be read again from the run.
    #[error(transparent)]
    InvalidCell(#[from] ParseIdError),
    #[error(
        "cell `{cell}` exists with other parameters: {}: import into another folder, or set another serial with --id",
        differences.join("; ")
    )]
    Redefined { cell: Box<CellId>, differences: Vec<String> },
    /// The run has a metric of the same name with another unit or direction.
    #[error(
        "metric `{metric}` of cell `{cell}` conflicts: existing {existing}, imported {imported}: import into another folder"
    )]
    MetricConflict { cell: Box<CellId>, metric: MetricKey, existing: String, imported: String },
    #[error("the run has a different test `{0}`: set another name with --test")]
    TestConflict(TestName),
    /// Results of several machines would become samples of one cell.
    #[error(
        "several systems, but one profile requested: choose one with --system, or import each with another --profile: {}",
        .0.join(", ")
    )]
    SeveralSystems(Vec<String>),
    #[error("several tests, but one name requested with --test: {}", .0.join(", "))]
    SeveralTests(Vec<String>),
    #[error("unknown system `{requested}`: expected one of {}", known.join(", "))]
    UnknownSystem { requested: String, known: Vec<String> },
}

/// Why an import was aborted.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{}: {source}", path.display())]
    InvalidFile { path: PathBuf, source: Box<ReadError> },
    #[error("{} changed during the import: import it again", .0.display())]
    Changed(PathBuf),
}

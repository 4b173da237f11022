//! One run of another program, and the figures of both sides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tempfile::TempDir;

use crate::printed::Printed;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CaseError {
    /// The other program does not run with these options.
    #[error("refused: {0}")]
    Refused(String),
    /// weighbridge failed where the other program did not.
    #[error("weighbridge failed: {0}")]
    Failed(String),
    /// The other program's report lacks a figure that it should have.
    #[error("no {0} in the report of the program")]
    NotReported(String),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("weighbridge's output: {0}")]
    Json(#[from] serde_json::Error),
}

/// Metrics of a cell by `class/name`, in seconds, bytes and numbers.
pub(crate) type Figures = BTreeMap<String, f64>;

/// Runs commands in a folder of their own, and compares figures.
pub(crate) struct Runner {
    folder: TempDir,
    program: PathBuf,
    /// Its number among the cases of the subject, from 0.
    pub(crate) number: u32,
    pub(crate) random: ChaCha8Rng,
    pub(crate) options: String,
    compared: usize,
    differences: Vec<String>,
}

pub(crate) struct Finished {
    /// `None` if a signal ended it.
    pub(crate) status: Option<i32>,
    /// Standard error.
    pub(crate) errors: String,
}

pub(crate) struct FinishedCase {
    pub(crate) options: String,
    pub(crate) figures: usize,
    pub(crate) differences: Vec<String>,
}

impl Runner {
    /// Prepares a case, whose options depend on the seed, the subject and its number alone.
    pub(crate) fn new(program: &Path, subject: &str, seed: u64, number: u32) -> std::io::Result<Self> {
        let of_subject = subject.bytes().fold(u64::from(number), |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte));
        Ok(Self {
            folder: tempfile::tempdir()?,
            program: program.to_owned(),
            number,
            random: ChaCha8Rng::seed_from_u64(seed ^ of_subject.rotate_left(17)),
            options: String::new(),
            compared: 0,
            differences: Vec::new(),
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs another program with words in the case's folder. A status other than 0 is a refusal.
    pub(crate) fn run(&self, program: &str, words: &[impl AsRef<str>]) -> Result<String, CaseError> {
        let output = self.output(Command::new(program).args(words.iter().map(AsRef::as_ref)))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(CaseError::Refused(format!("{text}{errors}").trim().to_owned()))
    }

    /// Runs another program; its exit status is part of its report.
    pub(crate) fn output_of(&self, program: &str, words: &[String]) -> std::io::Result<Output> {
        self.output(Command::new(program).args(words))
    }

    /// Runs weighbridge; its exit status is part of the comparison.
    pub(crate) fn weighbridge_output(&self, words: &[String]) -> std::io::Result<Output> {
        self.output(Command::new(&self.program).args(words))
    }

    fn output(&self, command: &mut Command) -> std::io::Result<Output> {
        let own = self.folder.path();
        command
            .current_dir(own)
            .env("XDG_CONFIG_HOME", own.join("config"))
            .env("TMPDIR", own)
            .stdin(Stdio::null())
            .output()
    }

    /// Runs weighbridge, which may find a run incomplete (3): a single sample does not converge.
    pub(crate) fn weighbridge(&self, words: &[&str]) -> Result<String, CaseError> {
        let output = self.output(Command::new(&self.program).args(words))?;
        match output.status.code() {
            Some(0 | 3) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            _ => Err(CaseError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }

    pub(crate) fn cells(&self, run: &str) -> Result<BTreeMap<String, Figures>, CaseError> {
        let summary: Value = serde_json::from_str(&self.weighbridge(&["summary", run, "--json"])?)?;
        let cells = summary["cells"].as_array().into_iter().flatten();
        Ok(cells.map(|cell| (cell["id"].as_str().unwrap_or_default().to_owned(), figures(cell))).collect())
    }

    pub(crate) fn import(&self, files: &[&str]) -> Result<Figures, CaseError> {
        self.weighbridge(&[&["import", "-o", "imported"], files].concat())?;
        self.only_cell("imported")
    }

    pub(crate) fn import_file(&self, run: &str, file: &str) -> Result<Finished, CaseError> {
        let output = self.output(Command::new(&self.program).args(["import", "-o", run, file]))?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Finished { status: output.status.code(), errors })
    }

    /// Checks a condition; `difference` says what is the case otherwise.
    pub(crate) fn require(&mut self, holds: bool, difference: impl FnOnce() -> String) {
        self.compared += 1;
        if !holds {
            self.differences.push(difference());
        }
    }

    pub(crate) fn only_cell(&self, run: &str) -> Result<Figures, CaseError> {
        let mut cells = self.cells(run)?;
        match cells.len() {
            1 => Ok(cells.pop_first().map(|(_, figures)| figures).unwrap_or_default()),
            _ => Err(CaseError::Failed(format!("expected one cell, found {:?}", cells.keys().collect::<Vec<_>>()))),
        }
    }

    pub(crate) fn compare(&mut self, ours: &Figures, metric: &str, printed: Printed) {
        self.compared += 1;
        match ours.get(metric) {
            None => self.differences.push(format!("no `{metric}`; the program has {printed}")),
            Some(ours) if !printed.agrees_with(*ours) => {
                self.differences.push(format!("`{metric}` is {ours}; the program has {printed}"));
            }
            Some(_) => {}
        }
    }

    pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(&mut self, name: &str, ours: &T, expected: &T) {
        self.compared += 1;
        if ours != expected {
            self.differences.push(format!("{name}: {ours:?}; expected {expected:?}"));
        }
    }

    pub(crate) fn within(&mut self, name: &str, ours: u64, bounds: std::ops::RangeInclusive<u64>) {
        self.compared += 1;
        if !bounds.contains(&ours) {
            self.differences.push(format!("{name}: {ours}; expected {} to {}", bounds.start(), bounds.end()));
        }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn finish(self) -> FinishedCase {
        FinishedCase { options: self.options, figures: self.compared, differences: self.differences }
    }
}

/// The mean over the samples of each metric: of one sample, its value.
fn figures(cell: &Value) -> Figures {
    let metrics = cell["metrics"].as_array().into_iter().flatten();
    let value = |metric: &Value| {
        let head = &metric["metric"];
        let key = format!("{}/{}", head["class"].as_str()?, head["name"].as_str()?);
        Some((key, metric["summary"]["mean"].as_f64()? * base_units(head["unit"].as_str()?)))
    };
    metrics.filter_map(value).collect()
}

/// How many seconds, bytes, or bytes or bits per second one of a unit is; 1 for others.
fn base_units(unit: &str) -> f64 {
    match unit.trim_end_matches("/s") {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "KB" | "kB" | "kbit" => 1e3,
        "MB" | "Mbit" => 1e6,
        "GB" | "Gbit" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    }
}

//! A run in run-perf's layout, for its programs: `PROFILE/TEST/SERIAL/result.json` as pbench writes it, and folders
//! `__errorN__` of what could not be measured.
//!
//! Start with [`files`]. [`naming`] has pbench's names, and `iteration` the form of its results.

mod iteration;
mod naming;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use wb_model::{CellId, CellOutcome, Serial, Validity};
use wb_study::Study;
use wb_study::result::CellResult;

use iteration::Iteration;

/// A file in run-perf's layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutFile {
    /// Its path below the folder of the results.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// The files in the folder of an error.
pub const ERROR_FILES: [&str; 3] = ["exception", "traceback", "details"];

/// The files of a run, without its metadata.
///
/// # Errors
/// If a result has no form in JSON.
pub fn files(study: &Study) -> serde_json::Result<Vec<LayoutFile>> {
    let mut files = Vec::new();
    for (folder, cells) in test_folders(&study.cells) {
        let mut iterations: Vec<Iteration<'_>> = Vec::new();
        let mut errors = 0;
        for cell in cells {
            if let Some(message) = error(cell) {
                let error_folder = folder.join(format!("__error{errors}__"));
                errors += 1;
                let texts = [message.clone(), failed_attempts(cell), format!("{}: {message}\n", cell.id)];
                let named = ERROR_FILES.into_iter().zip(texts);
                files.extend(named.map(|(name, text)| LayoutFile { path: error_folder.join(name), text }));
            }
            if cell.metrics.iter().any(|result| result.summary.is_some()) {
                iterations.push(Iteration::new(cell, iterations.len() + 1, &study.run.metadata));
            }
        }
        if !iterations.is_empty() {
            let text = serde_json::to_string_pretty(&iterations)? + "\n";
            files.push(LayoutFile { path: folder.join("result.json"), text });
        }
    }
    Ok(files)
}

/// The cells by the folder of their test: `PROFILE/TEST/0000`. run-perf names the folder of a test with `__NAME__` after
/// it, and numbers those of one name.
fn test_folders(cells: &[CellResult]) -> Vec<(PathBuf, Vec<&CellResult>)> {
    let mut folders: Vec<(&CellId, PathBuf, Vec<&CellResult>)> = Vec::new();
    let mut counts: BTreeMap<PathBuf, u16> = BTreeMap::new();
    for cell in cells {
        let id = &cell.id;
        let is_same = |first: &CellId| (&first.profile, &first.test, &first.serial) == (&id.profile, &id.test, &id.serial);
        if let Some((.., of_test)) = folders.iter_mut().find(|(first, ..)| is_same(first)) {
            of_test.push(cell);
            continue;
        }
        let name = match &id.serial {
            Serial::Position(_) => &id.test,
            Serial::Id(name) => name,
        };
        let parent = PathBuf::from(id.profile.as_str()).join(name.as_str());
        // A position is that of the test in the plan, also if tests before it have no cells in this profile. Only an id
        // that is also the name of a test, or of two tests, is moved to the next free number.
        let next = counts.entry(parent.clone()).or_default();
        let number = match &id.serial {
            Serial::Position(position) => (*position).max(*next),
            Serial::Id(_) => *next,
        };
        *next = number.saturating_add(1);
        folders.push((id, parent.join(format!("{number:04}")), vec![cell]));
    }
    folders.into_iter().map(|(_, folder, cells)| (folder, cells)).collect()
}

/// Why a cell has no value, or not all that were required; `None` if it has them, or its run was interrupted.
fn error(cell: &CellResult) -> Option<String> {
    let is_error = match &cell.outcome {
        CellOutcome::Failed { .. } | CellOutcome::Unsupported { .. } => true,
        CellOutcome::Partial { valid, .. } => *valid == 0 || cell.ended_by.is_some() || cell.failures.failed > 0,
        CellOutcome::Measured | CellOutcome::NotConverged { .. } => false,
    };
    let cause = cell.failures.cause.as_ref().filter(|_| matches!(cell.outcome, CellOutcome::Partial { .. }));
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    is_error.then(|| format!("{}: {}{cause}", cell.id.case, cell.outcome))
}

/// One line for each attempt that did not complete, or whose values are invalid.
fn failed_attempts(cell: &CellResult) -> String {
    let mut text = String::new();
    for attempt in &cell.attempts {
        let invalid = attempt.validity.as_ref().filter(|validity| **validity != Validity::Valid);
        let invalid = invalid.map(ToString::to_string);
        let reason = if attempt.outcome.is_completed() { invalid } else { Some(attempt.outcome.to_string()) };
        if let Some(reason) = reason {
            // Writing to a string does not fail.
            _ = writeln!(text, "sample {}, attempt {}: {reason} ({})", attempt.sample, attempt.attempt, attempt.folder);
        }
    }
    text
}

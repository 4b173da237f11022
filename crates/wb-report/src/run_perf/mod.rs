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
use wb_results::CellResult;
use wb_results::Study;

use iteration::Iteration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutFile {
    /// Relative to the folder of the results.
    pub path: PathBuf,
    pub text: String,
}

pub const ERROR_FILES: [&str; 3] = ["exception", "traceback", "details"];

/// The files of a run, without its metadata.
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

/// Groups the cells by the folder of their test: `PROFILE/TEST/0000`. run-perf names the folder of a test with
/// `__NAME__` after it, and numbers those of one name.
fn test_folders(cells: &[CellResult]) -> Vec<(PathBuf, Vec<&CellResult>)> {
    let mut folders: Vec<(&CellId, PathBuf, Vec<&CellResult>)> = Vec::new();
    let parent = |id: &CellId| {
        let name = match &id.serial {
            Serial::Position(_) => &id.test,
            Serial::Id(name) => name,
        };
        PathBuf::from(id.profile.as_str()).join(name.as_str())
    };
    // A position is that of the test in the plan. An id that is also the name of a test is numbered after its
    // positions.
    let mut next: BTreeMap<PathBuf, u16> = BTreeMap::new();
    for cell in cells {
        if let Serial::Position(position) = &cell.id.serial {
            let next = next.entry(parent(&cell.id)).or_default();
            *next = (*next).max(position.saturating_add(1));
        }
    }
    for cell in cells {
        let id = &cell.id;
        let is_same =
            |first: &CellId| (&first.profile, &first.test, &first.serial) == (&id.profile, &id.test, &id.serial);
        if let Some((.., of_test)) = folders.iter_mut().find(|(first, ..)| is_same(first)) {
            of_test.push(cell);
            continue;
        }
        let parent = parent(id);
        let number = match &id.serial {
            Serial::Position(position) => *position,
            Serial::Id(_) => {
                let next = next.entry(parent.clone()).or_default();
                let number = *next;
                *next = number.saturating_add(1);
                number
            }
        };
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
    let case = if cell.id.case.is_empty() { String::new() } else { format!("{}: ", cell.id.case) };
    is_error.then(|| format!("{case}{}{cause}", cell.outcome))
}

/// One line for each attempt that did not complete or has invalid values.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(ids: &[&str]) -> Vec<String> {
        let cells: Vec<CellResult> = ids.iter().map(|id| cell(id)).collect();
        test_folders(&cells)
            .into_iter()
            .map(|(folder, cells)| format!("{} {}", folder.display(), cells.len()))
            .collect()
    }

    fn cell(id: &str) -> CellResult {
        let json = serde_json::json!({
            "id": id, "key": "0".repeat(64), "description": "", "params": {}, "metrics": [], "attempts": [], "curves": [],
            "latency": [], "findings": [], "provenance": {}, "ended_by": null, "outcome": {"outcome": "measured"},
            "rule": serde_json::to_value(wb_stats::SamplingRule::External { min_samples: 1, max_samples: 1 }).unwrap(),
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn tests_with_a_name_have_its_folder_and_are_numbered() {
        assert_eq!(
            folders(&[
                "A/fio/0000:a=1",
                "A/fio/0000:a=2",
                "A/fio/0001:-",
                "A/fio/mine:-",
                "B/fio/0001:-",
                "B/uperf/mine:-"
            ]),
            ["A/fio/0000 2", "A/fio/0001 1", "A/mine/0000 1", "B/fio/0001 1", "B/mine/0000 1"]
        );
        // An id that is the name of another test, or of two tests.
        assert_eq!(
            folders(&["A/fio/x:-", "A/uperf/x:-", "A/fio/0000:-", "A/uperf/fio:-"]),
            ["A/x/0000 1", "A/x/0001 1", "A/fio/0000 1", "A/fio/0001 1"]
        );
        assert_eq!(folders(&["A/uperf/fio:-", "A/fio/0000:-"]), ["A/fio/0001 1", "A/fio/0000 1"]);
    }

    #[test]
    fn cells_without_the_required_samples_are_errors() {
        let outcomes = [
            (CellOutcome::Measured, false, None),
            (CellOutcome::Failed { reason: "crashed".to_owned() }, false, Some("failed (crashed)")),
            (CellOutcome::Unsupported { reason: "no SCTP".to_owned() }, false, Some("unsupported (no SCTP)")),
            (CellOutcome::Partial { valid: 0, required: 6 }, false, Some("partial (0 of 6)")),
            (CellOutcome::Partial { valid: 2, required: 6 }, true, Some("partial (2 of 6)")),
            // Interrupted: it is measured on when the run is resumed.
            (CellOutcome::Partial { valid: 2, required: 6 }, false, None),
        ];
        for (outcome, ended, expected) in outcomes {
            let mut cell = cell("A/fio/0000:-");
            (cell.outcome, cell.ended_by) = (outcome, ended.then(|| "its sample limit is reached".to_owned()));
            assert_eq!(error(&cell).as_deref(), expected, "{:?}", cell.outcome);
        }
    }
}

//! Weighbridge runs: results consistent with their records, and other recorded data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wb_model::{AttemptPurpose, CellId, pluralize};
use wb_record::{DamagedSample, JournalEvent, JournalLine, RecordError, RunFolder, RunRecords};

use super::folder::{ResultFile, ResultFolder};
use super::warning::{Warning, WarningKind};
use super::{SourceError, StudyFn, run_records};
use crate::build::{Layout, TestError};
use crate::metadata::Metadata;
use crate::run_identity::RunIdentity;
use crate::schedule::{Rounds, rounds};

/// The recorded data of a run besides its results.
pub(super) struct NativeRun {
    pub(super) metadata: Metadata,
    pub(super) identity: RunIdentity,
    /// In the order of the plan.
    pub(super) planned: Vec<String>,
    pub(super) rounds: Rounds,
}

/// Reads the records of the run at `path`, whose folder has been listed. Results that are inconsistent with the records
/// are replaced by a new `study`; damaged samples become errors of their cells.
pub(super) fn read(path: &Path, folder: &mut ResultFolder, study: StudyFn<'_>) -> Result<NativeRun, SourceError> {
    let damaged = |source: RecordError| SourceError::Records { path: path.to_owned(), source };
    let run = RunFolder::open(path).map_err(damaged)?;
    let records = RunRecords::read(&run).map_err(damaged)?;
    let state = records.result_state(&run).map_err(damaged)?;
    let serial_count: usize = records.serials(&run).len();
    if !state.is_current() || folder.results.len() != serial_count {
        // Through a function of the caller, because comparing needs no test.
        let texts = study(&run).map_err(|reason| SourceError::Outdated { path: path.to_owned(), reason })?;
        folder.results = texts.into_iter().filter_map(|(file, text)| result_file(path, file, text)).collect();
        // A damaged file has its own warning.
        if !state.outdated.is_empty() {
            folder.warnings.push(Warning { path: path.to_owned(), kind: WarningKind::Outdated });
        }
    }
    for error in damaged_cells(&state.damaged) {
        let kind = WarningKind::Damaged { cell: error.location.clone(), reason: error.message.clone() };
        folder.warnings.push(Warning { path: path.to_owned(), kind });
        folder.errors.push(error);
    }
    let (metadata, warnings) = run_records::metadata(&run, &records);
    folder.warnings.extend(warnings);
    // A file of failures alone, such as the text of an exception, can be the same in several runs.
    let imported = records.lines.iter().filter_map(|line| match &line.event {
        JournalEvent::SamplesImported(batch) if batch.samples.failures.len() < batch.samples.count as usize => {
            Some(batch.file.clone())
        }
        _ => None,
    });
    let identity = RunIdentity {
        journal: (!records.lines.is_empty()).then(|| records.journal_sha256().clone()),
        imported: imported.collect(),
        ..RunIdentity::default()
    };
    let planned = records.run_file.invocations.iter().flat_map(|invocation| &invocation.cells);
    let planned = planned.map(ToString::to_string).collect();
    Ok(NativeRun { metadata, identity, planned, rounds: rounds(attempts_by_invocation(&records.lines)) })
}

/// The cells of the attempts at samples of each invocation, in the order of time.
fn attempts_by_invocation(lines: &[JournalLine]) -> Vec<Vec<&CellId>> {
    let mut invocations = vec![Vec::new()];
    for line in lines {
        match &line.event {
            JournalEvent::InvocationStarted { .. } => invocations.push(Vec::new()),
            JournalEvent::AttemptEnded(ended) if ended.purpose == AttemptPurpose::Sample => {
                invocations.last_mut().expect("there is always one").push(&ended.cell);
            }
            _ => {}
        }
    }
    invocations
}

fn result_file(run: &Path, path: PathBuf, text: Vec<u8>) -> Option<ResultFile> {
    let names = path.strip_prefix(run).ok()?.parent()?.iter().map(|name| name.to_str().map(str::to_owned));
    let [profile, test, serial] = names.collect::<Option<Vec<_>>>()?.try_into().ok()?;
    let root = run.to_owned();
    Some(ResultFile { layout: Layout::Weighbridge, root, path, profile, test, serial, recomputed: Some(text) })
}

/// One error for each cell with damaged samples.
fn damaged_cells(damaged: &[DamagedSample]) -> Vec<TestError> {
    let mut cells: BTreeMap<&CellId, Vec<&DamagedSample>> = BTreeMap::new();
    for sample in damaged {
        cells.entry(&sample.cell).or_default().push(sample);
    }
    let error = |(cell, samples): (&CellId, Vec<&DamagedSample>)| {
        let message =
            format!("{}: {} was modified", pluralize(samples.len(), "damaged sample"), samples[0].file.display());
        TestError { location: cell.to_string(), message }
    };
    cells.into_iter().map(error).collect()
}

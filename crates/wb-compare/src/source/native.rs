//! Runs of this program: results that are those of the records, and what else is recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wb_model::{CellId, Sha256, pluralize};
use wb_record::{DamagedSample, RecordError, RunFolder, RunRecords};

use super::runperf::folder::{Layout, ResultFile, ResultFolder};
use super::warning::{Warning, WarningKind};
use super::{SourceError, StudyFn, run_records};
use crate::build::TestError;
use crate::metadata::Metadata;

/// What a run has beside its results.
pub(super) struct NativeRun {
    pub(super) metadata: Metadata,
    /// The hash of its journal; none where nothing has happened.
    pub(super) journal: Option<Sha256>,
}

/// Reads the records of the run at `path`, whose folder has been listed. Results that are not those of the records are
/// replaced by those of `study`; damaged samples are errors of their cells.
pub(super) fn read(path: &Path, folder: &mut ResultFolder, study: StudyFn<'_>) -> Result<NativeRun, SourceError> {
    let damaged = |source: RecordError| SourceError::Records { path: path.to_owned(), source };
    let run = RunFolder::open(path).map_err(damaged)?;
    let records = RunRecords::read(&run).map_err(damaged)?;
    let state = records.result_state(&run).map_err(damaged)?;
    let recorded: usize = records.serials(&run).len();
    if !state.is_current() || folder.results.len() != recorded {
        let texts = study(&run).map_err(|why| SourceError::Outdated { path: path.to_owned(), reason: why })?;
        folder.results = texts.into_iter().filter_map(|(file, text)| result_file(path, file, text)).collect();
        // A damaged file is reported by itself.
        if !state.outdated.is_empty() {
            folder.warnings.push(Warning { path: path.to_owned(), kind: WarningKind::Outdated });
        }
    }
    for error in damaged_cells(&state.damaged) {
        let what = WarningKind::Damaged { cell: error.place.clone(), why: error.text.clone() };
        folder.warnings.push(Warning { path: path.to_owned(), kind: what });
        folder.errors.push(error);
    }
    let (metadata, warnings) = run_records::metadata(&run, &records);
    folder.warnings.extend(warnings);
    let journal = (!records.lines.is_empty()).then(|| records.journal_sha256().clone());
    Ok(NativeRun { metadata, journal })
}

/// A serial's results that have been studied.
fn result_file(run: &Path, path: PathBuf, text: Vec<u8>) -> Option<ResultFile> {
    let names = path.strip_prefix(run).ok()?.parent()?.iter().map(|name| name.to_str().map(str::to_owned));
    let [profile, test, serial] = names.collect::<Option<Vec<_>>>()?.try_into().ok()?;
    Some(ResultFile { layout: Layout::Weighbridge, path, profile, test, serial, studied: Some(text) })
}

/// An error of each cell that has damaged samples.
fn damaged_cells(damaged: &[DamagedSample]) -> Vec<TestError> {
    let mut cells: BTreeMap<&CellId, Vec<&DamagedSample>> = BTreeMap::new();
    for sample in damaged {
        cells.entry(&sample.cell).or_default().push(sample);
    }
    let error = |(cell, samples): (&CellId, Vec<&DamagedSample>)| {
        let text = format!(
            "{}: {} is not as it was written",
            pluralize(samples.len(), "damaged sample"),
            samples[0].file.display()
        );
        TestError { place: cell.to_string(), text }
    };
    cells.into_iter().map(error).collect()
}

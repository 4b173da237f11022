//! Recording what was staged: an entry, definitions, copies, and an attempt for each sample.

use std::collections::BTreeMap;
use std::fs;

use wb_model::imported::{ARTEFACT, ImportedSample};
use wb_model::{AttemptOutcome, CellId, Facts, Purpose, WorkerName};
use wb_record::journal::{AttemptEnd, EntryEnd};
use wb_record::{Artefact, History, Journal, JournalEvent, RecordError, RunEntry, RunFolder};

use crate::ImportError;
use crate::archive::archive;
use crate::import::ImportRequest;
use crate::naming::slug;
use crate::staging::{SourceFile, StagedCell, StagedChanges};

/// What ends a cell whose samples come from files.
const ENDED_BY: &str = "its files hold no more samples";

/// Records what is new to a run.
pub(crate) fn record(
    request: &ImportRequest<'_>,
    run: &RunFolder,
    mut journal: Journal,
    history: History,
    staged: &StagedChanges,
    sources: &[SourceFile],
) -> Result<(), ImportError> {
    let entry = run.add_entry(build_entry(request, &staged.cells, sources))?;
    journal.write(JournalEvent::EntryStarted { entry, boot_id: request.boot_id.clone() })?;
    let mut recorder = Recorder { run, journal, history };
    let recorded = recorder.record_all(staged, sources);
    let how = if recorded.is_ok() { EntryEnd::Finished } else { EntryEnd::Failed };
    let ended = recorder.journal.write(JournalEvent::EntryEnded { entry, outcome: how });
    recorded?;
    Ok(ended.map(drop)?)
}

fn build_entry(request: &ImportRequest<'_>, cells: &[StagedCell], sources: &[SourceFile]) -> RunEntry {
    let mut formats: Vec<&str> = sources.iter().map(|source| source.format.name()).collect();
    formats.sort_unstable();
    formats.dedup();
    let said = sources.iter().flat_map(|source| source.foreign.metadata.clone());
    RunEntry {
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: request.version.to_owned(),
        program_sha256: request.program_sha256.clone(),
        command: request.command.clone(),
        plan: format!("import of {}", formats.join(", ")),
        plan_text: None,
        sampling: serde_json::Value::Null,
        seed: 0,
        cells: cells.iter().map(|cell| cell.definition.cell.clone()).collect(),
        facts: machines(sources),
        hosts: BTreeMap::new(),
        metadata: said.chain(request.metadata.clone()).collect(),
    }
}

/// The machines that the files name, each as far as it is known.
fn machines(sources: &[SourceFile]) -> BTreeMap<WorkerName, Facts> {
    let known = sources.iter().map(|source| &source.foreign.machine).filter(|facts| **facts != Facts::default());
    known
        .filter_map(|facts| {
            let name = if facts.hostname.is_empty() { "unnamed" } else { &facts.hostname };
            Some((WorkerName::new(slug(name)).ok()?, facts.clone()))
        })
        .collect()
}

/// Writes the definitions, a serial's at once.
fn write_definitions(run: &RunFolder, cells: &[StagedCell]) -> Result<(), RecordError> {
    let mut serials: BTreeMap<_, Vec<&StagedCell>> = BTreeMap::new();
    for cell in cells {
        serials.entry(run.serial_folder(&cell.definition.cell)).or_default().push(cell);
    }
    for serial in serials.values() {
        let id: &CellId = &serial[0].definition.cell;
        let mut definitions = run.definitions(id)?;
        serial.iter().for_each(|cell| definitions.put(cell.definition.clone()));
        run.write_definitions(id, &definitions)?;
    }
    Ok(())
}

struct Recorder<'a> {
    run: &'a RunFolder,
    journal: Journal,
    history: History,
}

impl Recorder<'_> {
    fn record_all(&mut self, staged: &StagedChanges, sources: &[SourceFile]) -> Result<(), ImportError> {
        for (test, text) in &staged.tests {
            self.run.store_test_definition(test, text)?;
        }
        write_definitions(self.run, &staged.cells)?;
        for source in sources {
            archive(self.run, source)?;
        }
        Ok(staged.cells.iter().try_for_each(|cell| self.record_cell(cell))?)
    }

    fn record_cell(&mut self, cell: &StagedCell) -> Result<(), RecordError> {
        let id = &cell.definition.cell;
        let taken = self.history.attempts(id).iter().map(|attempt| attempt.ended.sample + 1).max().unwrap_or(0);
        for (number, (sample, outcome)) in (taken..).zip(&cell.samples) {
            self.record_sample(cell, number, sample, outcome)?;
        }
        let (cell, key, by) = (id.clone(), cell.definition.key.clone(), ENDED_BY.to_owned());
        self.journal.write(JournalEvent::CellEnded { cell, key, reason: by }).map(drop)
    }

    /// Nothing is measured here: the attempt is as long as what was measured took, and no process of it ran.
    fn record_sample(
        &mut self,
        cell: &StagedCell,
        number: u32,
        sample: &ImportedSample,
        outcome: &AttemptOutcome,
    ) -> Result<(), RecordError> {
        let (id, key) = (cell.definition.cell.clone(), cell.definition.key.clone());
        let purpose = Purpose::Sample;
        let attempt = self.history.next_attempt(&id, purpose, number);
        self.journal.write(JournalEvent::AttemptStarted {
            cell: id.clone(),
            key: key.clone(),
            purpose,
            sample: number,
            attempt,
        })?;
        let folder = self.run.path().join(RunFolder::attempt_folder(&id, purpose, number, attempt));
        fs::create_dir_all(&folder).map_err(|source| RecordError::Io {
            operation: "create",
            path: folder.clone(),
            source,
        })?;
        let text = serde_json::to_vec_pretty(sample).map_err(|error| RecordError::Io {
            operation: "write",
            path: folder.join(ARTEFACT),
            source: error.into(),
        })?;
        let artefact = Artefact::write(&folder, ARTEFACT, &text)?;
        self.journal.write(JournalEvent::AttemptEnded(AttemptEnd {
            workers: Vec::new(),
            work_by_worker: BTreeMap::new(),
            cell: id,
            key,
            purpose,
            sample: number,
            attempt,
            outcome: outcome.clone(),
            seconds: sample.seconds.unwrap_or(0.0),
            workload_seconds: 0.0,
            work: None,
            disturbances: Vec::new(),
            findings: Vec::new(),
            artefacts: vec![artefact],
        }))?;
        Ok(())
    }
}

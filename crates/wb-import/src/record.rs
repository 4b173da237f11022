//! Recording of an import in a run: an invocation of the run file, the definitions of tests and cells, copies of the
//! imported files, and an attempt for each sample.

use std::collections::BTreeMap;
use std::fs;

use wb_model::imported::{ImportedSample, SAMPLE_ARTEFACT};
use wb_model::{AttemptOutcome, CellId, Facts, Purpose, WorkerName};
use wb_record::journal::{AttemptEnd, InvocationEnd};
use wb_record::{Artefact, History, Invocation, Journal, JournalEvent, RecordError, RunFolder};

use crate::ImportError;
use crate::archive::archive;
use crate::import::ImportRequest;
use crate::naming::slug;
use crate::staging::{SourceFile, StagedCell, StagedImport};

/// The recorded reason why an imported cell has no more samples.
const END_REASON: &str = "end of the imported files";

/// Records an import in a run, whose journal is open for writing.
pub(crate) fn record(
    request: &ImportRequest<'_>,
    run: &RunFolder,
    mut journal: Journal,
    history: History,
    import: &StagedImport,
    sources: &[SourceFile],
) -> Result<(), ImportError> {
    let invocation = run.add_invocation(build_invocation(request, &import.cells, sources))?;
    journal.write(JournalEvent::InvocationStarted { invocation, boot_id: request.boot_id.clone() })?;
    let mut recorder = Recorder { run, journal, history };
    let result = recorder.record_all(import, sources);
    let outcome = if result.is_ok() { InvocationEnd::Finished } else { InvocationEnd::Failed };
    let write_result = recorder.journal.write(JournalEvent::InvocationEnded { invocation, outcome });
    result?;
    Ok(write_result.map(drop)?)
}

/// Builds the invocation of the import for the run file.
fn build_invocation(request: &ImportRequest<'_>, cells: &[StagedCell], sources: &[SourceFile]) -> Invocation {
    let mut formats: Vec<&str> = sources.iter().map(|source| source.format.name()).collect();
    formats.sort_unstable();
    formats.dedup();
    let metadata = sources.iter().flat_map(|source| source.results.metadata.clone());
    Invocation {
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: request.version.to_owned(),
        program_sha256: request.program_sha256.clone(),
        command: request.command.clone(),
        plan: format!("import of {}", formats.join(", ")),
        plan_text: None,
        sampling: serde_json::Value::Null,
        seed: 0,
        cells: cells.iter().map(|cell| cell.definition.cell.clone()).collect(),
        facts: name_machines(sources.iter().map(|source| &source.results.machine)),
        // How hosts are reached: an import reaches none.
        hosts: BTreeMap::new(),
        metadata: metadata.chain(request.metadata.clone()).collect(),
    }
}

/// The machines by name. Different descriptions under one host name are numbered: `host`, `host-2`.
fn name_machines<'a>(machines: impl Iterator<Item = &'a Facts>) -> BTreeMap<WorkerName, Facts> {
    let mut named: BTreeMap<WorkerName, Facts> = BTreeMap::new();
    for facts in machines.filter(|facts| **facts != Facts::default()) {
        let base = slug(if facts.hostname.is_empty() { "unnamed" } else { &facts.hostname });
        let name = (1..)
            .map(|number| if number == 1 { base.clone() } else { format!("{base}-{number}") })
            .map_while(|name| WorkerName::new(name).ok())
            .find(|name| named.get(name).is_none_or(|existing| existing == facts));
        named.extend(name.map(|name| (name, facts.clone())));
    }
    named
}

/// Writes the definitions of cells, in one file per serial.
fn write_definitions(run: &RunFolder, cells: &[StagedCell]) -> Result<(), RecordError> {
    let mut serials: BTreeMap<_, Vec<&StagedCell>> = BTreeMap::new();
    for cell in cells {
        serials.entry(run.serial_folder(&cell.definition.cell)).or_default().push(cell);
    }
    for cells_of_serial in serials.values() {
        let id: &CellId = &cells_of_serial[0].definition.cell;
        let mut definitions = run.definitions(id)?;
        cells_of_serial.iter().for_each(|cell| definitions.insert(cell.definition.clone()));
        run.write_definitions(id, &definitions)?;
    }
    Ok(())
}

struct Recorder<'a> {
    run: &'a RunFolder,
    journal: Journal,
    /// The attempts of the run before the import.
    history: History,
}

impl Recorder<'_> {
    fn record_all(&mut self, import: &StagedImport, sources: &[SourceFile]) -> Result<(), ImportError> {
        for (test, text) in &import.tests {
            self.run.store_test_definition(test, text)?;
        }
        write_definitions(self.run, &import.cells)?;
        for source in sources {
            archive(self.run, source)?;
        }
        Ok(import.cells.iter().try_for_each(|cell| self.record_cell(cell))?)
    }

    /// Records the new samples of a cell, numbered after its existing ones, and its end.
    fn record_cell(&mut self, cell: &StagedCell) -> Result<(), RecordError> {
        let id = &cell.definition.cell;
        let first_index = self.history.attempts(id).iter().map(|attempt| attempt.ended.sample + 1).max().unwrap_or(0);
        for (index, (sample, outcome)) in (first_index..).zip(&cell.samples) {
            self.record_sample(cell, index, sample, outcome)?;
        }
        let (cell, key, reason) = (id.clone(), cell.definition.key.clone(), END_REASON.to_owned());
        self.journal.write(JournalEvent::CellEnded { cell, key, reason }).map(drop)
    }

    /// Records a sample as an attempt without workers. Its duration is that of the measured part.
    fn record_sample(
        &mut self,
        cell: &StagedCell,
        index: u32,
        sample: &ImportedSample,
        outcome: &AttemptOutcome,
    ) -> Result<(), RecordError> {
        let (id, key) = (cell.definition.cell.clone(), cell.definition.key.clone());
        let purpose = Purpose::Sample;
        let attempt = self.history.next_attempt(&id, purpose, index);
        self.journal.write(JournalEvent::AttemptStarted {
            cell: id.clone(),
            key: key.clone(),
            purpose,
            sample: index,
            attempt,
        })?;
        let folder = self.run.path().join(RunFolder::attempt_folder(&id, purpose, index, attempt));
        fs::create_dir_all(&folder).map_err(|source| RecordError::Io {
            operation: "create",
            path: folder.clone(),
            source,
        })?;
        let json = serde_json::to_vec_pretty(sample).map_err(|error| RecordError::Io {
            operation: "write",
            path: folder.join(SAMPLE_ARTEFACT),
            source: error.into(),
        })?;
        let artefact = Artefact::write(&folder, SAMPLE_ARTEFACT, &json)?;
        self.journal.write(JournalEvent::AttemptEnded(AttemptEnd {
            workers: Vec::new(),
            work_by_worker: BTreeMap::new(),
            cell: id,
            key,
            purpose,
            sample: index,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_machines_of_one_host_name_are_all_recorded() {
        let facts = |hostname: &str, kernel: &str| Facts {
            hostname: hostname.to_owned(),
            kernel: kernel.to_owned(),
            ..Facts::default()
        };
        let machines = [facts("a", "5"), facts("a", "6"), facts("a", "5"), facts("", "7"), Facts::default()];
        let named = name_machines(machines.iter());
        let kernels: Vec<(&str, &str)> =
            named.iter().map(|(name, facts)| (name.as_str(), facts.kernel.as_str())).collect();
        assert_eq!(kernels, [("a", "5"), ("a-2", "6"), ("unnamed", "7")]);
    }
}

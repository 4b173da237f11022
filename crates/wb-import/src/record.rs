//! Recording of an import in a run: an invocation of the run file, the definitions of tests and cells, copies of the
//! imported files, and the samples of each cell and file.

use std::collections::BTreeMap;

use wb_model::{CellId, WorkerName, with_worker};
use wb_record::journal::{ImportedBatch, InvocationEnd};
use wb_record::{History, Invocation, Journal, JournalEvent, RecordError, RunFolder};

use crate::ImportError;
use crate::archive::archive;
use crate::foreign::{ForeignMachine, ForeignResults};
use crate::import::ImportRequest;
use crate::naming::slug;
use crate::staging::{SourceFile, StagedCell, StagedImport};
use crate::systems::system_name;

/// Recorded as the reason why an imported cell has no more samples.
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
    let machines = name_machines(sources.iter().flat_map(machines));
    let invocation = run.add_invocation(build_invocation(request, &import.cells, sources, &machines))?;
    write_environments(run, invocation, &machines)?;
    journal.write(JournalEvent::InvocationStarted { invocation, boot_id: request.boot_id.clone() })?;
    let mut recorder = Recorder { run, journal, history };
    let result = recorder.record_all(import, sources);
    let outcome = if result.is_ok() { InvocationEnd::Finished } else { InvocationEnd::Failed };
    let write_result = recorder.journal.write(JournalEvent::InvocationEnded { invocation, outcome });
    result?;
    Ok(write_result.map(drop)?)
}

fn build_invocation(
    request: &ImportRequest<'_>,
    cells: &[StagedCell],
    sources: &[SourceFile],
    machines: &BTreeMap<WorkerName, ForeignMachine>,
) -> Invocation {
    let mut formats: Vec<&str> = sources.iter().map(|source| source.format.name()).collect();
    formats.sort_unstable();
    formats.dedup();
    let metadata = sources.iter().flat_map(|source| source.results.metadata.clone());
    Invocation {
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: request.version.to_owned(),
        program_sha256: request.program_sha256.clone(),
        agent_sha256: None,
        command: request.command.clone(),
        plan: format!("import of {}", formats.join(", ")),
        plan_text: None,
        sampling: serde_json::Value::Null,
        seed: 0,
        cells: cells.iter().map(|cell| cell.definition.cell.clone()).collect(),
        facts: machines.iter().map(|(name, machine)| (name.clone(), machine.facts.clone())).collect(),
        // How hosts are reached: an import reaches none.
        hosts: BTreeMap::new(),
        metadata: metadata.chain(request.metadata.clone()).collect(),
    }
}

/// The machines of a file, by host name, or by the name that the file has for the system.
fn machines(source: &SourceFile) -> impl Iterator<Item = (&str, &ForeignMachine)> {
    let ForeignResults { machine, machines, provenance, .. } = &source.results;
    let system = || system_name(source.format, provenance).unwrap_or("unnamed");
    let name = if machine.facts.hostname.is_empty() { system() } else { &machine.facts.hostname };
    std::iter::once((name, machine)).chain(machines.iter().map(|(name, machine)| (name.as_str(), machine)))
}

/// Different descriptions under one name are numbered: `host`, `host-2`.
fn name_machines<'a>(
    machines: impl Iterator<Item = (&'a str, &'a ForeignMachine)>,
) -> BTreeMap<WorkerName, ForeignMachine> {
    let mut named: BTreeMap<WorkerName, ForeignMachine> = BTreeMap::new();
    for (name, machine) in machines.filter(|(_, machine)| **machine != ForeignMachine::default()) {
        let base = slug(name);
        let name = (1..)
            .map(|number| if number == 1 { base.clone() } else { format!("{base}-{number}") })
            .map_while(|name| WorkerName::new(name).ok())
            .find(|name| named.get(name).is_none_or(|existing| existing == machine));
        named.extend(name.map(|name| (name, machine.clone())));
    }
    named
}

/// Writes the known environments. If there is only one machine, the file name has no worker.
fn write_environments(
    run: &RunFolder,
    invocation: u32,
    machines: &BTreeMap<WorkerName, ForeignMachine>,
) -> Result<(), RecordError> {
    for (worker, machine) in machines {
        if let Some(environment) = &machine.environment {
            let worker = (machines.len() > 1).then_some(worker);
            run.write_environment(&with_worker(&format!("world-{invocation}-before"), worker), environment)?;
        }
    }
    Ok(())
}

fn write_definitions(run: &RunFolder, cells: &[StagedCell]) -> Result<(), RecordError> {
    let mut serials: BTreeMap<_, Vec<&StagedCell>> = BTreeMap::new();
    for cell in cells {
        serials.entry(run.serial_folder(&cell.definition.cell)).or_default().push(cell);
    }
    for cells_of_serial in serials.values() {
        let id: &CellId = &cells_of_serial[0].definition.cell;
        let mut definitions = run.definitions(id)?;
        definitions.extend(cells_of_serial.iter().map(|cell| cell.definition.clone()));
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
        // Flushed together: a line for each sample would take milliseconds each.
        Ok(self.journal.write_all(import.cells.iter().flat_map(|cell| events(&self.history, cell)))?)
    }
}

/// The events of a cell's new samples, numbered after its existing ones, and of its end.
fn events(history: &History, cell: &StagedCell) -> Vec<JournalEvent> {
    let (id, key) = (&cell.definition.cell, &cell.definition.key);
    let measured = history.attempts(id).iter().map(|attempt| attempt.ended.sample.saturating_add(1));
    let mut next = measured.chain(history.imports(id).iter().map(ImportedBatch::end)).max().unwrap_or(0);
    let mut events = Vec::new();
    for batch in &cell.batches {
        let batch = ImportedBatch {
            cell: id.clone(),
            key: key.clone(),
            file: batch.file.clone(),
            first_sample: next,
            provenance: batch.provenance.clone(),
            samples: batch.samples.clone(),
        };
        next = batch.end();
        events.push(JournalEvent::SamplesImported(batch));
    }
    events.push(JournalEvent::CellEnded { cell: id.clone(), key: key.clone(), reason: END_REASON.to_owned() });
    events
}

#[cfg(test)]
mod tests {
    use wb_model::Facts;

    use super::*;

    #[test]
    fn different_machines_of_one_host_name_are_all_recorded() {
        let machine = |hostname: &str, kernel: &str| ForeignMachine {
            facts: Facts { hostname: hostname.to_owned(), kernel: kernel.to_owned(), ..Facts::default() },
            environment: None,
        };
        let machines =
            [machine("a", "5"), machine("a", "6"), machine("a", "5"), machine("b", "7"), ForeignMachine::default()];
        let named = name_machines(machines.iter().map(|machine| (machine.facts.hostname.as_str(), machine)));
        let kernels: Vec<(&str, &str)> =
            named.iter().map(|(name, machine)| (name.as_str(), machine.facts.kernel.as_str())).collect();
        assert_eq!(kernels, [("a", "5"), ("a-2", "6"), ("b", "7")]);
    }
}

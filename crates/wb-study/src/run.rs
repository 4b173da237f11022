//! Evaluation of a whole run.

use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use wb_model::roles::all_workers;
use wb_model::{AttemptPurpose, CellId, MetricKey, ProfileName, Sha256, TestName, WorkerName};
use wb_record::journal::{IMPORTED_FOLDER, ImportedBatch};
use wb_record::records::RESULT_FILE;
use wb_record::{
    CellDefinition, History, Invocation, JournalEvent, JournalLine, RunFile, RunFolder, RunRecords, files,
};
use wb_results::{CellResult, EnvironmentChange, ImportedSource, RunInfo, SerialResult, Study};
use wb_sys::environment::{ChangedValue, Environment};
use wb_test::Registry;

use crate::StudyError;
use crate::cell::{StartTimes, cell_result};
use crate::evaluated_attempt::EvaluatedAttempt;
use crate::exit_status;
use crate::findings::describe_machine_change;
use crate::imported;
use crate::machine_properties;
use crate::preparation;
use crate::solve::solve;

pub fn study(run: &RunFolder, registry: &Registry) -> Result<Study, StudyError> {
    study_records(run, &RunRecords::read(run)?, registry)
}

fn study_records(run: &RunFolder, records: &RunRecords, registry: &Registry) -> Result<Study, StudyError> {
    let RunRecords { run_file, lines, .. } = records;
    let history = History::new(run, lines);
    let clock = Timeline::new(run, lines)?;
    let origin = clock.start_times();
    let mut cells = Vec::new();
    let mut replaced = ReplacedDefinitions { run, registry, tests: BTreeMap::new() };
    for mut definition in definitions(run, run_file)? {
        let cell = registry
            .test_cell(definition.cell.test.as_str(), &definition.params)
            .ok_or_else(|| StudyError::UnknownTest(definition.cell.test.clone()))?;
        let replacement = replaced.finding(&definition.cell.test)?;
        if replacement.is_some() {
            // Unit, direction and list of metrics belong to the values: all are of one definition.
            definition.metrics = definition.criteria.apply(cell.metrics());
            definition.summary = cell.test().declaration().summary;
        }
        let attempts = history.attempts(&definition.cell).iter().filter(|attempt| attempt.ended.key == definition.key);
        let mut evaluated: Vec<EvaluatedAttempt> = attempts
            .map(|attempt| EvaluatedAttempt::evaluate(cell.as_ref(), &definition.criteria, attempt.clone()))
            .collect();
        let ended_by = history.end_reason(&definition.cell);
        let imports = history.imports(&definition.cell).iter().filter(|batch| batch.key == definition.key);
        let (imports, exit_status) = exit_status::decide(imports.collect());
        let imported: usize = imports.iter().map(|batch| batch.samples.count as usize).sum();
        let mut result = if imported > imported::MANY {
            imported::cell_result(&definition, &evaluated, &imports, ended_by, &origin)
        } else {
            evaluated.extend(imports.iter().flat_map(|batch| imported::attempts(batch)));
            cell_result(&definition, evaluated, ended_by, &origin)
        };
        result.exit_status = exit_status;
        let problems = history.cleanup_problems(&definition.cell).iter();
        result.findings.extend(problems.map(|problem| format!("cleanup failed: {problem}")));
        result.findings.extend(machine_changes(&definition, &history));
        if let Some(finding) = replacement {
            result.findings.insert(0, finding);
        }
        cells.push(result);
    }
    Ok(Study {
        run: RunInfo {
            imports: imported_sources(run, &history, &cells, registry),
            ..run_info(run, records, &history, &clock, &cells)
        },
        conclusions: solve(&cells, registry),
        environment_changes: changes(run, &run_file.invocations)?,
        cells,
    })
}

/// The tests of a run whose definition in the registry is another than the one that the run recorded.
struct ReplacedDefinitions<'a> {
    run: &'a RunFolder,
    registry: &'a Registry,
    /// The finding of each test that was looked up.
    tests: BTreeMap<TestName, Option<String>>,
}

impl ReplacedDefinitions<'_> {
    /// A finding that results are of another definition than the samples; `None` if they are of the same.
    fn finding(&mut self, test: &TestName) -> Result<Option<String>, StudyError> {
        if let Some(finding) = self.tests.get(test) {
            return Ok(finding.clone());
        }
        let path = self.run.tests_folder().join(format!("{test}.toml"));
        let recorded = self.run.read(&path)?;
        let current = self.registry.test(test.as_str()).and_then(|test| test.definition());
        let name = |text: Option<&[u8]>| match text {
            Some(text) => format!("SHA-256 {}", Sha256::digest(text)),
            None => "that of the program".to_owned(),
        };
        let finding = (!self.registry.has_definition(test.as_str(), recorded.as_deref())).then(|| {
            format!(
                "computed with another definition ({}) than the samples were taken with ({})",
                name(current.map(str::as_bytes)),
                name(recorded.as_deref())
            )
        });
        self.tests.insert(test.clone(), finding.clone());
        Ok(finding)
    }
}

/// The changes of the machines of a cell while it was measured, a sentence each. What the plan resolved from their
/// properties (threads, sizes) may not be what the last samples ran with.
fn machine_changes(definition: &CellDefinition, history: &History) -> Vec<String> {
    let local = WorkerName::local();
    let mut workers = all_workers(&definition.roles);
    if workers.is_empty() {
        workers.insert(&local);
    }
    let changes = history.machine_changes(&definition.cell).iter().filter(|change| workers.contains(&change.worker));
    changes.map(|change| describe_machine_change(&change.worker, &change.differences)).collect()
}

/// Evaluates a run and writes each serial's `result.json`.
pub fn write_results(run: &RunFolder, registry: &Registry) -> Result<Study, StudyError> {
    let records = RunRecords::read(run)?;
    let study = study_records(run, &records, registry)?;
    for (folder, result) in serials(run, &records, &study, registry)? {
        files::write_json(&folder.join(RESULT_FILE), &result)?;
    }
    Ok(study)
}

/// Evaluates a run without writing anything: the path and text of each serial's `result.json`.
pub fn render_results(run: &RunFolder, registry: &Registry) -> Result<Vec<(PathBuf, Vec<u8>)>, StudyError> {
    let records = RunRecords::read(run)?;
    let study = study_records(run, &records, registry)?;
    let text = |(folder, result): (PathBuf, SerialResult)| {
        let path = folder.join(RESULT_FILE);
        let text = files::json_text(&path, &result)?;
        Ok((path, text))
    };
    serials(run, &records, &study, registry)?.into_iter().map(text).collect()
}

fn serials(
    run: &RunFolder,
    records: &RunRecords,
    study: &Study,
    registry: &Registry,
) -> Result<BTreeMap<PathBuf, SerialResult>, StudyError> {
    let mut serials: BTreeMap<PathBuf, SerialResult> = BTreeMap::new();
    let mut replaced = ReplacedDefinitions { run, registry, tests: BTreeMap::new() };
    for cell in &study.cells {
        let is_replaced = replaced.finding(&cell.id.test)?.is_some();
        let result = match serials.entry(run.serial_folder(&cell.id)) {
            btree_map::Entry::Occupied(existing) => existing.into_mut(),
            btree_map::Entry::Vacant(new) => {
                // Without the hash they count as outdated: readers derive those of the run's own definition, as all
                // commands without `--tests-d` do.
                let records_sha256 = if is_replaced { None } else { Some(records.sha256_of_serial(run, &cell.id)?) };
                new.insert(SerialResult { records_sha256, cells: Vec::new() })
            }
        };
        result.cells.push(cell.clone());
    }
    Ok(serials)
}

/// Writes the `result.json` of one serial during a run, from its evaluated cells, each with the reason why it ended.
/// The run may still change them, so the file has no hash of the records.
pub fn write_serial(
    run: &RunFolder,
    cells: Vec<(&CellDefinition, Vec<EvaluatedAttempt>, Option<&str>)>,
) -> Result<(), StudyError> {
    let lines = run.journal_lines()?;
    let origin = Timeline::new(run, &lines)?.start_times();
    let Some((first, ..)) = cells.first() else { return Ok(()) };
    let folder = run.serial_folder(&first.cell);
    let cells = cells.into_iter().map(|(cell, evaluated, ended_by)| cell_result(cell, evaluated, ended_by, &origin));
    files::write_json(&folder.join(RESULT_FILE), &SerialResult { records_sha256: None, cells: cells.collect() })?;
    Ok(())
}

/// The results for the current records: those of an earlier study unless something has changed since.
pub fn current_results(run: &RunFolder, registry: &Registry) -> Result<Vec<CellResult>, StudyError> {
    let records = RunRecords::read(run)?;
    let mut replaced = ReplacedDefinitions { run, registry, tests: BTreeMap::new() };
    let mut is_replaced = false;
    for (_, cell) in records.serials(run) {
        is_replaced |= replaced.finding(&cell.test)?.is_some();
    }
    if is_replaced || !records.result_state(run)?.is_current() {
        return Ok(study_records(run, &records, registry)?.cells);
    }
    let mut read = BTreeSet::new();
    let mut cells = Vec::new();
    for cell in records.run_file.invocations.iter().flat_map(|invocation| &invocation.cells) {
        let path = run.serial_folder(cell).join(RESULT_FILE);
        if read.insert(path.clone()) {
            cells.extend(run.read_json::<SerialResult>(&path)?.into_iter().flat_map(|result| result.cells));
        }
    }
    Ok(cells)
}

/// The definitions of the cells of all invocations, in that order, each once.
fn definitions(run: &RunFolder, run_file: &RunFile) -> Result<Vec<CellDefinition>, StudyError> {
    let mut seen: BTreeSet<&CellId> = BTreeSet::new();
    // The cells of one serial share a file, and there may be thousands of them.
    let mut files: BTreeMap<PathBuf, BTreeMap<CellId, CellDefinition>> = BTreeMap::new();
    let mut all = Vec::new();
    for cell in run_file.invocations.iter().flat_map(|invocation| &invocation.cells).filter(|cell| seen.insert(cell)) {
        let undefined = || StudyError::Undefined {
            cell: Box::new(cell.clone()),
            path: run.serial_folder(cell).join("definition.json").display().to_string(),
        };
        let definitions = match files.entry(run.serial_folder(cell)) {
            btree_map::Entry::Occupied(existing) => existing.into_mut(),
            btree_map::Entry::Vacant(new) => {
                let cells = run.definitions(cell)?.cells.into_iter();
                new.insert(cells.map(|definition| (definition.cell.clone(), definition)).collect())
            }
        };
        all.push(definitions.remove(cell).ok_or_else(undefined)?);
    }
    Ok(all)
}

/// The wall-clock times of a journal, in seconds from the first invocation's start.
struct Timeline {
    seconds: f64,
    preparation_seconds: f64,
    /// By the attempt's folder relative to the run folder.
    started: BTreeMap<String, f64>,
}

impl Timeline {
    fn new(run: &RunFolder, lines: &[JournalLine]) -> Result<Self, StudyError> {
        let time = |(index, line): (usize, &JournalLine)| {
            let invalid = |_| StudyError::Time {
                path: run.journal_path().display().to_string(),
                line: index + 1,
                time: line.time.clone(),
            };
            line.time.parse::<jiff::Timestamp>().map_err(invalid)
        };
        let times = lines.iter().enumerate().map(time).collect::<Result<Vec<_>, _>>()?;
        // Machines may have been prepared before the first invocation.
        let starts =
            lines.iter().enumerate().filter(|(_, line)| matches!(line.event, JournalEvent::InvocationStarted { .. }));
        let starts: Vec<usize> = starts.map(|(index, _)| index).collect();
        let Some(first) = times.get(starts.first().copied().unwrap_or(0)) else {
            return Ok(Self { seconds: 0.0, preparation_seconds: 0.0, started: BTreeMap::new() });
        };
        // An invocation lasts from its start to its last line before the next invocation starts.
        let ends = starts.iter().skip(1).copied().chain([lines.len()]);
        let durations = starts.iter().zip(ends).filter_map(|(start, end)| {
            let last = (*start..end).rev().find(|index| !lines[*index].event.is_auxiliary())?;
            Some(times[last].duration_since(times[*start]).as_secs_f64())
        });
        let mut started = BTreeMap::new();
        for (line, time) in lines.iter().zip(&times) {
            let seconds = time.duration_since(*first).as_secs_f64();
            match &line.event {
                JournalEvent::AttemptStarted { cell, purpose, sample, attempt, .. } => {
                    started.insert(folder_name(cell, *purpose, *sample, *attempt), seconds);
                }
                JournalEvent::SamplesImported(batch) => {
                    started.insert(batch.folder().to_string_lossy().into_owned(), seconds);
                }
                // The line of its start may have been lost.
                JournalEvent::AttemptEnded(ended) => {
                    let folder = folder_name(&ended.cell, ended.purpose, ended.sample, ended.attempt);
                    started.entry(folder).or_insert(seconds - ended.seconds);
                }
                _ => {}
            }
        }
        Ok(Self { seconds: durations.sum(), preparation_seconds: preparation::duration(lines, &times), started })
    }

    fn start_times(&self) -> StartTimes {
        StartTimes { started: self.started.clone() }
    }
}

fn folder_name(cell: &CellId, purpose: AttemptPurpose, sample: u32, attempt: u32) -> String {
    RunFolder::attempt_folder(cell, purpose, sample, attempt).to_string_lossy().into_owned()
}

fn run_info(
    run: &RunFolder,
    records: &RunRecords,
    history: &History,
    clock: &Timeline,
    cells: &[CellResult],
) -> RunInfo {
    let RunRecords { run_file, lines, unchecked_lines, .. } = records;
    let ended = history.cells().flat_map(|cell| history.attempts(cell)).map(|attempt| &attempt.ended);
    let last = run_file.invocations.last();
    let first = run_file.invocations.first().map(|invocation| &invocation.started);
    // Absent once there are invocations.
    let pending = run_file.preparation.as_ref();
    RunInfo {
        name: run.name(),
        plan: last
            .map(|invocation| &invocation.plan)
            .or(pending.map(|pending| &pending.plan))
            .cloned()
            .unwrap_or_default(),
        started: first.or(pending.map(|pending| &pending.started)).cloned().unwrap_or_default(),
        seconds: clock.seconds,
        preparation_seconds: clock.preparation_seconds,
        unmeasured: preparation::unmeasured(run_file, lines),
        // The sum of nothing is -0.
        workload_seconds: ended.map(|ended| ended.workload_seconds).sum::<f64>() + 0.0,
        measured_seconds: cells.iter().map(CellResult::measured_seconds).sum::<f64>() + 0.0,
        version: last
            .map(|invocation| &invocation.version)
            .or(pending.map(|it| &it.version))
            .cloned()
            .unwrap_or_default(),
        properties: machine_properties::describe_all(
            run_file.invocations.iter().flat_map(|invocation| &invocation.facts),
        ),
        machines: last.map(machines).unwrap_or_default(),
        systems: wb_record::systems(run, &run_file.invocations),
        metadata: match pending {
            Some(pending) => pending.metadata.clone(),
            None => run_file.invocations.iter().flat_map(|invocation| invocation.metadata.clone()).collect(),
        },
        imports: Vec::new(),
        unchecked_lines: *unchecked_lines,
    }
}

/// What was imported from each file, in the order of the cells.
fn imported_sources(
    run: &RunFolder,
    history: &History,
    cells: &[CellResult],
    registry: &Registry,
) -> Vec<ImportedSource> {
    struct Source<'a> {
        program: String,
        cells: usize,
        samples: usize,
        metrics: BTreeSet<MetricKey>,
        file: &'a Sha256,
    }
    let mut sources: Vec<Source<'_>> = Vec::new();
    for cell in cells {
        // A cell with several batches of a file is still one.
        let mut files: BTreeSet<&Sha256> = BTreeSet::new();
        for batch in history.imports(&cell.id).iter().filter(|batch| batch.key == cell.key) {
            let index = sources.iter().position(|source| *source.file == batch.file).unwrap_or_else(|| {
                let program = source_program(registry, batch);
                sources.push(Source { program, cells: 0, samples: 0, metrics: BTreeSet::new(), file: &batch.file });
                sources.len() - 1
            });
            let source = &mut sources[index];
            source.cells += usize::from(files.insert(&batch.file));
            source.samples += batch.samples.count as usize;
            source.metrics.extend(batch.samples.columns.iter().map(|column| column.metric.key()));
        }
    }
    let imported = |source: Source<'_>| ImportedSource {
        file: copied_file_name(run, source.file).unwrap_or_else(|| format!("SHA-256 {}", source.file)),
        program: source.program,
        cells: source.cells,
        samples: source.samples,
        metrics: source.metrics.len(),
    };
    sources.into_iter().map(imported).collect()
}

/// The program that measured imported samples: its version as the file has it, or the name of the file's format.
fn source_program(registry: &Registry, batch: &ImportedBatch) -> String {
    let test = registry.test(batch.cell.test.as_str());
    let format = test.and_then(|test| test.import_format().map(str::to_owned)).unwrap_or_default();
    match batch.provenance.get(&format!("{format} version")) {
        Some(version) if version.contains(&format) => version.clone(),
        Some(version) => format!("{format} {version}"),
        None => format,
    }
}

fn copied_file_name(run: &RunFolder, file: &Sha256) -> Option<String> {
    let folder = run.path().join(IMPORTED_FOLDER).join(file.as_str());
    let entry = std::fs::read_dir(folder).ok()?.next()?.ok()?;
    let name = entry.file_name().to_string_lossy().into_owned();
    Some(name.strip_suffix(".masked").map_or(name.clone(), str::to_owned))
}

fn machines(invocation: &wb_record::Invocation) -> Vec<String> {
    let names: BTreeSet<&String> = invocation.facts.values().map(|facts| &facts.hostname).collect();
    names.into_iter().filter(|name| !name.is_empty()).cloned().collect()
}

/// The changes in all workers' environments during each invocation, and since the last one with the same profile.
fn changes(run: &RunFolder, invocations: &[Invocation]) -> Result<Vec<EnvironmentChange>, StudyError> {
    let read = |name: &str| run.read_json::<Environment>(&run.environment_path(name));
    let mut all = Vec::new();
    for (index, invocation) in invocations.iter().enumerate() {
        let earlier = invocations[..index].iter().rposition(|earlier| profile(earlier) == profile(invocation));
        for (worker, name) in run.recorded_environments(index as u32, "before") {
            let at_other = |invocation: usize, moment: &str| {
                read(&name.replacen(&format!("world-{index}-before"), &format!("world-{invocation}-{moment}"), 1))
            };
            let Some(before) = read(&name)? else { continue };
            let mut changes = Vec::new();
            if let Some(earlier) = earlier {
                // An invocation that was killed has only the environment from before.
                let last =
                    at_other(earlier, "after")?.map_or_else(|| at_other(earlier, "before"), |last| Ok(Some(last)))?;
                changes.extend(last.into_iter().flat_map(|last| Environment::difference(&last, &before)));
                changes.retain(is_relevant_between_invocations);
            }
            changes.extend(
                at_other(index, "after")?.into_iter().flat_map(|after| Environment::difference(&before, &after)),
            );
            all.extend(changes.into_iter().map(|change| EnvironmentChange {
                worker: worker.clone(),
                path: change.path,
                before: change.before,
                after: change.after,
            }));
        }
    }
    Ok(all)
}

fn profile(invocation: &Invocation) -> Option<&ProfileName> {
    invocation.cells.first().map(|cell| &cell.profile)
}

/// Whether a change between two invocations may affect the results. Their controllers may run in different cgroups, a
/// reboot is not a change of the system, and each invocation looks up the programs of its own tests.
fn is_relevant_between_invocations(change: &ChangedValue) -> bool {
    let is_of_program = change.path.starts_with("tools/") && (change.before.is_none() || change.after.is_none());
    !is_of_program && !change.path.starts_with("cgroup/") && change.path != "kernel/boot-id"
}

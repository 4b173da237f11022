//! What is to be recorded: what files hold, put to what the run has already.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use wb_model::imported::{ARTEFACT, IMPORTED_FROM, ImportedSample, ImportedTest, Origin};
use wb_model::param::differences;
use wb_model::{AttemptOutcome, CellId, DefinitionKey, Metric, ProfileName, Serial, Sha256, TestName};
use wb_record::{Attempt, CellDefinition, History, RecordError, RunFolder};
use wb_stats::Rule;

use crate::foreign::{Foreign, ForeignCell};
use crate::import::Names;
use crate::runperf::Place;
use crate::{Format, ReadError};

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) sha256: Sha256,
    pub(crate) format: Format,
    pub(crate) foreign: Foreign,
    /// The profile and the serial that run-perf's folders say.
    pub(crate) place: Place,
}

/// Cells with samples that the run does not have.
pub(crate) struct Stage<'a> {
    run: &'a RunFolder,
    history: &'a History,
    names: &'a Names,
    /// The cells that the run has, as they are defined.
    before: BTreeMap<CellId, CellDefinition>,
    cells: Vec<StagedCell>,
    index: BTreeMap<CellId, usize>,
    /// The definitions of tests, as the run keeps them.
    tests: BTreeMap<TestName, String>,
}

/// What is new to a run.
pub(crate) struct Staged {
    /// The cells that get samples.
    pub(crate) cells: Vec<StagedCell>,
    /// The definitions of tests, by their names.
    pub(crate) tests: BTreeMap<TestName, String>,
}

/// A cell as it will be, and its new samples.
#[derive(Debug, Clone)]
pub(crate) struct StagedCell {
    pub(crate) definition: CellDefinition,
    pub(crate) samples: Vec<(ImportedSample, AttemptOutcome)>,
    /// Where its samples were read, those in the run included.
    origins: BTreeSet<Origin>,
}

/// What a file came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Added {
    pub(crate) cells: usize,
    pub(crate) samples: usize,
    /// Samples that the run has already.
    pub(crate) already: usize,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(run: &'a RunFolder, history: &'a History, names: &'a Names) -> Result<Self, RecordError> {
        let before = defined(run)?;
        let (cells, index, tests) = Default::default();
        Ok(Self { run, history, names, before, cells, index, tests })
    }

    /// Adds what a file holds: all of it, or, where some of it cannot be, nothing.
    pub(crate) fn add(&mut self, source: &Source) -> Result<Added, ReadError> {
        let mut added = Added::default();
        let mut changed: BTreeMap<CellId, StagedCell> = BTreeMap::new();
        let mut order = Vec::new();
        let mut tests = BTreeMap::new();
        for cell in &source.foreign.cells {
            let id = self.names.cell(cell, source)?;
            let text = test(&id.test, cell, source.format);
            if self.is_another(&id.test, &text) {
                return Err(ReadError::OtherTest { test: id.test });
            }
            tests.insert(id.test.clone(), text);
            let known = changed.remove(&id).unwrap_or_else(|| self.known(&id, cell, source));
            order.push(id.clone());
            changed.insert(id, known.with(cell, source, &mut added)?);
        }
        added.cells = changed.len();
        self.tests.extend(tests);
        for id in order {
            let Some(staged) = changed.remove(&id) else { continue };
            match self.index.get(&id) {
                Some(at) => self.cells[*at] = staged,
                None => {
                    self.index.insert(id, self.cells.len());
                    self.cells.push(staged);
                }
            }
        }
        Ok(added)
    }

    /// What is new to the run.
    pub(crate) fn done(self) -> Staged {
        let cells: Vec<StagedCell> = self.cells.into_iter().filter(|cell| !cell.samples.is_empty()).collect();
        let of_cells: BTreeSet<&TestName> = cells.iter().map(|cell| &cell.definition.cell.test).collect();
        let tests = self.tests.into_iter().filter(|(test, _)| of_cells.contains(test)).collect();
        Staged { cells, tests }
    }

    /// A cell as it is staged or in the run already, or without samples.
    fn known(&self, id: &CellId, cell: &ForeignCell, source: &Source) -> StagedCell {
        if let Some(at) = self.index.get(id) {
            return self.cells[*at].clone();
        }
        let whole = self.history.attempts(id).iter().filter(|attempt| attempt.intact);
        let origins = whole.filter_map(origin).collect();
        let definition = self.before.get(id).cloned();
        let version = source.format.version();
        StagedCell {
            definition: definition.unwrap_or_else(|| CellDefinition {
                teams: Vec::new(),
                cell: id.clone(),
                key: DefinitionKey::new(&id.test, version, &cell.params),
                version,
                summary: cell.summary.clone(),
                params: cell.params.clone(),
                metrics: Vec::new(),
                rule: rule(0),
                retakes: 0,
                min_time: None,
                unsupported: None,
                provenance: BTreeMap::from([(IMPORTED_FROM.to_owned(), source.format.to_string())]),
            }),
            samples: Vec::new(),
            origins,
        }
    }

    /// Whether the run has a test of this name that is another one.
    fn is_another(&self, test: &TestName, text: &str) -> bool {
        if let Some(staged) = self.tests.get(test) {
            return staged != text;
        }
        match fs::read_to_string(self.run.tests().join(format!("{test}.toml"))) {
            Ok(kept) => kept != text,
            Err(_) => self.before.keys().any(|cell| cell.test == *test),
        }
    }
}

/// The definition of a test, as the run keeps it.
fn test(name: &TestName, cell: &ForeignCell, format: Format) -> String {
    let test = ImportedTest {
        name: name.clone(),
        summary: cell.summary.clone(),
        version: format.version(),
        imported: format.to_string(),
    };
    let told = "# Its samples were taken by another program, and imported: nothing here can be run.\n\n";
    told.to_owned() + &toml::to_string(&test).unwrap_or_else(|error| unreachable!("{error}"))
}

/// The cells of a run, as they are defined.
fn defined(run: &RunFolder) -> Result<BTreeMap<CellId, CellDefinition>, RecordError> {
    let mut cells: Vec<CellId> = run.run_file()?.entries.into_iter().flat_map(|entry| entry.cells).collect();
    // One of each serial leads to the file that they share.
    cells.sort();
    cells.dedup_by(|one, other| run.serial(one) == run.serial(other));
    let files = cells.iter().map(|cell| run.definitions(cell));
    let definitions = files.collect::<Result<Vec<_>, _>>()?;
    let all = definitions.into_iter().flat_map(|definitions| definitions.cells);
    Ok(all.map(|definition| (definition.cell.clone(), definition)).collect())
}

/// So many samples are wanted as there are, however far they lie apart: whoever took them decided.
fn rule(samples: usize) -> Rule {
    Rule::Compared { min_samples: samples, max_samples: samples }
}

/// Where the sample of an attempt was read.
fn origin(attempt: &Attempt) -> Option<Origin> {
    let bytes = fs::read(attempt.folder.join(ARTEFACT)).ok()?;
    Some(serde_json::from_slice::<ImportedSample>(&bytes).ok()?.origin)
}

impl StagedCell {
    /// With the samples of a file that it does not have yet.
    fn with(mut self, cell: &ForeignCell, source: &Source, added: &mut Added) -> Result<Self, ReadError> {
        let id = &self.definition.cell;
        if self.definition.params != cell.params {
            let differences = differences(&self.definition.params, &cell.params);
            return Err(ReadError::Redefined { cell: Box::new(id.clone()), differences });
        }
        for sample in &cell.samples {
            let origin = Origin { sha256: source.sha256.clone(), place: sample.place.clone() };
            if !self.origins.insert(origin.clone()) {
                added.already += 1;
                continue;
            }
            for reading in &sample.readings {
                declare(&mut self.definition, &reading.metric)?;
            }
            let outcome = match &sample.failure {
                None => AttemptOutcome::Completed,
                Some(status) => AttemptOutcome::Crashed { status: status.clone() },
            };
            let imported = ImportedSample {
                origin,
                readings: sample.readings.clone(),
                seconds: sample.seconds,
                findings: sample.findings.clone(),
                provenance: source.foreign.provenance.clone(),
            };
            self.samples.push((imported, outcome));
            added.samples += 1;
        }
        self.definition.rule = rule(self.origins.len());
        let sources = self.definition.provenance.entry("files".to_owned()).or_default();
        if !sources.split(", ").any(|known| known == source.name) {
            *sources = if sources.is_empty() { source.name.clone() } else { format!("{sources}, {}", source.name) };
        }
        Ok(self)
    }
}

/// Declares a metric, unless it is declared; it is primary where some sample says so.
fn declare(definition: &mut CellDefinition, metric: &Metric) -> Result<(), ReadError> {
    let same = |known: &Metric| (known.class, &known.name) == (metric.class, &metric.name);
    if let Some(known) = definition.metrics.iter_mut().find(|known| same(known)) {
        if (&known.unit, known.direction) == (&metric.unit, metric.direction) {
            known.primary |= metric.primary;
            return Ok(());
        }
        let told = |metric: &Metric| format!("`{}`, {:?} is better", metric.unit, metric.direction).to_lowercase();
        return Err(ReadError::OtherMetric {
            cell: Box::new(definition.cell.clone()),
            metric: format!("{}/{}", metric.class, metric.name),
            known: told(known),
            new: told(metric),
        });
    }
    definition.metrics.push(metric.clone());
    Ok(())
}

impl Names {
    /// The name that a cell gets.
    fn cell(&self, cell: &ForeignCell, source: &Source) -> Result<CellId, ReadError> {
        let foreign = &source.foreign;
        let several = |differs: &dyn Fn(&ForeignCell) -> bool| foreign.cells.iter().any(differs);
        if self.profile.is_some() && several(&|other| other.profile != cell.profile) {
            let mut known: Vec<String> =
                foreign.cells.iter().filter_map(|cell| Some(cell.profile.as_ref()?.to_string())).collect();
            known.dedup();
            return Err(ReadError::SeveralSystems(known));
        }
        if self.test.is_some() && several(&|other| other.test != cell.test) {
            let tests: BTreeSet<&str> = foreign.cells.iter().map(|cell| cell.test.as_str()).collect();
            return Err(ReadError::SeveralTests(tests.into_iter().map(str::to_owned).collect()));
        }
        let profile = self.profile.clone().or_else(|| source.place.profile.clone()).or_else(|| cell.profile.clone());
        let serial = self.id.clone().map(Serial::Id).or_else(|| source.place.serial.clone());
        Ok(CellId {
            profile: profile.unwrap_or_else(ProfileName::localhost),
            test: self.test.clone().unwrap_or_else(|| cell.test.clone()),
            serial: serial.unwrap_or(Serial::Position(0)),
            case: cell.case(),
        })
    }
}

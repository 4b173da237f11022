//! Staging area: merges the results of files with the existing cells of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use wb_model::imported::{
    IMPORTED_FROM, ImportOrigin, ImportedSample, ImportedSamples, ImportedTest, SAMPLE_ARTEFACT, split_location,
};
use wb_model::param::differences;
use wb_model::{CellId, Criteria, DefinitionKey, Metric, ParamValue, Params, ProfileName, Serial, Sha256, TestName};
use wb_record::{CellDefinition, History, RecordError, RecordedAttempt, RunFolder, files};
use wb_stats::SamplingRule;

use crate::foreign::{Fingerprints, ForeignCell, ForeignResults};
use crate::import::NameOverrides;
use crate::run_perf::ResultLocation;
use crate::systems::Systems;
use crate::{Format, ReadError};

#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) sha256: Sha256,
    pub(crate) format: Format,
    pub(crate) results: ForeignResults,
    pub(crate) location: ResultLocation,
}

/// New samples of cells, before they are recorded.
pub(crate) struct StagingArea<'a> {
    run: &'a RunFolder,
    history: &'a History,
    names: &'a NameOverrides,
    existing_cells: BTreeMap<CellId, CellDefinition>,
    systems: Systems,
    cells: Vec<StagedCell>,
    index: BTreeMap<CellId, usize>,
    /// By what distinguishes cells whatever their names are.
    by_params: BTreeMap<String, CellId>,
    /// Definitions, as recorded in the run.
    tests: BTreeMap<TestName, String>,
}

pub(crate) struct StagedImport {
    pub(crate) cells: Vec<StagedCell>,
    pub(crate) tests: BTreeMap<TestName, String>,
}

#[derive(Debug, Clone)]
pub(crate) struct StagedCell {
    pub(crate) definition: CellDefinition,
    pub(crate) batches: Vec<Arc<StagedBatch>>,
    /// Of all samples, including existing ones, by the hash of the file.
    origins: BTreeMap<Sha256, Arc<Locations>>,
    /// Of the masked parameters; unknown if the cell is of an earlier import only.
    fingerprints: Option<Fingerprints>,
}

/// New samples of a cell from one file.
#[derive(Debug)]
pub(crate) struct StagedBatch {
    pub(crate) file: Sha256,
    pub(crate) provenance: BTreeMap<String, String>,
    pub(crate) samples: ImportedSamples,
}

/// A set of locations in a file, by prefix. There may be millions, which mostly differ in the number at their end.
#[derive(Debug, Clone, Default)]
struct Locations {
    by_prefix: BTreeMap<String, BTreeSet<Option<u64>>>,
    count: usize,
}

impl Locations {
    /// Returns whether the location is new.
    fn insert(&mut self, location: &str) -> bool {
        let (prefix, number) = split_location(location);
        let is_new = match self.by_prefix.get_mut(prefix) {
            Some(numbers) => numbers.insert(number),
            None => self.by_prefix.insert(prefix.to_owned(), BTreeSet::from([number])).is_none(),
        };
        self.count += usize::from(is_new);
        is_new
    }

    fn contains(&self, location: &str) -> bool {
        let (prefix, number) = split_location(location);
        self.by_prefix.get(prefix).is_some_and(|numbers| numbers.contains(&number))
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct AddedCounts {
    pub(crate) cells: usize,
    pub(crate) samples: usize,
    /// Samples that the run already has.
    pub(crate) duplicates: usize,
    /// Cells, with the reason.
    pub(crate) skipped: Vec<String>,
}

impl<'a> StagingArea<'a> {
    pub(crate) fn new(run: &'a RunFolder, history: &'a History, names: &'a NameOverrides) -> Result<Self, RecordError> {
        let existing_cells = read_definitions(run)?;
        let systems = Systems::new(&existing_cells, history);
        let by_params = existing_cells.values().map(|it| (identity(&it.cell, &it.params), it.cell.clone())).collect();
        let (cells, index, tests) = Default::default();
        Ok(Self { run, history, names, existing_cells, systems, cells, index, by_params, tests })
    }

    /// Adds the results of a file; on an error nothing is added.
    pub(crate) fn add(&mut self, source: &SourceFile) -> Result<AddedCounts, ReadError> {
        let mut added = AddedCounts::default();
        let mut changed: BTreeMap<CellId, StagedCell> = BTreeMap::new();
        let mut order = Vec::new();
        let mut tests = BTreeMap::new();
        let mut systems = self.systems.clone();
        self.names.require_one_of_each(&source.results)?;
        for cell in &source.results.cells {
            let provenance = cell_provenance(cell, source);
            let mut id = self.names.cell_id(cell, source);
            let is_fixed = self.names.profile.is_some() || source.location.profile.is_some();
            id.profile = systems.profile(&id, source.format, &provenance, is_fixed)?;
            id.require_readable()?;
            // Another file may name it by more parameters, or by fewer.
            if !self.index.contains_key(&id) && !self.existing_cells.contains_key(&id) {
                id = self.by_params.get(&identity(&id, &cell.params)).cloned().unwrap_or(id);
            }
            let text = render_test_definition(&id.test, cell, source.format);
            if self.is_another_test(&id.test, &text) {
                return Err(ReadError::TestConflict(id.test));
            }
            tests.insert(id.test.clone(), text);
            let staged = changed.remove(&id).unwrap_or_else(|| self.staged_or_existing(&id, cell, source));
            order.push(id.clone());
            changed.insert(id, staged.with_samples(cell, source, provenance, &mut added)?);
        }
        added.cells = changed.values().filter(|staged| staged.origins.contains_key(&source.sha256)).count();
        self.tests.extend(tests);
        self.systems = systems;
        for id in order {
            let Some(staged) = changed.remove(&id) else { continue };
            match self.index.get(&id) {
                Some(index) => self.cells[*index] = staged,
                None => {
                    let identity = identity(&id, &staged.definition.params);
                    self.by_params.entry(identity).or_insert_with(|| id.clone());
                    self.index.insert(id, self.cells.len());
                    self.cells.push(staged);
                }
            }
        }
        Ok(added)
    }

    pub(crate) fn finish(self) -> StagedImport {
        let cells: Vec<StagedCell> = self.cells.into_iter().filter(|cell| !cell.batches.is_empty()).collect();
        let used: BTreeSet<&TestName> = cells.iter().map(|cell| &cell.definition.cell.test).collect();
        let tests = self.tests.into_iter().filter(|(test, _)| used.contains(test)).collect();
        StagedImport { cells, tests }
    }

    /// The staged or existing cell, or a new one without samples.
    fn staged_or_existing(&self, id: &CellId, cell: &ForeignCell, source: &SourceFile) -> StagedCell {
        if let Some(index) = self.index.get(id) {
            return self.cells[*index].clone();
        }
        let mut origins: BTreeMap<Sha256, Arc<Locations>> = BTreeMap::new();
        let mut add = |file: &Sha256, location: &str| {
            Arc::make_mut(origins.entry(file.clone()).or_default()).insert(location);
        };
        // Earlier versions recorded each sample as an attempt.
        let intact = self.history.attempts(id).iter().filter(|attempt| attempt.intact);
        intact.filter_map(read_origin).for_each(|origin| add(&origin.sha256, &origin.location));
        for batch in self.history.imports(id) {
            batch.samples.locations().for_each(|location| add(&batch.file, &location));
        }
        let definition = self.existing_cells.get(id).cloned();
        let version = source.format.version();
        StagedCell {
            definition: definition.unwrap_or_else(|| CellDefinition {
                roles: Vec::new(),
                cell: id.clone(),
                key: DefinitionKey::new(&id.test, version, &cell.params),
                version,
                summary: cell.summary.clone(),
                params: cell.params.clone(),
                metrics: Vec::new(),
                criteria: Criteria::default(),
                rule: fixed_count_rule(0),
                retakes: 0,
                min_time: None,
                unsupported: None,
                provenance: BTreeMap::from([(IMPORTED_FROM.to_owned(), source.format.to_string())]),
            }),
            batches: Vec::new(),
            origins,
            fingerprints: None,
        }
    }

    fn is_another_test(&self, test: &TestName, text: &str) -> bool {
        if let Some(staged) = self.tests.get(test) {
            return staged != text;
        }
        match self.run.read(&self.run.tests_folder().join(format!("{test}.toml"))) {
            Ok(Some(existing)) => existing != text.as_bytes(),
            _ => self.existing_cells.keys().any(|cell| cell.test == *test),
        }
    }
}

fn render_test_definition(name: &TestName, cell: &ForeignCell, format: Format) -> String {
    let test = ImportedTest {
        name: name.clone(),
        summary: cell.summary.clone(),
        version: format.version(),
        imported: format.to_string(),
    };
    let header = "# Its samples were imported from files of another program: this test cannot be run.\n\n";
    header.to_owned() + &toml::to_string(&test).unwrap_or_else(|error| unreachable!("{error}"))
}

fn read_definitions(run: &RunFolder) -> Result<BTreeMap<CellId, CellDefinition>, RecordError> {
    let mut cells: Vec<CellId> =
        run.run_file()?.invocations.into_iter().flat_map(|invocation| invocation.cells).collect();
    // Cells of one serial share a file.
    cells.sort();
    cells.dedup_by(|one, other| run.serial_folder(one) == run.serial_folder(other));
    let files = cells.iter().map(|cell| run.definitions(cell));
    let definitions = files.collect::<Result<Vec<_>, _>>()?;
    let cells = definitions.into_iter().flat_map(|definitions| definitions.cells);
    Ok(cells.map(|definition| (definition.cell.clone(), definition)).collect())
}

/// Rule with exactly the imported number of samples, whatever their spread.
fn fixed_count_rule(samples: usize) -> SamplingRule {
    SamplingRule::External { min_samples: samples, max_samples: samples }
}

fn read_origin(attempt: &RecordedAttempt) -> Option<ImportOrigin> {
    let bytes = files::read(&attempt.run, &attempt.run.join(&attempt.folder).join(SAMPLE_ARTEFACT)).ok()??;
    Some(serde_json::from_slice::<ImportedSample>(&bytes).ok()?.origin)
}

impl StagedCell {
    /// Whether a cell of the same name and parameters is this one, rather than one that differs in a masked secret. If
    /// the secret is unknown, only a file that this cell is from has the same one.
    fn is_same_cell(&self, cell: &ForeignCell, source: &SourceFile) -> bool {
        let has_sample = |known: &Arc<Locations>| cell.samples.locations().any(|location| known.contains(&location));
        let is_known = match &self.fingerprints {
            Some(fingerprints) => *fingerprints == cell.fingerprints,
            None => self.origins.is_empty() || cell.fingerprints.is_empty(),
        };
        is_known || self.origins.get(&source.sha256).is_some_and(has_sample)
    }

    /// Adds the samples of a file that the cell does not have yet.
    fn with_samples(
        mut self,
        cell: &ForeignCell,
        source: &SourceFile,
        provenance: BTreeMap<String, String>,
        added: &mut AddedCounts,
    ) -> Result<Self, ReadError> {
        let id = &self.definition.cell;
        if known(&self.definition.params).ne(known(&cell.params)) {
            let differences = differences(&self.definition.params, &cell.params);
            return Err(ReadError::Redefined { cell: Box::new(id.clone()), differences });
        }
        if !self.is_same_cell(cell, source) {
            added.skipped.push(masked_difference_note(id, cell));
            return Ok(self);
        }
        self.fingerprints.get_or_insert_with(|| cell.fingerprints.clone());
        let locations = Arc::make_mut(self.origins.entry(source.sha256.clone()).or_default());
        let positions = (0..).zip(cell.samples.locations());
        let new: Vec<u32> =
            positions.filter(|(_, location)| locations.insert(location)).map(|(position, _)| position).collect();
        added.duplicates += cell.samples.count as usize - new.len();
        added.samples += new.len();
        if !new.is_empty() {
            if cell.samples.failures.len() == cell.samples.count as usize {
                // No sample of it describes its circumstances.
                self.definition.provenance.extend(provenance.clone());
            }
            let is_whole = new.len() == cell.samples.count as usize;
            let samples = if is_whole { cell.samples.clone() } else { cell.samples.select(&new) };
            for column in &samples.columns {
                declare_metric(&mut self.definition, &column.metric)?;
            }
            self.batches.push(Arc::new(StagedBatch { file: source.sha256.clone(), provenance, samples }));
        }
        self.definition.rule = fixed_count_rule(self.origins.values().map(|locations| locations.count).sum());
        let sources = self.definition.provenance.entry("files".to_owned()).or_default();
        if !sources.split(", ").any(|file| file == source.name) {
            *sources = if sources.is_empty() { source.name.clone() } else { format!("{sources}, {}", source.name) };
        }
        Ok(self)
    }
}

/// Parameters with a value; those without one are only there because other cells have them.
fn known(params: &Params) -> impl Iterator<Item = (&String, &ParamValue)> {
    params.iter().filter(|(_, value)| **value != ParamValue::Text(String::new()))
}

/// What distinguishes a cell whatever its name is.
fn identity(CellId { profile, test, serial, .. }: &CellId, params: &Params) -> String {
    format!("{profile}/{test}/{serial} {:?}", known(params).collect::<Vec<_>>())
}

fn cell_provenance(cell: &ForeignCell, source: &SourceFile) -> BTreeMap<String, String> {
    let mut all = source.results.provenance.clone();
    all.extend(cell.provenance.clone());
    all.extend(cell.remarks.clone());
    all
}

fn masked_difference_note(id: &CellId, cell: &ForeignCell) -> String {
    let location = cell.samples.locations().next().unwrap_or_default();
    format!(
        "skipped `{id}` at {location}: differs from another one only in a masked secret; give it another name where it is \
         measured (hyperfine's --command-name), or import its file with --id"
    )
}

/// Declares a metric, unless it is declared already; it is primary if it is primary in any sample.
fn declare_metric(definition: &mut CellDefinition, metric: &Metric) -> Result<(), ReadError> {
    let key = metric.key();
    if let Some(existing) = definition.metrics.iter_mut().find(|existing| existing.key() == key) {
        if (&existing.unit, existing.direction) == (&metric.unit, metric.direction) {
            existing.primary |= metric.primary;
            return Ok(());
        }
        let describe = |metric: &Metric| format!("`{}`, {:?} is better", metric.unit, metric.direction).to_lowercase();
        return Err(ReadError::MetricConflict {
            cell: Box::new(definition.cell.clone()),
            metric: key,
            existing: describe(existing),
            imported: describe(metric),
        });
    }
    definition.metrics.push(metric.clone());
    Ok(())
}

impl NameOverrides {
    /// Refuses a file whose cells would get one name although they are of several systems or tests.
    fn require_one_of_each(&self, results: &ForeignResults) -> Result<(), ReadError> {
        let profiles = || results.cells.iter().map(|cell| cell.profile.as_ref());
        if self.profile.is_some() && profiles().any(|profile| Some(profile) != profiles().next()) {
            let mut systems: Vec<String> = profiles().flatten().map(ToString::to_string).collect();
            systems.dedup();
            return Err(ReadError::SeveralSystems(systems));
        }
        let tests: BTreeSet<&str> = results.cells.iter().map(|cell| cell.test.as_str()).collect();
        if self.test.is_some() && tests.len() > 1 {
            return Err(ReadError::SeveralTests(tests.into_iter().map(str::to_owned).collect()));
        }
        Ok(())
    }

    fn cell_id(&self, cell: &ForeignCell, source: &SourceFile) -> CellId {
        let profile = self.profile.clone().or_else(|| source.location.profile.clone()).or_else(|| cell.profile.clone());
        let serial = self.id.clone().map(Serial::Id).or_else(|| source.location.serial.clone());
        CellId {
            profile: profile.unwrap_or_else(ProfileName::localhost),
            test: self.test.clone().unwrap_or_else(|| cell.test.clone()),
            serial: serial.unwrap_or(Serial::Position(0)),
            case: cell.case(),
        }
    }
}

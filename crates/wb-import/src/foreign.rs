//! Common representation of the results of another program: cells with samples.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::imported::{ImportRejection, ImportedSamples, ImportedValue};
use wb_model::{Case, Facts, Gate, Metric, ParamValue, Params, ProfileName, Sha256, TestName};

use crate::ReadError;

/// Parameter of cells that only their order in the file distinguishes: 1, 2, …
const OCCURRENCE: &str = "occurrence";

/// Results in a file of another program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignResults {
    /// In the order of the file.
    pub cells: Vec<ForeignCell>,
    /// Unknown parts are empty.
    pub machine: ForeignMachine,
    pub machines: BTreeMap<String, ForeignMachine>,
    /// Circumstances that may explain the figures: host, kernel, versions.
    pub provenance: BTreeMap<String, String>,
    pub metadata: BTreeMap<String, String>,
    /// Skipped results, with the reason.
    pub notes: Vec<String>,
    /// Left out on purpose: failed attempts at an iteration that then succeeded, and entries without figures in files
    /// of this kind.
    pub omitted: Vec<String>,
    /// Texts with secrets, and the same texts with masked secrets.
    pub secrets: Vec<(String, String)>,
    index: BTreeMap<String, Vec<usize>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignMachine {
    /// Unknown parts are empty.
    pub facts: Facts,
    /// In the sections of an environment of this program; `None` if the file has none.
    pub environment: Option<serde_json::Map<String, serde_json::Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ForeignCell {
    pub profile: Option<ProfileName>,
    pub test: TestName,
    /// What the test measures, in one line that is the same for all its cells.
    pub summary: String,
    pub params: Params,
    /// Parameters in the cell's name.
    pub axes: Vec<String>,
    /// In the order of the file.
    pub samples: ImportedSamples,
    /// In addition to those of the file, such as the system if there are several.
    pub provenance: BTreeMap<String, String>,
    /// Remarks of the program on this cell, which do not distinguish it from others.
    pub remarks: BTreeMap<String, String>,
    pub(crate) fingerprints: Fingerprints,
}

/// Hashes of the unmasked values of parameters with masked secrets, by parameter. They distinguish cells that are
/// identical after masking, and are never recorded: a short secret can be found by its hash.
pub(crate) type Fingerprints = BTreeMap<String, Sha256>;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignSample {
    /// Unique in the file.
    pub location: String,
    pub readings: Vec<ImportedValue>,
    /// Of the measured part, if known.
    pub seconds: Option<f64>,
    /// Why it failed, if it did; it is not evaluated then.
    pub failure: Option<String>,
    /// Status with which the command ended although the program went on.
    pub exit_status: i32,
    /// Why its figures, which are kept, are invalid.
    pub rejection: Option<ImportRejection>,
    pub findings: Vec<String>,
    /// What disturbed it where it was measured.
    pub disturbances: Vec<String>,
}

impl ForeignCell {
    pub(crate) fn new(test: TestName, summary: impl Into<String>) -> Self {
        Self {
            profile: None,
            test,
            summary: summary.into(),
            params: Params::new(),
            axes: Vec::new(),
            samples: ImportedSamples::default(),
            provenance: BTreeMap::new(),
            remarks: BTreeMap::new(),
            fingerprints: Fingerprints::new(),
        }
    }

    /// Sets a parameter. Values are texts, as programs are inconsistent in writing numbers or texts.
    pub(crate) fn param(&mut self, name: &str, value: impl ToString) {
        self.params.insert(name.to_owned(), ParamValue::Text(value.to_string()));
        self.fingerprints.remove(name);
    }

    /// Notes the unmasked value of a parameter that was set to a masked one, if they differ.
    pub(crate) fn set_unmasked(&mut self, name: &str, value: &str, masked: &str) {
        if value != masked {
            self.fingerprints.insert(name.to_owned(), Sha256::digest(value.as_bytes()));
        }
    }

    pub(crate) fn axis(&mut self, name: &str, value: impl ToString) {
        self.param(name, value);
        self.add_axis(name);
    }

    /// Sets a parameter that is part of the cell's name, beside any that the program calls the same: `x=1`, `x-2=7`.
    pub(crate) fn distinct_axis(&mut self, name: &str, value: impl ToString) {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !self.params.contains_key(name));
        self.axis(&free.unwrap_or_else(|| name.to_owned()), value);
    }

    pub(crate) fn add_axis(&mut self, name: &str) {
        if self.axes.iter().all(|axis| axis != name) {
            self.axes.push(name.to_owned());
        }
    }

    /// Sets a parameter of the import itself that is part of the cell's name. A parameter of the program with this name
    /// is renamed: otherwise one would replace the other, and different cells would become one.
    pub(crate) fn own_axis(&mut self, name: &str, value: impl ToString) {
        if let Some(foreign) = self.params.remove(name) {
            let mut renamed = format!("parameter-{name}");
            while self.params.contains_key(&renamed) {
                renamed.insert_str(0, "parameter-");
            }
            self.axes.iter_mut().filter(|axis| *axis == name).for_each(|axis| axis.clone_from(&renamed));
            let fingerprint = self.fingerprints.remove(name);
            self.fingerprints.extend(fingerprint.map(|fingerprint| (renamed.clone(), fingerprint)));
            self.params.insert(renamed, foreign);
        }
        self.axis(name, value);
    }

    /// A text that is equal for cells that cannot be told apart.
    fn identity(&self) -> String {
        let Self { profile, test, params, provenance, fingerprints, .. } = self;
        format!("{profile:?} {test} {params:?} {provenance:?} {fingerprints:?}")
    }

    pub fn rows(&self) -> impl Iterator<Item = ForeignSample> {
        let rows = (0..self.samples.count).filter_map(|position| self.samples.sample(position));
        rows.zip(self.samples.locations()).map(|(row, location)| ForeignSample {
            location,
            readings: row
                .values
                .into_iter()
                .map(|(metric, value)| ImportedValue { metric: metric.clone(), value })
                .collect(),
            seconds: row.seconds,
            failure: row.failure.map(str::to_owned),
            exit_status: row.exit_status,
            rejection: row.rejection.cloned(),
            findings: row.findings.into_iter().map(str::to_owned).collect(),
            disturbances: row.disturbances.into_iter().map(str::to_owned).collect(),
        })
    }

    pub fn case(&self) -> Case {
        Case::new(self.axes.iter().filter_map(|axis| Some((axis.as_str(), self.params.get(axis)?))))
    }
}

#[cfg(test)]
pub(crate) fn row(cell: &ForeignCell, position: usize) -> ForeignSample {
    cell.rows().nth(position).unwrap()
}

impl Extend<ForeignSample> for ImportedSamples {
    fn extend<T: IntoIterator<Item = ForeignSample>>(&mut self, samples: T) {
        for sample in samples {
            let ForeignSample { location, readings, seconds, failure, exit_status, rejection, findings, disturbances } =
                sample;
            self.push(&location, &readings, seconds, findings, rejection, failure);
            self.set_last_exit_status(exit_status);
            self.set_last_disturbances(disturbances);
        }
    }
}

impl FromIterator<ForeignSample> for ImportedSamples {
    fn from_iter<T: IntoIterator<Item = ForeignSample>>(samples: T) -> Self {
        let mut all = Self::default();
        all.extend(samples);
        all
    }
}

impl ForeignSample {
    pub(crate) fn at(location: impl Into<String>) -> Self {
        Self { location: location.into(), ..Self::default() }
    }

    /// Marks the figures as invalid; an earlier reason is kept.
    pub(crate) fn reject(&mut self, gate: Gate, figures: impl Into<String>) {
        self.rejection.get_or_insert_with(|| ImportRejection { gate, figures: figures.into() });
    }

    pub(crate) fn push_reading(&mut self, metric: Metric, value: Option<f64>) {
        self.readings.extend(value.map(|value| ImportedValue { metric, value }));
    }
}

impl ForeignResults {
    /// Adds a cell, or its samples to an identical cell.
    pub(crate) fn add(&mut self, cell: ForeignCell) {
        match self.index.get(&cell.identity()).and_then(|cells| cells.last()) {
            Some(position) => self.cells[*position].samples.extend(cell.rows()),
            None => self.add_apart(cell),
        }
    }

    /// Adds a cell apart from identical ones: the file has it as another result.
    pub(crate) fn add_apart(&mut self, cell: ForeignCell) {
        self.index.entry(cell.identity()).or_default().push(self.cells.len());
        self.cells.push(cell);
    }

    /// Numbers cells that are identical but apart in the file, in its order.
    pub(crate) fn number_occurrences(&mut self) {
        for cells in self.index.values().filter(|cells| cells.len() > 1) {
            for (number, position) in (1..).zip(cells) {
                self.cells[*position].own_axis(OCCURRENCE, number);
            }
        }
    }

    /// Refuses a file without cells: for the reason of what was skipped first, or because it has nothing of this kind.
    pub(crate) fn require_cells(self, kind: &str) -> Result<Self, ReadError> {
        if self.cells.is_empty() {
            Err(ReadError::Empty(self.notes.into_iter().next().unwrap_or_else(|| format!("no {kind}"))))
        } else {
            Ok(self)
        }
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&ForeignCell) -> bool) {
        self.index.clear();
        for cell in std::mem::take(&mut self.cells) {
            if is_kept(&cell) {
                self.add_apart(cell);
            }
        }
    }

    /// Adds parameters in which cells differ to their names, where the names would be equal otherwise. The system
    /// counts as a parameter, and a parameter without a value is in no name. A name depends as little as possible on
    /// the rest of the file, since `compare` pairs cells by their names.
    pub(crate) fn disambiguate(&mut self) {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, cell) in self.cells.iter().enumerate() {
            groups.entry(format!("{} {}", cell.test, cell.case())).or_default().push(index);
        }
        for group in groups.values().filter(|group| group.len() > 1) {
            let names: BTreeSet<String> =
                group.iter().flat_map(|index| self.cells[*index].params.keys().cloned()).collect();
            for name in names {
                let values = || group.iter().map(|index| self.cells[*index].params.get(&name));
                if values().any(|value| value != self.cells[group[0]].params.get(&name)) {
                    for index in group {
                        let cell = &mut self.cells[*index];
                        let value = cell.params.entry(name.clone()).or_insert_with(|| ParamValue::Text(String::new()));
                        if *value != ParamValue::Text(String::new()) {
                            cell.add_axis(&name);
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn fail_empty_samples(&mut self) {
        self.cells.iter_mut().for_each(|cell| cell.samples.fail_empty());
    }

    /// Adds a circumstance that may explain the figures, if it is known.
    pub(crate) fn add_provenance(&mut self, name: &str, value: Option<impl ToString>) {
        let value = value.map(|value| value.to_string()).filter(|value| !value.trim().is_empty());
        self.provenance.extend(value.map(|value| (name.to_owned(), value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::valid_name;

    #[test]
    fn cells_of_one_name_are_distinguished_by_differing_parameters() {
        let mut foreign = ForeignResults::default();
        for (size, direct) in [("1g", "1"), ("2g", "1")] {
            let mut cell = ForeignCell::new(valid_name("x"), "");
            cell.axis("job", "j");
            cell.param("size", size);
            cell.param("direct", direct);
            foreign.add(cell);
        }
        foreign.disambiguate();
        let cases: Vec<String> = foreign.cells.iter().map(|cell| cell.case().to_string()).collect();
        assert_eq!(cases, ["job=j,size=1g", "job=j,size=2g"]);
    }

    #[test]
    fn a_parameter_without_a_value_is_in_no_name() {
        let mut foreign = ForeignResults::default();
        for size in [None, Some(""), Some("1g"), Some("2g")] {
            let mut cell = ForeignCell::new(valid_name("x"), "");
            cell.axis("job", size.map_or("a", |_| "b"));
            size.into_iter().for_each(|size| cell.param("size", size));
            foreign.add(cell);
        }
        foreign.disambiguate();
        let cases: Vec<String> = foreign.cells.iter().map(|cell| cell.case().to_string()).collect();
        assert_eq!(cases, ["job=a", "job=b", "job=b,size=1g", "job=b,size=2g"]);
    }
}

//! Common representation of the results of another program: cells with samples.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::imported::ImportedValue;
use wb_model::{Case, Facts, Metric, ParamValue, Params, ProfileName, TestName};

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignResults {
    /// Its cells, in its own order.
    pub cells: Vec<ForeignCell>,
    /// What it says of the machine; what it does not say is empty.
    pub machine: Facts,
    /// What may explain its figures: host, kernel, versions.
    pub provenance: BTreeMap<String, String>,
    /// What it says of the run.
    pub metadata: BTreeMap<String, String>,
    /// What of it was left out, each in a sentence.
    pub notes: Vec<String>,
    /// Texts of it that hold secrets, and the same with these masked.
    pub secrets: Vec<(String, String)>,
    /// Where each cell is, by all that tells it from others.
    index: BTreeMap<String, usize>,
}

/// A cell of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignCell {
    /// The profile that it was measured in, where the file says so.
    pub profile: Option<ProfileName>,
    /// The test.
    pub test: TestName,
    /// What that measures, in a line that is the same for all its cells.
    pub summary: String,
    /// Every parameter.
    pub params: Params,
    /// Those that stand in the cell's name.
    pub axes: Vec<String>,
    /// Its samples, in the file's order.
    pub samples: Vec<ForeignSample>,
}

/// A sample of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignSample {
    /// Where in the file it stands; no two samples stand at one place.
    pub place: String,
    /// Its figures.
    pub readings: Vec<ImportedValue>,
    /// How long its measured part took, in seconds, where that is known.
    pub seconds: Option<f64>,
    /// Why it failed, where it did: it then counts for nothing.
    pub failure: Option<String>,
    /// What was noticed, each in a sentence.
    pub findings: Vec<String>,
}

impl ForeignCell {
    /// A cell without samples.
    pub(crate) fn new(test: TestName, summary: impl Into<String>) -> Self {
        Self {
            profile: None,
            test,
            summary: summary.into(),
            params: Params::new(),
            axes: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Sets a parameter. Values are texts, since programs write the same one as a number here and as a text there.
    pub(crate) fn param(&mut self, name: &str, value: impl ToString) {
        self.params.insert(name.to_owned(), ParamValue::Text(value.to_string()));
    }

    /// Sets a parameter that stands in the cell's name.
    pub(crate) fn axis(&mut self, name: &str, value: impl ToString) {
        self.param(name, value);
        if self.axes.iter().all(|axis| axis != name) {
            self.axes.push(name.to_owned());
        }
    }

    /// Its axes with their values.
    pub fn case(&self) -> Case {
        Case::new(self.axes.iter().filter_map(|axis| Some((axis.as_str(), self.params.get(axis)?))))
    }
}

impl ForeignSample {
    /// A sample without figures.
    pub(crate) fn at(place: impl Into<String>) -> Self {
        Self { place: place.into(), ..Self::default() }
    }

    /// Adds a figure, where there is one.
    pub(crate) fn push_reading(&mut self, metric: Metric, value: Option<f64>) {
        self.readings.extend(value.map(|value| ImportedValue { metric, value }));
    }
}

impl ForeignResults {
    /// Adds samples: to the cell that is the same, or as a cell of their own.
    pub(crate) fn add(&mut self, cell: ForeignCell) {
        let identity = format!("{:?} {} {:?}", cell.profile, cell.test, cell.params);
        match self.index.get(&identity) {
            Some(at) => self.cells[*at].samples.extend(cell.samples),
            None => {
                self.index.insert(identity, self.cells.len());
                self.cells.push(cell);
            }
        }
    }

    /// Puts parameters into the names of cells that would have the same name without: those in which they differ.
    pub(crate) fn disambiguate(&mut self) {
        let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, cell) in self.cells.iter().enumerate() {
            alike.entry(format!("{:?} {} {}", cell.profile, cell.test, cell.case())).or_default().push(at);
        }
        for group in alike.values().filter(|group| group.len() > 1) {
            let names: BTreeSet<String> = group.iter().flat_map(|at| self.cells[*at].params.keys().cloned()).collect();
            for name in names {
                let values = || group.iter().map(|at| self.cells[*at].params.get(&name));
                if values().any(|value| value != self.cells[group[0]].params.get(&name)) {
                    for at in group {
                        let value = self.cells[*at].params.get(&name).map(ToString::to_string).unwrap_or_default();
                        self.cells[*at].axis(&name, value);
                    }
                }
            }
        }
    }

    /// A sample that no figure can be read of is none that was measured.
    pub(crate) fn fail_empty_samples(&mut self) {
        for sample in self.cells.iter_mut().flat_map(|cell| &mut cell.samples) {
            if sample.readings.is_empty() && sample.failure.is_none() {
                sample.failure = Some(format!("no figure can be read at {}", sample.place));
            }
        }
    }

    /// Says what may explain the figures, where that is known.
    pub(crate) fn add_provenance(&mut self, what: &str, value: Option<impl ToString>) {
        let value = value.map(|value| value.to_string()).filter(|value| !value.trim().is_empty());
        self.provenance.extend(value.map(|value| (what.to_owned(), value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::valid_name;

    #[test]
    fn cells_of_one_name_are_told_apart_by_what_differs() {
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
}

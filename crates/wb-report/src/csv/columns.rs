//! The columns that begin each row: the cell, its parameters, and the metric with its unit and worker.

use std::collections::BTreeSet;

const CELL: [&str; 4] = ["cell", "profile", "test", "serial"];

const METRIC: [&str; 3] = ["metric", "unit", "worker"];

pub(crate) struct CellColumns {
    params: Vec<String>,
}

/// The leading columns of a row in addition to the parameters; an unknown value is empty.
#[derive(Default)]
pub(crate) struct CellFields {
    pub(crate) cell: String,
    pub(crate) profile: String,
    pub(crate) test: String,
    pub(crate) serial: String,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) worker: String,
}

impl CellColumns {
    pub(crate) fn new(params: BTreeSet<String>) -> Self {
        Self { params: params.into_iter().collect() }
    }

    /// The names of all columns of a file with these other `values`. A parameter with the name of another column is
    /// prefixed, also if that column is in another of these `files`, so that its name is the same in all of them.
    pub(crate) fn header(&self, values: &[&str], files: &[&[&str]]) -> Vec<String> {
        let is_taken = |name: &str| files.iter().copied().chain([&CELL[..], &METRIC]).flatten().any(|it| *it == name);
        let params =
            self.params.iter().map(|name| if is_taken(name) { format!("parameter.{name}") } else { name.clone() });
        let owned = |name: &&str| (*name).to_owned();
        let others = METRIC.iter().chain(values).map(owned);
        CELL.iter().map(owned).chain(params).chain(others).collect()
    }

    pub(crate) fn row(&self, fields: CellFields, param: impl Fn(&str) -> String) -> Vec<String> {
        let CellFields { cell, profile, test, serial, metric, unit, worker } = fields;
        let params = self.params.iter().map(|name| param(name));
        [cell, profile, test, serial].into_iter().chain(params).chain([metric, unit, worker]).collect()
    }
}

//! The setup of tests: the parameters and programs of each cell of a run. run-perf calls it the environment of the
//! tests.
//!
//! Start with [`TestSetups`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::build::{Build, Builds, InternedCell, ParamSetId, Run};
use crate::build::{DEFINITION_KEY, METRIC_CLASS, METRIC_DIRECTION, METRIC_UNIT};
use crate::environment::changes;
use crate::interner::Symbol;
use wb_model::pluralize;
use wb_results::comparison::{IdFormat, ValueChange};

/// The setups of a run's tests, by `PROFILE/TEST/SERIAL` and case.
#[derive(Debug)]
pub struct TestSetups<'a> {
    builds: &'a Builds,
    tests: BTreeMap<String, BTreeMap<&'a str, CellSetup<'a>>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct CellSetup<'a> {
    id_format: IdFormat,
    params: ParamSetId,
    /// Paths, versions and hashes, by name.
    programs: &'a [(Symbol, Symbol)],
}

/// The setup of a test; the values common to all of its cases are listed once.
#[derive(Serialize)]
struct TestRecord<'a> {
    parameters: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    programs: BTreeMap<&'a str, &'a str>,
    /// Values that not all cases have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cases: BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>,
}

/// The parameter of pbench's tests that lists the client machines; that of a further benchmark has a number before it.
const CLIENTS_PARAM: &str = "clients";

type Values = BTreeMap<String, BTreeSet<String>>;

impl<'a> TestSetups<'a> {
    /// The setups of each run of `build` that has any; `build` is one of `builds`.
    pub fn of_build(builds: &'a Builds, build: &'a Build) -> Vec<Self> {
        build.runs.iter().map(|run| Self::new(builds, run)).filter(|setups| !setups.tests.is_empty()).collect()
    }

    fn new(builds: &'a Builds, run: &'a Run) -> Self {
        let text = |name| builds.names.resolve(name);
        let mut tests: BTreeMap<String, BTreeMap<&str, CellSetup<'_>>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for row in builds.rows() {
            let Some(reading) = run.reading(row) else { continue };
            let key = builds.rows[row.index()];
            let cell = InternedCell { profile: key.profile, test: key.test, serial: key.serial, case: key.case };
            if !seen.insert(cell) {
                continue;
            }
            let test = format!("{}/{}/{}", text(cell.profile), text(cell.test), text(cell.serial));
            let programs = run.programs.get(&cell).map_or(&[][..], Vec::as_slice);
            let setup = CellSetup { id_format: key.id_format, params: reading.params, programs };
            tests.entry(test).or_default().insert(text(cell.case), setup);
        }
        Self { builds, tests }
    }

    /// The differences, by test. Equal changes of several cases are merged, with the cells that have them.
    pub fn differences(&self, other: &Self) -> Vec<(String, Vec<ValueChange>)> {
        let names: BTreeSet<&String> = self.tests.keys().chain(other.tests.keys()).collect();
        let of_test = |name: &String| {
            let changes = match (self.tests.get(name), other.tests.get(name)) {
                (Some(before), Some(after)) => self.changes_of_test(name, before, after),
                (before, after) => {
                    let cases = |side: Option<&BTreeMap<_, _>>| side.map(|cases| pluralize(cases.len(), "case"));
                    vec![ValueChange::new("", cases(before), cases(after))]
                }
            };
            (name.clone(), changes)
        };
        names.into_iter().map(of_test).filter(|(_, changes)| !changes.is_empty()).collect()
    }

    /// The values common to all cases of a test are listed once.
    pub fn to_json(&self) -> String {
        let records: BTreeMap<&String, TestRecord<'_>> =
            self.tests.iter().map(|(name, cases)| (name, self.record(cases))).collect();
        serde_json::to_string_pretty(&records).expect("plain data has a JSON form")
    }

    fn changes_of_test(
        &self,
        test: &str,
        before: &BTreeMap<&'a str, CellSetup<'a>>,
        after: &BTreeMap<&'a str, CellSetup<'a>>,
    ) -> Vec<ValueChange> {
        let mut cells: BTreeMap<(String, Option<String>, Option<String>), Vec<String>> = BTreeMap::new();
        let mut redefined = Vec::new();
        for (case, before) in before {
            let Some(after) = after.get(case).filter(|after| *after != before) else { continue };
            let cell = format!("{test}:{case}");
            let params = changes(&self.params(before), &self.params(after));
            if params.is_empty() && self.key(before) != self.key(after) {
                redefined.push((self.key(before), self.key(after), cell.clone()));
            }
            let programs = changes(&self.programs(before), &self.programs(after));
            for ValueChange { name, before, after, .. } in params.into_iter().chain(programs) {
                cells.entry((name, before, after)).or_default().push(cell.clone());
            }
        }
        let changed =
            cells.into_iter().map(|((name, before, after), cells)| ValueChange { name, before, after, cells });
        missing_cases(before, after).into_iter().chain(key_change(redefined)).chain(changed).collect()
    }

    fn all_params(&self, setup: &CellSetup<'a>) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.builds.params(setup.params)
    }

    /// The parameters without the key, which is derived from them, and without what is of one of the metrics.
    fn params(&self, setup: &CellSetup<'a>) -> Values {
        let comparable = |name: &str, value: &str| match setup.id_format {
            // The addresses of guests change at every start.
            IdFormat::RunPerf if name.ends_with(CLIENTS_PARAM) => pluralize(value.split(',').count(), "client"),
            IdFormat::RunPerf | IdFormat::Weighbridge => value.to_owned(),
        };
        let of_metric = [METRIC_UNIT, METRIC_DIRECTION, METRIC_CLASS];
        let params = self.all_params(setup).filter(|(name, _)| *name != DEFINITION_KEY && !of_metric.contains(name));
        params.map(|(name, value)| (name.to_owned(), BTreeSet::from([comparable(name, value)]))).collect()
    }

    fn key(&self, setup: &CellSetup<'a>) -> Option<&'a str> {
        self.all_params(setup).find(|(name, _)| *name == DEFINITION_KEY).map(|(_, value)| value)
    }

    fn all_programs(&self, setup: &CellSetup<'a>) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let builds = self.builds;
        setup.programs.iter().map(move |(name, value)| (builds.names.resolve(*name), builds.names.resolve(*value)))
    }

    fn programs(&self, setup: &CellSetup<'a>) -> Values {
        let programs = self.all_programs(setup);
        programs.map(|(name, value)| (name.to_owned(), BTreeSet::from([value.to_owned()]))).collect()
    }

    fn record(&self, cases: &BTreeMap<&'a str, CellSetup<'a>>) -> TestRecord<'a> {
        let parameters = intersection(cases.values().map(|setup| self.all_params(setup).collect()));
        let programs = intersection(cases.values().map(|setup| self.all_programs(setup).collect()));
        let specific = |setup: &CellSetup<'a>| -> BTreeMap<&'a str, &'a str> {
            let is_specific = |common: &BTreeMap<&str, &str>, name: &str| !common.contains_key(name);
            let params = self.all_params(setup).filter(|(name, _)| is_specific(&parameters, name));
            params.chain(self.all_programs(setup).filter(|(name, _)| is_specific(&programs, name))).collect()
        };
        let cases = cases.iter().map(|(case, setup)| (*case, specific(setup)));
        let cases = cases.filter(|(_, specific)| !specific.is_empty()).collect();
        TestRecord { parameters, programs, cases }
    }
}

fn intersection<'a>(mut sets: impl Iterator<Item = BTreeMap<&'a str, &'a str>>) -> BTreeMap<&'a str, &'a str> {
    let mut common = sets.next().unwrap_or_default();
    for set in sets {
        common.retain(|name, value| set.get(name) == Some(value));
    }
    common
}

fn missing_cases(before: &BTreeMap<&str, CellSetup<'_>>, after: &BTreeMap<&str, CellSetup<'_>>) -> Option<ValueChange> {
    let alone = |one: &BTreeMap<&str, CellSetup<'_>>, other: &BTreeMap<&str, CellSetup<'_>>| {
        let cases: Vec<&str> = one.keys().filter(|case| !other.contains_key(*case)).copied().collect();
        (!cases.is_empty()).then(|| cases.join(", "))
    };
    let (before, after) = (alone(before, after), alone(after, before));
    (before.is_some() || after.is_some()).then(|| ValueChange::new("cases on one side only", before, after))
}

/// The change of keys of cells with equal parameters, which another version of the test measured. Each cell has a key
/// of its own, so that several keys are reported by their number.
fn key_change(redefined: Vec<(Option<&str>, Option<&str>, String)>) -> Option<ValueChange> {
    let keys = |all: BTreeSet<&str>| match all.len() {
        0 => None,
        1 => all.first().map(|key| (*key).to_owned()),
        several => Some(format!("{several} keys")),
    };
    let before = keys(redefined.iter().filter_map(|(before, ..)| *before).collect());
    let after = keys(redefined.iter().filter_map(|(_, after, _)| *after).collect());
    let cells: Vec<String> = redefined.into_iter().map(|(.., cell)| cell).collect();
    (!cells.is_empty()).then(|| ValueChange { cells, ..ValueChange::new(DEFINITION_KEY, before, after) })
}

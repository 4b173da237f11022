//! The parts of a run: cells, or cells on a worker, with their levels and what else they have to agree in.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wb_model::{Case, Class};
use wb_results::comparison::{CheckId, Statistic};

use super::{Factor, SplitOptions, WithinRunError};
use crate::build::{Builds, DEFINING_PARAMS, EMULATED, InternedCell, MetricIndex};
use crate::distinct::distinct;
use crate::unknown_name::UnknownName;

/// What counterparts agree in: names and values.
type Family = Vec<(String, String)>;

/// A cell, or a cell on one of its workers.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) cell: InternedCell,
    /// If units are workers of cells.
    pub(super) worker: Option<String>,
    pub(super) level: String,
    family: Family,
    /// Its metrics, by class and by name without a worker.
    pub(super) metrics: Vec<(Class, String, MetricIndex)>,
}

impl Unit {
    pub(super) fn metric(&self, class: Class, name: &str) -> Option<MetricIndex> {
        self.metrics.iter().find(|(of, metric, _)| *of == class && metric == name).map(|(_, _, row)| *row)
    }

    fn compared(&self, builds: &Builds) -> impl Iterator<Item = (Class, &str)> {
        let compared = self.metrics.iter().filter(|(class, _, row)| class.is_compared(builds.is_primary(*row)));
        compared.map(|(class, name, _)| (*class, name.as_str()))
    }

    pub(super) fn has_common_metric(&self, other: &Self, builds: &Builds) -> bool {
        self.compared(builds).any(|(class, name)| other.metric(class, name).is_some())
    }

    pub(super) fn describe_metrics(&self, builds: &Builds) -> String {
        let metrics: Vec<String> = self.compared(builds).map(|(class, name)| format!("{class}/{name}")).collect();
        format!("`{}` has {}", builds.cell_name(self.cell), metrics.join(", "))
    }
}

/// All units of a run, in the order of its plan.
pub(super) struct Units {
    all: Vec<Unit>,
    /// In messages: `` `threads` ``, `the worker`.
    factor: String,
    /// The parameters with several values.
    varying: Vec<String>,
    /// In the order of the plan.
    profiles: Vec<String>,
}

impl Units {
    pub(super) fn new(builds: &Builds, options: &SplitOptions) -> Self {
        let mut cells: Vec<(InternedCell, Vec<MetricIndex>)> = Vec::new();
        let mut positions: HashMap<InternedCell, usize> = HashMap::new();
        for row in builds.rows() {
            let index = *positions.entry(builds.cell(row)).or_insert_with(|| {
                cells.push((builds.cell(row), Vec::new()));
                cells.len() - 1
            });
            cells[index].1.push(row);
        }
        let planned = builds.list().iter().flat_map(|build| &build.runs).flat_map(|run| &run.schedule.planned);
        let mut order: HashMap<&str, usize> = HashMap::new();
        for (index, name) in planned.enumerate() {
            order.entry(name).or_insert(index);
        }
        cells.sort_by_key(|(cell, _)| order.get(builds.cell_name(*cell).as_str()).copied().unwrap_or(usize::MAX));
        let (all, factor) = match &options.factor {
            Factor::Worker => (of_workers(builds, &cells), "the worker".to_owned()),
            Factor::Id => (of_tests(builds, &cells), "the id".to_owned()),
            Factor::Param { name, by_test } => {
                (of_param(builds, &cells, (name, by_test), options), format!("`{name}`"))
            }
        };
        let varying = varying_params(builds, &cells);
        let mut units = Self { all, factor, varying, profiles: profiles(builds, &cells) };
        units.separate_equal_units(builds);
        units
    }

    pub(super) fn all(&self) -> &[Unit] {
        &self.all
    }

    /// Lets units that would be counterparts of the same ones agree in their position in the plan as well.
    fn separate_equal_units(&mut self, builds: &Builds) {
        let mut counts: HashMap<(Family, String), usize> = HashMap::new();
        for unit in &self.all {
            *counts.entry((unit.family.clone(), unit.level.clone())).or_default() += 1;
        }
        let repeated: BTreeSet<Family> =
            counts.into_iter().filter(|(_, count)| *count > 1).map(|((family, _), _)| family).collect();
        for unit in self.all.iter_mut().filter(|unit| repeated.contains(&unit.family)) {
            let [test, serial] = [unit.cell.test, unit.cell.serial].map(|name| builds.names.resolve(name).to_owned());
            unit.family.extend([("test".to_owned(), test), ("serial".to_owned(), serial)]);
        }
    }

    /// Checks that there are several levels, and the parameters that may differ.
    pub(super) fn check(&self, builds: &Builds, options: &SplitOptions, run: &str) -> Result<(), WithinRunError> {
        let (run, varying) = (run.to_owned(), self.varying.clone());
        if builds.rows().len() == 0 {
            return Err(WithinRunError::NoResults(run));
        }
        let names = builds.rows().flat_map(|row| params(builds, &[row]).into_keys());
        let candidates: BTreeSet<String> = names.filter(|name| !DEFINING_PARAMS.contains(&name.as_str())).collect();
        if let Some(name) = options.allow_different.iter().find(|name| !candidates.contains(*name)) {
            let (name, builds) = (name.clone(), format!("`{run}`"));
            return Err(UnknownName { kind: "parameter", name, builds, candidates }.into());
        }
        match (&options.factor, &self.levels()[..]) {
            (Factor::Worker, [] | [_]) => Err(WithinRunError::NoWorkers { run, profiles: self.profiles.clone() }),
            (Factor::Param { name, .. }, []) => {
                let (name, profiles) = (name.clone(), self.profiles.clone());
                Err(WithinRunError::NoParam { run, name, varying, profiles })
            }
            (Factor::Param { name, .. }, [value]) => {
                let (name, value) = (name.clone(), (*value).to_owned());
                Err(WithinRunError::OneValue { run, name, value, varying })
            }
            (Factor::Id, [test]) => Err(WithinRunError::OneTest { run, test: (*test).to_owned(), varying }),
            _ => Ok(()),
        }
    }

    /// In the order of the plan.
    fn levels(&self) -> Vec<&str> {
        distinct(self.all.iter().map(|unit| unit.level.as_str()))
    }

    /// The requested reference, or the first level that a counterpart has another one of.
    pub(super) fn reference(&self, options: &SplitOptions, run: &str) -> Result<String, WithinRunError> {
        let run = run.to_owned();
        if let Some(requested) = &options.reference {
            if !self.all.iter().any(|unit| unit.level == *requested) {
                let kind = match options.factor {
                    Factor::Worker => "worker",
                    Factor::Id => "id",
                    Factor::Param { .. } => "value",
                };
                let candidates = self.levels().into_iter().map(str::to_owned).collect();
                let builds = format!("`{run}`");
                return Err(UnknownName { kind, name: requested.clone(), builds, candidates }.into());
            }
            return if self.pair(requested).0.is_empty() {
                Err(WithinRunError::NothingToJudge { run, reference: options.factor.label(requested) })
            } else {
                Ok(requested.clone())
            };
        }
        let found = self.levels().into_iter().find(|level| !self.pair(level).0.is_empty());
        found.map(str::to_owned).ok_or_else(|| WithinRunError::NoCounterparts {
            run,
            factor: self.factor.clone(),
            is_param: matches!(options.factor, Factor::Param { .. }),
            others: self.closest_differences(),
        })
    }

    /// The pairs of units of the reference and of another level, and the units without a counterpart.
    pub(super) fn pair(&self, reference: &str) -> (Vec<[usize; 2]>, Vec<usize>) {
        let mut of_reference: HashMap<&Family, usize> = HashMap::new();
        for (index, unit) in self.all.iter().enumerate().filter(|(_, unit)| unit.level == reference) {
            of_reference.entry(&unit.family).or_insert(index);
        }
        let others = self.all.iter().enumerate().filter(|(_, unit)| unit.level != reference);
        let pairs: Vec<[usize; 2]> =
            others.filter_map(|(index, unit)| Some([*of_reference.get(&unit.family)?, index])).collect();
        let matched: BTreeSet<usize> = pairs.iter().flatten().copied().collect();
        (pairs, (0..self.all.len()).filter(|index| !matched.contains(index)).collect())
    }

    /// The differences, other than in the factor, between the two most similar units of different levels.
    fn closest_differences(&self) -> Vec<String> {
        let differences = |one: &Unit, other: &Unit| {
            let [a, b] = [one, other].map(|unit| unit.family.iter().collect::<BTreeSet<_>>());
            a.symmetric_difference(&b).map(|(name, _)| name.clone()).collect::<BTreeSet<String>>()
        };
        let Some(first) = self.all.first() else { return Vec::new() };
        let others = self.all.iter().filter(|unit| unit.level != first.level);
        let closest = others.map(|other| differences(first, other)).min_by_key(BTreeSet::len);
        closest.unwrap_or_default().into_iter().collect()
    }
}

fn name_of(builds: &Builds, row: MetricIndex) -> (Class, String) {
    let CheckId { class, metric, .. } = builds.id(row, Statistic::Mean);
    (class, metric.to_owned())
}

/// The workers of cells that several measured at the same time.
fn of_workers(builds: &Builds, cells: &[(InternedCell, Vec<MetricIndex>)]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (cell, rows) in cells {
        let first = units.len();
        for row in rows {
            let (class, metric) = name_of(builds, *row);
            let Some((name, worker)) = metric.split_once('@') else { continue };
            let known = units[first..].iter().position(|unit: &Unit| unit.level == worker).map(|index| first + index);
            let index = known.unwrap_or_else(|| {
                units.push(Unit {
                    cell: *cell,
                    worker: Some(worker.to_owned()),
                    level: worker.to_owned(),
                    family: vec![("cell".to_owned(), builds.cell_name(*cell))],
                    metrics: Vec::new(),
                });
                units.len() - 1
            });
            units[index].metrics.push((class, name.to_owned(), *row));
        }
    }
    units
}

fn unit(builds: &Builds, cell: InternedCell, rows: &[MetricIndex], level: String, family: Family) -> Unit {
    let metrics = rows.iter().map(|row| {
        let (class, name) = name_of(builds, *row);
        (class, name, *row)
    });
    Unit { cell, worker: None, level, family, metrics: metrics.collect() }
}

/// The cells of each test of the plan. Cells of two tests are counterparts if they agree in the axes that have several
/// values within one of the tests: what is the same in all cells of a test is what makes it another one.
fn of_tests(builds: &Builds, cells: &[(InternedCell, Vec<MetricIndex>)]) -> Vec<Unit> {
    let level = |cell: &InternedCell| {
        let [test, serial] = [cell.test, cell.serial].map(|name| builds.names.resolve(name));
        let is_position = serial.len() == 4 && serial.bytes().all(|byte| byte.is_ascii_digit());
        if is_position { format!("{test}/{serial}") } else { serial.to_owned() }
    };
    let mut values: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (cell, _) in cells {
        for (axis, value) in axes(builds, cell) {
            values.entry((level(cell), axis)).or_default().insert(value);
        }
    }
    let varying: BTreeSet<String> =
        values.into_iter().filter(|(_, values)| values.len() > 1).map(|((_, axis), _)| axis).collect();
    let of_cell = |(cell, rows): &(InternedCell, Vec<MetricIndex>)| {
        let profile = ("profile".to_owned(), builds.names.resolve(cell.profile).to_owned());
        // What is an axis of one test may have a single value in another, and is no part of its cells' names there.
        let values = all_params(builds, cell, rows).into_iter().filter(|(name, _)| varying.contains(name));
        unit(builds, *cell, rows, level(cell), std::iter::once(profile).chain(values).collect())
    };
    cells.iter().map(of_cell).collect()
}

/// The cells that have a parameter. Counterparts agree in all others.
fn of_param(
    builds: &Builds,
    cells: &[(InternedCell, Vec<MetricIndex>)],
    (name, by_test): (&str, &BTreeMap<String, String>),
    options: &SplitOptions,
) -> Vec<Unit> {
    let of_cell = |(cell, rows): &(InternedCell, Vec<MetricIndex>)| {
        let [profile, test] = [cell.profile, cell.test].map(|name| builds.names.resolve(name));
        let param = by_test.get(test).map_or(name, String::as_str);
        let mut values = all_params(builds, cell, rows);
        let level = values.remove(param)?;
        let is_compared = |name: &String| name == EMULATED || !DEFINING_PARAMS.contains(&name.as_str());
        let names = options.cell_names.get(test);
        let may_differ =
            |name: &String| options.allow_different.contains(name) || names.is_some_and(|names| names.contains(name));
        values.retain(|name, _| is_compared(name) && !may_differ(name));
        let place = [("profile", profile), ("test", test)].map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(unit(builds, *cell, rows, level, place.into_iter().chain(values).collect()))
    };
    cells.iter().filter_map(of_cell).collect()
}

fn profiles(builds: &Builds, cells: &[(InternedCell, Vec<MetricIndex>)]) -> Vec<String> {
    let profiles = distinct(cells.iter().map(|(cell, _)| cell.profile));
    profiles.into_iter().map(|profile| builds.names.resolve(profile).to_owned()).collect()
}

/// The parameters with several values, apart from those that only some cells have.
fn varying_params(builds: &Builds, cells: &[(InternedCell, Vec<MetricIndex>)]) -> Vec<String> {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (cell, rows) in cells {
        for (name, value) in params(builds, rows).into_iter().chain(axes(builds, cell)) {
            values.entry(name).or_default().insert(value);
        }
    }
    let is_varying =
        |(name, values): &(String, BTreeSet<String>)| values.len() > 1 && !DEFINING_PARAMS.contains(&name.as_str());
    values.into_iter().filter(is_varying).map(|(name, _)| name).collect()
}

fn params(builds: &Builds, rows: &[MetricIndex]) -> BTreeMap<String, String> {
    let readings = builds.list().iter().flat_map(|build| rows.iter().flat_map(|row| build.readings(*row)));
    let params = readings.take(1).flat_map(|reading| builds.params(reading.params));
    params.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn all_params(builds: &Builds, cell: &InternedCell, rows: &[MetricIndex]) -> BTreeMap<String, String> {
    let mut values = params(builds, rows);
    for (axis, value) in axes(builds, cell) {
        values.entry(axis).or_insert(value);
    }
    values
}

/// The axes of a cell; none in run-perf's layout, whose names of cells have none.
fn axes(builds: &Builds, cell: &InternedCell) -> Vec<(String, String)> {
    let case = builds.names.resolve(cell.case).parse::<Case>().unwrap_or_default();
    case.axes().map(|(axis, value)| (axis.to_owned(), value.to_owned())).collect()
}
